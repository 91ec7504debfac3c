import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { defineTool } from "skillhost";
import { z } from "zod";

export default defineTool("read_setting", {
  description: "Returns a project setting from settings.json in the working directory.",
  parameters: z.object({ name: z.string().min(1).describe('Name of the setting, for example "theme".') }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async handler({ name }, { workingDirectory }) {
    // The model cannot fix a missing or invalid file. Thrown errors are only logged, because they contain paths.
    const settings = new Map(Object.entries(JSON.parse(await readFile(join(workingDirectory, "settings.json"), "utf8")) as object));
    const value: unknown = settings.get(name);
    if (value !== undefined) return { name, value };
    // The model can fix a wrong name, so this failure says what to do.
    return {
      textResultForLlm: `Unknown setting "${name}". Available settings: ${[...settings.keys()].join(", ")}.`,
      resultType: "failure",
      error: `read_setting: unknown setting ${name}`,
    };
  },
});
