import { resolve } from "node:path";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { realPathOfDeepest } from "../../io/confine-path.ts";

/**
 * The spec with the real path of the folder that a local server runs in. A link that is changed later makes it a different
 * server; the running one is never restarted in another folder.
 */
export function resolveServer(spec: McpServerSpec, workingDirectory: string): McpServerSpec {
  if (spec.type !== "stdio") return spec;
  return { ...spec, cwd: realFolder(resolve(workingDirectory, spec.cwd ?? ".")) };
}

function realFolder(folder: string): string {
  try {
    return realPathOfDeepest(folder);
  } catch {
    // The server cannot run there either, and starting it reports the reason.
    return folder;
  }
}

/**
 * Identifies a connection: two servers with the same identity can share one. Names, tool filters and timeouts do not
 * count, since they differ between users; only where users sign in, the name stands for the account. Expects a resolved
 * spec, whose contents the result does not reveal.
 */
export function identityOf(spec: McpServerSpec): string {
  if (spec.type === "stdio") {
    const { type, command, args, env, cwd } = spec;
    return sha256(canonicalJson({ type, command, args, env, cwd }));
  }
  const { type, name, url, headers, oauth } = spec;
  // Header names are case-insensitive (RFC 9110, 5.1).
  const lowered = Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]);
  const isAuthorized = lowered.some(([header]) => header === "authorization");
  // Users sign in to a server by its name: two names with the same address can be two accounts.
  return sha256(canonicalJson({ type, url, headers: lowered.sort(), oauth, account: isAuthorized ? undefined : name }));
}
