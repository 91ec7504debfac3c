import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { compileSources } from "../compiled-sources.ts";
import { tempFolder } from "./kit.ts";

const program = compileSources("test/skills/open-files-child.ts", "test/slowness.ts")("test/skills/open-files-child.ts");

const text = (name: string, description: string): string => `---\nname: ${name}\ndescription: ${description}\n---\nBe brief.\n`;

// Windows has neither this limit nor sh.
test.skipIf(process.platform === "win32").each(["reload", "watch"])(
  "skills that change while no file can be opened stay active, report why, and reload when possible (%s)",
  (mode) => {
    const folder = tempFolder({
      "skills/tool/SKILL.md": text("tool", "The tool."),
      "skills/tool/tools/tool.mjs": 'export default { name: "before", description: "A tool.", handler: () => "" };\n',
      "skills/tool/tools/checked.mjs":
        'export default { name: "checked", description: "A tool.", skipPermission: true, parameters: { type: "object", properties: { n: { type: "number" } } }, handler: ({ n }) => "number " + n };\n',
      "skills/text/SKILL.md": text("text", "Said before."),
      "skills/untouched/skill.md": text("untouched", "The same."),
      "more/prompt/SKILL.md": text("prompt", "The prompt."),
      "more/prompt/prompts/greet.md": "Greet before.",
    });
    const script = 'ulimit -n 300 && exec "$0" "$@"';
    const { stdout, stderr } = spawnSync("sh", ["-c", script, process.execPath, program, folder, mode], { encoding: "utf8" });
    expect(stderr).toBe("");
    const { started, exhausted, freed, call } = JSON.parse(stdout);
    expect(started.skills).toEqual([
      "prompt active: The prompt., Greet before.",
      "text active: Said before.",
      "tool active: The tool., checked, before",
      expect.stringContaining("untouched active: The same."),
    ]);
    const names = exhausted.skills.map((each: string) => each.replace(", not as its files are", ""));
    expect(names).toEqual(started.skills);
    for (const [, , message] of exhausted.diagnostics) expect(message).toContain("ulimit -n 4096");
    expect(exhausted.diagnostics.map(([, file]: string[]) => file)).toEqual(
      expect.arrayContaining(["skills/text", "skills/tool", "more/prompt"].map((each) => expect.stringContaining(each))),
    );
    expect(freed.diagnostics).toEqual([]);
    expect(call.exhausted).toMatch(/^(?:true number 1|false .*cannot be checked now)/);
    expect(call.freed).toBe("true number 1");
    expect(freed.skills).toEqual([
      "prompt active: The prompt., Greet after.",
      "text active: Said after.",
      "tool active: The tool., checked, after",
      expect.stringContaining("untouched active: The same."),
    ]);
  },
);
