import type { McpServerSpec } from "./mcp-server-spec.ts";
import type { EntryReader } from "./server-entry.ts";

type ToolChoice = Pick<McpServerSpec, "tools" | "timeout" | "isDisabled" | "excludedTools">;

/** Which tools a server may offer, how long it may take, and whether it is switched on at all. */
export function readToolChoice(entry: EntryReader): ToolChoice {
  const chosen = entry.names(entry.key("tools", "includeTools", "enabled_tools") ?? "tools");
  const excluded = entry.names(entry.key("excludeTools", "excludedTools", "disabled_tools") ?? "excludeTools");
  return {
    tools: chosen === undefined || chosen.includes("*") ? undefined : Object.freeze([...new Set(chosen)]),
    ...(excluded !== undefined && excluded.length > 0 && { excludedTools: Object.freeze([...new Set(excluded)]) }),
    timeout: readTimeout(entry),
    isDisabled: entry.flag(entry.key("disabled", "isDisabled") ?? "disabled") === true || entry.flag("enabled") === false,
  };
}

// What a timer can wait for.
const maxTimeout = 2_147_483_647;

function readTimeout(entry: EntryReader): number | undefined {
  const key = entry.key("timeout", "tool_timeout_sec");
  const value = key === undefined ? undefined : entry.raw(key);
  if (key === undefined) return undefined;
  if (typeof value === "number" && value > 0) return Math.min(Math.ceil(key === "timeout" ? value : value * 1_000), maxTimeout);
  const unit = key === "timeout" ? "milliseconds" : "seconds";
  entry.warn("MCP_TIMEOUT_INVALID", `"${key}" must be a number of ${unit} above 0, and is left out.`, [key]);
  return undefined;
}

/** Keys of other clients that would change what a server does there, and have no effect here. */
const unsupported: Readonly<Record<string, string>> = {
  envFile: 'Files of variables are not read. Write the variables into "env".',
  headersHelper: 'No command is run for headers. Write them into "headers".',
  authProviderType: 'This way of signing in is not known here. Write an Authorization header into "headers" if the server needs one.',
  sandbox: "The server runs without a sandbox.",
  sandboxEnabled: "The server runs without a sandbox.",
};

/** Keys of other clients that change something else, which is decided elsewhere here. */
const decidedElsewhere: Readonly<Record<string, string>> = {
  trust: "whether a call needs permission",
  alwaysAllow: "whether a call needs permission",
  autoApprove: "whether a call needs permission",
  startup_timeout_sec: "how long connecting may take",
  startup_timeout_ms: "how long connecting may take",
};

const annotations = ["id", "name", "displayName", "title", "description", "version", "$schema"];
const localOnly = ["command", "args", "env", "environment", "env_vars", "cwd", "workingDirectory", "working_directory"];
const remoteOnly = [
  "url",
  "httpUrl",
  "serverUrl",
  "headers",
  "http_headers",
  "env_http_headers",
  "bearer_token_env_var",
  "oauth",
  "oauth_resource",
];

/** Says which keys had no effect. */
export function reportRest(entry: EntryReader, type: McpServerSpec["type"]): void {
  for (const key of [...annotations, "type", "transport"]) entry.raw(key);
  const unread = new Set(entry.unread());
  const foreign = (type === "stdio" ? remoteOnly : localOnly).filter((key) => entry.raw(key) !== undefined);
  if (foreign.length > 0)
    entry.warn("MCP_KEYS_UNUSED", `${listed(foreign)}: of no use to a server of type "${type}". Remove it, or correct the type.`, [
      foreign[0]!,
    ]);
  const unknown: string[] = [];
  for (const key of unread) {
    if (foreign.includes(key) || entry.raw(key) === undefined) continue;
    if (Object.hasOwn(unsupported, key)) entry.warn("MCP_KEY_UNSUPPORTED", `"${key}" has no effect here. ${unsupported[key]}`, [key]);
    else if (Object.hasOwn(decidedElsewhere, key))
      entry.info("MCP_KEY_UNSUPPORTED", `"${key}" has no effect here: ${decidedElsewhere[key]} is not said in this place.`, [key]);
    else unknown.push(key);
  }
  if (unknown.length > 0) entry.info("MCP_KEYS_UNKNOWN", `${listed(unknown)}: without meaning here.`, [unknown[0]!]);
}

function listed(keys: readonly string[]): string {
  const names = keys.slice(0, 20).map((key) => JSON.stringify(key.slice(0, 60)));
  return keys.length > names.length ? `${names.join(", ")} and ${keys.length - names.length} more` : names.join(", ");
}
