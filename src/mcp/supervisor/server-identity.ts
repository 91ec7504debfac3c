import { resolve } from "node:path";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { realPathOfDeepest } from "../../io/confine-path.ts";

/**
 * The spec with the real path of the folder that a local server runs in: a link that leads elsewhere later makes it another server, and
 * none that runs is started again in another folder.
 */
export function resolveServer(spec: McpServerSpec, workingDirectory: string): McpServerSpec {
  if (spec.type !== "stdio") return spec;
  return { ...spec, cwd: realFolder(resolve(workingDirectory, spec.cwd ?? ".")) };
}

function realFolder(folder: string): string {
  try {
    return realPathOfDeepest(folder);
  } catch {
    // It cannot be looked up, so the server cannot run there either: starting it gives the reason.
    return folder;
  }
}

/**
 * What makes a connection another one: two servers with the same identity can share one. What a user calls the server,
 * which of its tools are wanted and how long calls may take is the user's own affair; only where people sign in does the
 * name tell whose account it is. Takes a resolved spec; tells nothing of what is in it.
 */
export function identityOf(spec: McpServerSpec): string {
  return sha256(canonicalJson(spec.type === "stdio" ? localFacts(spec) : remoteFacts(spec)));
}

function localFacts({ type, command, args, env, cwd }: Extract<McpServerSpec, { type: "stdio" }>): object {
  return { type, command, args, env, cwd };
}

function remoteFacts({ type, name, url, headers, oauth }: Exclude<McpServerSpec, { type: "stdio" }>): object {
  // Names of headers are the same in any case (RFC 9110, 5.1).
  const lowered = Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]);
  const isAuthorized = lowered.some(([header]) => header === "authorization");
  // Who signs in does so to a server by its name: two names of one address can be two accounts.
  return { type, url, headers: lowered.sort(), oauth, account: isAuthorized ? undefined : name };
}
