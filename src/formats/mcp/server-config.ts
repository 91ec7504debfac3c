import type { McpServerSpec } from "./mcp-server-spec.ts";

/** A server as the options of a session would name it: plain data that reads back, literally, as the same server. */
export function toServerConfig(spec: McpServerSpec): Readonly<Record<string, unknown>> {
  const { name: _name, tools, excludedTools, timeout, isDisabled, ...own } = spec;
  const all = {
    ...own,
    tools,
    excludeTools: excludedTools,
    timeout,
    disabled: isDisabled || undefined,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
