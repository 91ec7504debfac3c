import { nearestToolName } from "../tools/tool-name.ts";

/** Files to be made, by their paths relative to the skill, with forward slashes. */
export type ScaffoldFiles = Readonly<Record<string, string>>;

/** A skill with one tool, which works as it is, and a test of it. */
export function skillFiles(name: string, schema: string | undefined): ScaffoldFiles {
  const tool = nearestToolName(name.replaceAll("-", "_"));
  const manifest = { ...(schema && { $schema: schema }), name, version: "0.1.0" };
  return {
    "SKILL.md": skillDocument(name, tool),
    "skill.json": `${JSON.stringify(manifest, null, 2)}\n`,
    ...toolFiles(tool),
  };
}

export function toolFiles(tool: string): ScaffoldFiles {
  return { [`tools/${tool}.ts`]: toolModule(tool), [`test/${tool}.test.mjs`]: toolTest(tool) };
}

function skillDocument(name: string, tool: string): string {
  return `---
name: ${name}
description: Greets people by name. Use it when a person introduces themselves.
---

# ${titleOf(name)}

When somebody introduces themselves, call \`${tool}\` with their name and answer with what it returns.
`;
}

function toolModule(tool: string): string {
  return `import { defineTool } from "skillhost";

interface Arguments {
  readonly name: string;
}

export default defineTool<Arguments>(${JSON.stringify(tool)}, {
  description: "Makes the greeting for a person. Use it when a person introduces themselves.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, description: "The person's name, as they wrote it." },
    },
    required: ["name"],
  },
  handler: ({ name }) => \`Hello, \${name}!\`,
});
`;
}

function toolTest(tool: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("greets a person by name", async () => {
  const skill = await testSkill(folder);
  try {
    const result = await skill.call(${JSON.stringify(tool)}, { name: "Ada" });
    assert.equal(result.textResultForLlm, "Hello, Ada!");
  } finally {
    await skill.close();
  }
});

test("refuses a call without a name", async () => {
  const skill = await testSkill(folder);
  try {
    const result = await skill.call(${JSON.stringify(tool)}, {});
    assert.equal(result.resultType, "failure");
    assert.match(result.textResultForLlm, /name/);
  } finally {
    await skill.close();
  }
});
`;
}

function titleOf(name: string): string {
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
