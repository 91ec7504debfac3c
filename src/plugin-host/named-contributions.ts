import type { Diagnostic } from "../base/diagnostic.ts";
import type { Contributions } from "./contributions.ts";
import type { PluginSlot } from "./plugin-slot.ts";

/** What plugins add by name. */
type NamedKind = "agents" | "commands" | "modelProviders" | "mcpServers";

type Holder = { readonly contributions: Contributions };

/** What all plugins add of a kind. Of one name, the first plugin's counts. */
export function joinNamed<K extends NamedKind>(plugins: readonly Holder[], kind: K): Contributions[K] {
  const joined = new Map<string, unknown>();
  for (const { contributions } of plugins) {
    for (const [name, value] of contributions[kind]) if (!joined.has(name)) joined.set(name, value);
  }
  return joined as unknown as Contributions[K];
}

/** Which names of a plugin others have had before. */
export function clashesOf(plugin: string, contributions: Contributions, before: readonly Holder[]): readonly Diagnostic[] {
  return (Object.keys(kindWords) as NamedKind[]).flatMap((kind) => {
    const taken = joinNamed(before, kind);
    return [...contributions[kind].keys()].filter((name) => taken.has(name)).map((name) => clash(plugin, kindWords[kind], name));
  });
}

const kindWords: Readonly<Record<NamedKind, string>> = {
  agents: "agent",
  commands: "command",
  modelProviders: "model provider",
  mcpServers: "MCP server",
};

function clash(plugin: string, what: string, name: string): Diagnostic {
  const message = `Plugin "${plugin}" adds the ${what} "${name}", which an earlier plugin has added: the earlier one counts.`;
  return { severity: "warning", code: "PLUGIN_CONTRIBUTION_TAKEN", source: plugin, message };
}

/** About a plugin whose name another one has. */
export function nameTaken({ name, specifier }: Pick<PluginSlot, "name" | "specifier">): Diagnostic {
  const from = specifier === undefined ? "" : ` (from "${specifier}")`;
  const message = `Another plugin is named "${name}" already, so this one${from} was not activated. Rename it or leave one out.`;
  return { severity: "error", code: "PLUGIN_NAME_TAKEN", source: name, message };
}
