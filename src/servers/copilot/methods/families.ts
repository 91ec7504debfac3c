import type { Method, MethodFamily } from "./method.ts";

/**
 * The files of methods, with the prefixes of the names that they answer. The longest matching prefix decides.
 * @internal Exported for tests.
 */
export const families: readonly (readonly [prefixes: readonly string[], load: () => Promise<MethodFamily>])[] = [
  [["session."], async () => (await import("./lifecycle.ts")).lifecycle],
  [
    ["session.send", "session.abort", "session.interruptMainTurn", "session.getMessages", "session.log"],
    async () => (await import("./messages.ts")).messages,
  ],
  [["session.agent.", "agents."], async () => (await import("./agents.ts")).agents],
  [["session.eventLog.", "session.usage."], async () => (await import("./event-log.ts")).eventLog],
  [["session.extensions."], async () => (await import("./extensions.ts")).extensions],
  [["session.history.", "session.queue."], async () => (await import("./history.ts")).history],
  [["session.instructions.", "instructions."], async () => (await import("./instructions.ts")).instructions],
  [["session.mcp.", "mcp."], async () => (await import("./mcp.ts")).mcp],
  [["session.mcp.apps."], async () => (await import("./apps.ts")).apps],
  [["session.metadata.", "session.mode.", "session.name.", "session.options."], async () => (await import("./metadata.ts")).metadata],
  [["session.model.", "models.", "account.", "llmInference."], async () => (await import("./models.ts")).models],
  [["session.permissions."], async () => (await import("./permissions.ts")).permissions],
  [["session.plan.", "session.workspaces."], async () => (await import("./workspaces.ts")).workspaces],
  [["session.plugins.", "plugins."], async () => (await import("./plugins.ts")).plugins],
  [["session.skills.", "skills."], async () => (await import("./skills.ts")).skills],
  [["session.tools.", "tools."], async () => (await import("./tools.ts")).tools],
  [["session.ui.", "session.commands."], async () => (await import("./ui.ts")).ui],
  [["sessions.", "sessionFs."], async () => (await import("./sessions.ts")).sessions],
];

/** Loads the file of a method. Undefined: no file has this method. */
export async function loadMethod(name: string): Promise<Method | undefined> {
  let longest = "";
  let found: (() => Promise<MethodFamily>) | undefined;
  for (const [prefixes, load] of families) {
    const prefix = prefixes.find((start) => name.startsWith(start));
    if (prefix === undefined || prefix.length <= longest.length) continue;
    longest = prefix;
    found = load;
  }
  const family = await found?.();
  return family !== undefined && Object.hasOwn(family, name) ? family[name] : undefined;
}
