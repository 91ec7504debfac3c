import type { SessionOptions } from "../../../session/session-config.ts";

type Discovered = Pick<SessionOptions, "mcpServers" | "skillDirectories" | "customAgents">;

/** What the folder of a project adds to a session. */
export interface DiscoveredConfiguration {
  readonly options: Discovered;
  /** What was found and is not used, with the reason. */
  readonly problems: readonly string[];
}

/** Adds what was discovered to the options of a client, which take precedence. */
export function withDiscovered(
  options: SessionOptions,
  { mcpServers, skillDirectories = [], customAgents = [] }: Discovered,
): SessionOptions {
  const own = options.customAgents ?? [];
  const names = new Set(own.map(({ name }) => name));
  const agents = customAgents.filter(({ name }) => !names.has(name));
  return {
    ...options,
    ...(mcpServers !== undefined && Object.keys(mcpServers).length > 0 && { mcpServers: { ...mcpServers, ...options.mcpServers } }),
    ...(skillDirectories.length > 0 && { skillDirectories: [...(options.skillDirectories ?? []), ...skillDirectories] }),
    ...(agents.length > 0 && { customAgents: [...own, ...agents] }),
  };
}
