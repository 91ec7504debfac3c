// Writes a skill with the same tool as the others into a folder.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function writeEchoSkill(folder, count = 1) {
  mkdirSync(join(folder, "echo", "tools"), { recursive: true });
  writeFileSync(join(folder, "echo", "skill.json"), JSON.stringify({ name: "echo", description: "Answers what it is given." }));
  writeFileSync(
    join(folder, "echo", "tools", "echo.mjs"),
    `import { defineTool } from "skillhost";
export default Array.from({ length: ${count} }, (_, n) =>
  defineTool(n === 0 ? "echo" : \`echo_\${n}\`, {
    description: \`Answers what it is given (\${n}).\`,
    parameters: { type: "object", properties: { text: { type: "string", description: "What to answer." } }, required: ["text"] },
    handler: async ({ text }) => text,
  }),
);
`,
  );
}
