import { isSecretName } from "../../base/logger.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { digestOf } from "../../trust/digests.ts";
import { ownerId } from "../../trust/pins/pin-subject.ts";

/**
 * Whose definitions they are, whatever else the configuration says: the server's name and how it is reached. Values of
 * the environment and headers are left out: they hold secrets and are renewed, and neither should get into what is kept
 * or make the same server another one.
 */
export function pinServer(spec: McpServerSpec): string {
  return ownerId(spec.name, spec.type === "stdio" ? [spec.command, spec.args, spec.cwd ?? ""] : [spec.url]);
}

/**
 * What approvals of a server's tools are bound to: how it is started or reached, with the environment and the headers,
 * since these can make another program of the same command. Of what is named like a secret only the name counts: a
 * renewed token must not ask everything again.
 */
export function serverIdentity(spec: McpServerSpec): string {
  if (spec.type !== "stdio") return digestOf({ url: spec.url, headers: withoutSecrets(spec.headers, (name) => name.toLowerCase()) });
  const { command, args, cwd = "", env } = spec;
  return digestOf({ command, args, cwd, env: withoutSecrets(env, (name) => name) });
}

function withoutSecrets(values: Readonly<Record<string, string>>, named: (name: string) => string): readonly (readonly string[])[] {
  const entries = Object.entries(values).map(([name, value]) => (isSecretName(name) ? [named(name)] : [named(name), value]));
  return entries.sort(([a = ""], [b = ""]) => (a < b ? -1 : Number(a > b)));
}
