import type { LoadedFolder, Skill, SkillsSnapshot } from "../../src/skills/skill.ts";
import { createTool } from "../../src/tools/create/create-tool.ts";

/** The parts of a snapshot's skill that tests use. */
export interface Given {
  readonly name: string;
  /** Tool name → description. */
  readonly tools?: Readonly<Record<string, string>>;
  readonly enabled?: boolean;
  readonly version?: string;
  readonly requires?: Readonly<Record<string, string>>;
}

function skillIn(folder: string, { name, tools = {}, enabled = true, version, requires = {} }: Given): Skill {
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
    offeredPrompts: [],
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
