import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { defineTool } from "skillhost";
import { z } from "zod";

export default defineTool("read_setting", {
  description: "Reads one setting of the project from settings.json in the working directory.",
  parameters: z.object({ name: z.string().min(1).describe('The name of the setting, for example "theme".') }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async handler({ name }, { workingDirectory }) {
    // A file that is missing or broken is nothing that a model can mend. What is thrown goes to the log only: it names a path.
    const settings = new Map(Object.entries(JSON.parse(await readFile(join(workingDirectory, "settings.json"), "utf8")) as object));
    const value: unknown = settings.get(name);
    if (value !== undefined) return { name, value };
    // A wrong name is: a failure with a text says what to do instead.
    return {
      textResultForLlm: `There is no setting "${name}". There are ${[...settings.keys()].join(", ")}.`,
      resultType: "failure",
      error: `read_setting: unknown setting ${name}`,
    };
  },
});
