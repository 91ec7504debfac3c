import type { LoadedFolder, Skill, SkillsSnapshot } from "../../src/skills/skill.ts";
import { createTool } from "../../src/tools/create/create-tool.ts";
import type { Prompt } from "../../src/tools/prompt.ts";

/** The parts of a snapshot's skill that tests use. */
export interface Given {
  readonly name: string;
  /** Tool name → description. */
  readonly tools?: Readonly<Record<string, string>>;
  /** The names of its prompts. */
  readonly prompts?: readonly string[];
  readonly enabled?: boolean;
  readonly version?: string;
  readonly requires?: Readonly<Record<string, string>>;
}

export function skillIn(folder: string, { name, tools = {}, prompts = [], enabled = true, version, requires = {} }: Given): Skill {
  const made = Object.entries(tools).map(([tool, description]) =>
    createTool({ name: tool, description, handler: () => folder }, { kind: "skill", source: name, nativeName: tool }),
  );
  return {
    name,
    description: name,
    folder,
    promptMode: "eager",
    prompts: [],
    enabled,
    mayRun: true,
    hiddenFromModel: false,
    tools: made,
    offeredPrompts: prompts.map((prompt) => promptIn(folder, name, prompt)),
    resources: [],
    resourceTemplates: [],
    files: { resources: [] },
    mcpServers: {},
    ...(version !== undefined && { version }),
    requires,
    engines: {},
    uses: new Map(),
    generation: 1,
    signature: JSON.stringify([name, tools]),
    instructions: async () => "",
    read: async () => new Uint8Array(),
  };
}

function promptIn(folder: string, source: string, name: string): Prompt {
  const origin = { kind: "skill", source, nativeName: name } as const;
  return { definition: { name }, origin, revision: `${folder} ${name}`, get: async () => ({ messages: [] }) };
}

/** Builds a snapshot of `{ "/root": { "folder": skill } }` with roots and folders in this order. */
export function snapshotOf(roots: Readonly<Record<string, Readonly<Record<string, Given>>>>): SkillsSnapshot {
  const folders = new Map<string, LoadedFolder>();
  const listings = Object.entries(roots).map(([root, children]) => {
    const paths = Object.entries(children).map(([child, given]) => {
      const folder = `${root}/${child}`;
      folders.set(folder, { folder, skill: skillIn(folder, given), diagnostics: [], stale: false });
      return folder;
    });
    return [root, { root, folders: paths, diagnostics: [] }] as const;
  });
  return { roots: new Map(listings), folders };
}
