import { nearestToolName } from "../../tools/tool.ts";
import type { ScaffoldFiles } from "./write-scaffold.ts";

/** How the tool of a new skill is written. `instructions`: the skill has none. */
export type SkillKind = "typescript" | "json" | "python" | "instructions";

export const skillKinds: readonly SkillKind[] = ["typescript", "json", "python", "instructions"];

interface SkillTemplate {
  readonly kind: SkillKind;
  /** The `$schema` of skill.json. Undefined: none. */
  readonly schema: string | undefined;
}

/** A working skill and its test. The tool is named after the skill. */
export function skillFiles(name: string, { kind, schema }: SkillTemplate): ScaffoldFiles {
  const tool = nearestToolName(name.replaceAll("-", "_"));
  const manifest = { ...(schema && { $schema: schema }), name, version: "0.1.0" };
  return {
    "SKILL.md": kind === "instructions" ? instructions(name) : skillDocument(name, tool),
    "skill.json": `${JSON.stringify(manifest, null, 2)}\n`,
    ...(kind === "instructions" ? { [`test/${name}.test.mjs`]: instructionsTest(name) } : toolFiles(tool, kind)),
  };
}

/** A tool that greets, with its test. */
export function toolFiles(tool: string, kind: Exclude<SkillKind, "instructions">): ScaffoldFiles {
  return { ...implementations[kind](tool), [`test/${tool}.test.mjs`]: toolTest(tool, kind === "python") };
}

const implementations: Readonly<Record<Exclude<SkillKind, "instructions">, (tool: string) => ScaffoldFiles>> = {
  typescript: (tool) => ({ [`tools/${tool}.ts`]: toolModule(tool) }),
  json: (tool) => ({ [`tools/${tool}.json`]: toolDefinition(tool), [`scripts/${tool}.mjs`]: toolScript }),
  python: (tool) => ({ [`tools/${tool.replaceAll("-", "_")}.py`]: pythonModule(tool) }),
};

function skillDocument(name: string, tool: string): string {
  return `---
name: ${name}
description: Greets people by name. Use it when a person introduces themselves.
---

# ${titleOf(name)}

When a person introduces themselves, call \`${tool}\` with their name and answer with what it returns.
`;
}

function instructions(name: string): string {
  return `---
name: ${name}
description: Explains how this project writes release notes. Use it when asked what changed or when preparing a release.
---

# ${titleOf(name)}

1. Read the commits since the last release.
2. Write one line for each change that a user notices, in the present tense.
3. Put what breaks existing code first, and say what to do about it.
`;
}

function toolModule(tool: string): string {
  return `import { defineTool } from "skillhost";

interface Arguments {
  readonly name: string;
}

export default defineTool<Arguments>(${JSON.stringify(tool)}, {
  description: "Returns a greeting for a person. Use it when a person introduces themselves.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, description: "The person's name, as they spelled it." },
    },
    required: ["name"],
  },
  handler: ({ name }) => \`Hello, \${name}!\`,
});
`;
}

// No shell is involved. The model's text is an element of its own, after "--", so that it cannot become an option.
function toolDefinition(tool: string): string {
  const definition = {
    name: tool,
    description: "Returns a greeting for a person. Use it when a person introduces themselves.",
    parameters: {
      type: "object",
      properties: { name: { type: "string", minLength: 1, description: "The person's name, as they spelled it." } },
      required: ["name"],
      additionalProperties: false,
    },
    handler: { command: "node", args: [`{baseDir}/scripts/${tool}.mjs`, "--", "${name}"] },
  };
  return `${JSON.stringify(definition, null, 2)}\n`;
}

const toolScript = `const [, , separator, name] = process.argv;
if (separator !== "--" || !name) throw new Error("The script requires -- and a name.");
process.stdout.write(\`Hello, \${name}!\`);
`;

function pythonModule(tool: string): string {
  return `from typing import Annotated

from skillhost import define_tool


@define_tool(
    name=${JSON.stringify(tool)},
    description="Returns a greeting for a person. Use it when a person introduces themselves.",
)
def greet(name: Annotated[str, "The person's name, as they spelled it."]) -> str:
    return f"Hello, {name}!"
`;
}

function toolTest(tool: string, isPython: boolean): string {
  const open = isPython ? `testSkill(folder, { plugins: ["skillhost/plugins/python-tools"] })` : "testSkill(folder)";
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("greets a person by name", async () => {
  const skill = await ${open};
  try {
    const result = await skill.call(${JSON.stringify(tool)}, { name: "Ada" });
    assert.equal(result.textResultForLlm, "Hello, Ada!");
  } finally {
    await skill.close();
  }
});

test("refuses a call without a name", async () => {
  const skill = await ${open};
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

function instructionsTest(name: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

test("is active and has no problems", async () => {
  const { host, close } = await testSkill(new URL("..", import.meta.url));
  try {
    assert.deepEqual(host.diagnostics, []);
    assert.deepEqual(host.skills.map(({ name, state }) => [name, state]), [[${JSON.stringify(name)}, "active"]]);
  } finally {
    await close();
  }
});
`;
}

function titleOf(name: string): string {
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
