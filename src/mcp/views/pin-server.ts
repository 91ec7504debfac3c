import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { ownerId } from "../../trust/pins/pin-subject.ts";

/**
 * Whose definitions they are, whatever else the configuration says: the server's name and how it is reached. Values of
 * the environment and headers are left out: they hold secrets and are renewed, and neither should get into what is kept
 * or make the same server another one.
 */
export function pinServer(spec: McpServerSpec): string {
  return ownerId(spec.name, spec.type === "stdio" ? [spec.command, spec.args, spec.cwd ?? ""] : [spec.url]);
}
