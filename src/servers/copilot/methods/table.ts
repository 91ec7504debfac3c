import type { MethodFamily } from "./method.ts";
import { type FamilyName, supported } from "./supported.ts";
import { unsupported } from "./unsupported.ts";

type LoadFamily = () => Promise<MethodFamily>;

/** Methods that are loaded together, when one of them is first asked for. */
export const families: Readonly<Record<FamilyName, LoadFamily>> = {
  lifecycle: async () => (await import("./lifecycle.ts")).lifecycle,
  messages: async () => (await import("./messages.ts")).messages,
  tools: async () => (await import("./tools.ts")).tools,
  permissions: async () => (await import("./permissions.ts")).permissions,
  ui: async () => (await import("./ui.ts")).ui,
  skills: async () => (await import("./skills.ts")).skills,
  mcp: async () => (await import("./mcp.ts")).mcp,
  agents: async () => (await import("./agents.ts")).agents,
  models: async () => (await import("./models.ts")).models,
  state: async () => (await import("./state.ts")).state,
  stored: async () => (await import("./stored.ts")).stored,
  apps: async () => (await import("./apps.ts")).apps,
  sampling: async () => (await import("./sampling.ts")).sampling,
  library: async () => (await import("./library.ts")).library,
  instructions: async () => (await import("./instructions.ts")).instructions,
  history: async () => (await import("./history.ts")).history,
  observed: async () => (await import("./observed.ts")).observed,
  extensions: async () => (await import("./extensions.ts")).extensions,
  plugins: async () => (await import("./plugins.ts")).plugins,
};

/** Where a method is answered, or why it is not. */
export type TableEntry = { readonly family: FamilyName } | { readonly reason: string };

function createTable(): ReadonlyMap<string, TableEntry> {
  const table = new Map<string, TableEntry>();
  for (const [reason, methods] of Object.entries(unsupported)) for (const method of methods) table.set(method, { reason });
  for (const [family, methods] of Object.entries(supported))
    for (const method of methods) table.set(method, { family: family as FamilyName });
  return table;
}

/** Every method of the protocol but those that a connection begins with. */
export const methodTable: ReadonlyMap<string, TableEntry> = createTable();
