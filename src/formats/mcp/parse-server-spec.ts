import { isAbsolute, resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { copyJson } from "../../tools/json-copy.ts";
import type { JsonComplain } from "../text/json-fields.ts";
import { type McpDialect, rulesOf, type VariableLookup } from "./mcp-dialects.ts";
import type { LocalServerSpec, McpServerSpec, RemoteServerSpec, ServerOAuthSpec, UnconfiguredServer } from "./mcp-server-spec.ts";
import { EntryReader, kindOf, readToolChoice, reportRest, shown } from "./server-entry.ts";

export interface ServerSpecOptions {
  readonly dialect: McpDialect;
  /** Looks up the values of variables. Absent: no variable has a value. */
  readonly variables?: VariableLookup | undefined;
  /** `indirect`: the values in `env` are names of variables of the host. Default: `direct`. */
  readonly envValueMode?: "direct" | "indirect" | undefined;
  /** The absolute folder of the skill, plugin or project: the base of a relative `cwd`. Absent: the folder in which the server is used. */
  readonly folder?: string | undefined;
  /** For diagnostics. */
  readonly file?: string | undefined;
}

/** The result of an entry. `refused`: it has an error, which a diagnostic reports. */
export type ParsedServer =
  | { readonly state: "ready"; readonly name: string; readonly spec: McpServerSpec }
  | { readonly state: "unconfigured"; readonly name: string; readonly server: UnconfiguredServer }
  | { readonly state: "refused"; readonly name: string };

/**
 * Reads one server's entry of an untrusted configuration. An invalid value is an error and refuses this server; keys without
 * effect are reported. No diagnostic shows an expanded value. Never throws.
 */
export function parseServerSpec(
  name: string,
  value: unknown,
  options: ServerSpecOptions,
): { server: ParsedServer; diagnostics: readonly Diagnostic[] } {
  const diagnostics: Diagnostic[] = [];
  const { file } = options;
  const complain: JsonComplain = (severity, code, message) => {
    if (diagnostics.length < maxDiagnostics)
      diagnostics.push({ severity, code, message, source: name, ...(file !== undefined && { file }) });
  };
  const copy = copyJson(value);
  if (copy.ok) return { server: readServer(name, copy.value, { ...options, complain }), diagnostics };
  complain("error", "MCP_ENTRY_UNREADABLE", `MCP server ${shown(name)}: ${shown(copy.path)} ${copy.reason}. Use plain data.`, []);
  return { server: { state: "refused", name }, diagnostics };
}

const maxDiagnostics = 100;

interface ReadServerOptions extends ServerSpecOptions {
  readonly complain: JsonComplain;
  readonly about?: (input: string) => string | undefined;
}

/** Reads an entry that is plain JSON. */
export function readServer(name: string, value: unknown, options: ReadServerOptions): ParsedServer {
  const { complain, dialect, variables = () => undefined, about = () => undefined } = options;
  const reading = { name, rules: rulesOf(dialect), lookup: variables, about, complain };
  const entry = new EntryReader(isRecord(value) ? value : {}, reading);
  if (name.trim() === "") entry.error("MCP_NAME", "A server needs a non-empty name.", []);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they would change a terminal, or end a line of a log
  else if (name.length > 200 || /[\u0000-\u001f\u007f]/.test(name) || name === "__proto__")
    entry.error("MCP_NAME", "This is not a valid server name. Use up to 200 visible characters.", []);
  if (!isRecord(value)) entry.error("MCP_ENTRY_TYPE", `Its entry must be an object, not ${kindOf(value)}.`, []);
  const known = dialect === "session" ? knownReason(entry) : undefined;
  if (known !== undefined && !entry.isRefused) return { state: "unconfigured", name, server: Object.freeze({ name, reason: known }) };
  const type = entry.isRefused ? undefined : readType(entry);
  const spec = type === undefined ? undefined : type === "stdio" ? readLocal(name, entry, options) : readRemote(name, type, entry);
  if (spec === undefined || entry.isRefused) return { state: "refused", name };
  reportRest(entry, spec.type);
  if (entry.needs.length === 0) return { state: "ready", name, spec: Object.freeze(spec) };
  return { state: "unconfigured", name, server: Object.freeze({ name, type: spec.type, reason: entry.needs.join(" ") }) };
}

/** The plain data of an unconfigured server contains only the reason, not how to start it. */
function knownReason(entry: EntryReader): string | undefined {
  return entry.key("command", "url", "httpUrl", "serverUrl") === undefined ? entry.text("reason") : undefined;
}

type ServerType = McpServerSpec["type"];

const types: Readonly<Record<string, ServerType>> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamable_http: "http",
  streamablehttp: "http",
  remote: "http",
  sse: "sse",
};

function readType(entry: EntryReader): ServerType | undefined {
  const key = entry.key("type", "transport");
  const given = key === undefined ? undefined : entry.text(key);
  if (given !== undefined) {
    if (Object.hasOwn(types, given.toLowerCase())) return types[given.toLowerCase()];
    return entry.error("MCP_TYPE_UNKNOWN", `${shown(given)} is not a supported server type. Use "stdio", "http" or "sse".`, [key!]);
  }
  if (key !== undefined) return undefined;
  if (entry.key("command") !== undefined) return "stdio";
  if (entry.key("httpUrl", "url", "serverUrl") !== undefined) return "http";
  return entry.error("MCP_ENTRY_EMPTY", 'Its entry has neither "command" nor "url". Add one.', []);
}

function readLocal(name: string, entry: EntryReader, options: ReadServerOptions): LocalServerSpec | undefined {
  const { command, args } = readCommand(entry);
  const tools = readToolChoice(entry);
  return {
    name,
    type: "stdio",
    command,
    args: Object.freeze(args),
    env: readEnvironment(entry, options.envValueMode ?? "direct"),
    cwd: readFolder(entry, options),
    ...tools,
  };
}

function readCommand(entry: EntryReader): { command: string; args: string[] } {
  // Some clients write the whole command as one list.
  const words = Array.isArray(entry.raw("command")) ? entry.filledList("command", "command") : undefined;
  const [command = "", ...before] = words ?? [entry.filled("command", "command")];
  const args = [...before, ...(entry.filledList("args", "args") ?? [])] as string[];
  for (const [index, arg] of args.entries()) {
    if (!isExample(arg.replace(/^--?[\w-]{1,100}=/, ""))) continue;
    entry.warn("MCP_VALUE_EXAMPLE", `"args" → element ${index + 1} still has a placeholder value. Replace it.`, ["args", index]);
  }
  if (command.trim() === "" && !entry.isRefused) entry.need('It has no command. Set "command" to the program that starts it.');
  if (words === undefined && args.length === 0 && /^[\w.@-]+\s+\S/.test(command))
    entry.warn("MCP_COMMAND_WORDS", '"command" must be the name of a program only. Move its arguments to "args".', ["command"]);
  return { command, args };
}

function readFolder(entry: EntryReader, { folder, dialect }: ReadServerOptions): string | undefined {
  const cwd = entry.filled(entry.key("cwd", "workingDirectory", "working_directory") ?? "cwd", "cwd") || undefined;
  if (cwd === undefined) return rulesOf(dialect).startsInFolder ? folder : undefined;
  return folder === undefined || isAbsolute(cwd) ? cwd : resolve(folder, cwd);
}

function readRemote(name: string, type: RemoteServerSpec["type"], entry: EntryReader): RemoteServerSpec {
  const url = readUrl(entry);
  const tools = readToolChoice(entry);
  return { name, type, url, headers: readHeaders(entry), oauth: readOAuth(entry), ...tools };
}

function readUrl(entry: EntryReader): string {
  const key = entry.key("httpUrl", "url", "serverUrl") ?? "url";
  const url = entry.filled(key, "url")?.trim() ?? "";
  if ((url === "" || isExample(url)) && !entry.isRefused)
    entry.need(`It has no URL. Set "${key}" to the server's URL, which begins with https://.`);
  if (url === "" || entry.needs.length > 0) return url;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    entry.error("MCP_URL_INVALID", `"${key}" is not a valid URL. Use one that begins with https:// or http://.`, [key]);
  } else if (parsed.username !== "" || parsed.password !== "") {
    entry.error("MCP_URL_PASSWORD", `"${key}" contains a user name or password, which is not sent. Use an Authorization header.`, [key]);
  }
  return url;
}

/** A server as an option of a session: plain data that is read back, literally, as the same server. */
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

type Texts = Readonly<Record<string, string>>;

/** The variables of a local server: those with a value, and those that are passed on by name. */
function readEnvironment(entry: EntryReader, mode: "direct" | "indirect"): Texts {
  const key = entry.key("env", "environment") ?? "env";
  const env: Record<string, string> = Object.create(null);
  for (const name of entry.names(entry.key("env_vars") ?? "env_vars") ?? []) passOn(name, entry, env);
  for (const [name, value] of entry.filledMap(key, "env") ?? []) {
    if (name === "" || /[=\0]/.test(name))
      entry.error("MCP_ENV_NAME", `${shown(name)} in "${key}" is not a valid variable name.`, [key, name]);
    else if (mode === "indirect") indirect(name, value, entry, env, key);
    else env[name] = value;
  }
  for (const [name, value] of Object.entries(env)) adviseValue(entry, key, name, value);
  return Object.freeze(env);
}

function passOn(name: string, entry: EntryReader, env: Record<string, string>): void {
  const value = entry.environment(name);
  if (value !== undefined) env[name] = value;
  else entry.info("MCP_VARIABLE_UNSET", `Environment variable ${shown(name)}, which is passed to the server, is not set.`, ["env_vars"]);
}

function indirect(name: string, variable: string, entry: EntryReader, env: Record<string, string>, key: string): void {
  const value = entry.environment(variable);
  if (value !== undefined) {
    env[name] = value;
    return;
  }
  // The text may be the secret itself, written in place of a name.
  const message = `"${key}" → ${shown(name)} names an environment variable that the host does not have, so the server does not get it. Set it, or fix the name.`;
  entry.warn("MCP_VARIABLE_UNSET", message, [key, name]);
}

const unfilled = /^(?:\.\.\.|…|<[^<>]+>|(?:YOUR|MY|INSERT|ENTER|REPLACE)[-_ ][\w -]*|x{4,}|changeme)$/i;

/** Whether a value is a placeholder from an example. */
function isExample(value: string): boolean {
  return value.length < 200 && unfilled.test(value) && !value.includes("${");
}

function adviseValue(entry: EntryReader, key: string, name: string, value: string): void {
  const at = `"${key}" → ${shown(name)}`;
  if (value === "") entry.info("MCP_VALUE_EMPTY", `${at} is empty. Set a value if the server needs one.`, [key, name]);
  else if (isExample(value)) entry.warn("MCP_VALUE_EXAMPLE", `${at} still has a placeholder value. Replace it.`, [key, name]);
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// Line breaks would begin another header; characters beyond Latin-1 cannot be sent.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression detects these
const unsendable = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/;

/** The headers of each request to a remote server. */
function readHeaders(entry: EntryReader): Texts {
  const headers = new Map<string, readonly [string, string]>();
  const add = (name: string, value: string): void => void headers.set(name.toLowerCase(), [name, value]);
  const key = entry.key("headers", "http_headers") ?? "headers";
  for (const [name, value] of entry.filledMap(key, "headers") ?? []) {
    if (!isSendable(name, value, key, entry)) continue;
    adviseValue(entry, key, name, value.replace(/^\S+ /, ""));
    if (value.trim() !== "") add(name, value.trim());
  }
  for (const [name, variable] of entry.filledMap("env_http_headers", "headers") ?? []) {
    const value = entry.environment(variable);
    if (value === undefined)
      entry.warn(
        "MCP_VARIABLE_UNSET",
        `The environment variable ${shown(variable)} is not set, so the header ${shown(name)} is not sent. Set it.`,
        ["env_http_headers", name],
      );
    else if (isSendable(name, value, "env_http_headers", entry)) add(name, value.trim());
  }
  const bearer = readBearer(entry);
  if (bearer !== undefined && isSendable("Authorization", bearer, "bearer_token_env_var", entry)) add("Authorization", bearer);
  const all: Record<string, string> = Object.create(null);
  for (const [name, value] of headers.values()) all[name] = value;
  return Object.freeze(all);
}

function isSendable(name: string, value: string, key: string, entry: EntryReader): boolean {
  if (!headerName.test(name)) entry.error("MCP_HEADER", `${shown(name)} in "${key}" is not a valid header name.`, [key, name]);
  else if (unsendable.test(value.trim()))
    entry.error(
      "MCP_HEADER",
      `"${key}" → ${shown(name)} contains a line break or another character that is not allowed in a header. Remove it.`,
      [key, name],
    );
  else return true;
  return false;
}

function readBearer(entry: EntryReader): string | undefined {
  const name = entry.text("bearer_token_env_var");
  if (name === undefined) return undefined;
  const token = entry.environment(name)?.trim();
  if (token) return `Bearer ${token}`;
  entry.need(`Environment variable ${shown(name)}, which holds its token, is not set. Set it.`);
  return undefined;
}

/** The OAuth settings of the entry. */
function readOAuth(entry: EntryReader): ServerOAuthSpec | undefined {
  const value = entry.raw("oauth");
  const resource = entry.text("oauth_resource");
  if (value !== undefined && typeof value !== "boolean" && !isRecord(value))
    return entry.error("MCP_FIELD_TYPE", `"oauth" must be an object, not ${kindOf(value)}.`, ["oauth"]);
  const own = isRecord(value) ? readOAuthFields(value, entry) : {};
  const oauth = { ...own, ...(resource !== undefined && { resource }) };
  return isRecord(value) || Object.keys(oauth).length > 0 ? Object.freeze(oauth) : undefined;
}

function readOAuthFields(value: Readonly<Record<string, unknown>>, entry: EntryReader): ServerOAuthSpec {
  const first = (...keys: readonly string[]): unknown =>
    keys.map((key) => (Object.hasOwn(value, key) ? value[key] : undefined)).find((found) => found != null);
  const text = (...keys: readonly string[]): string | undefined => {
    const found = first(...keys);
    if (found === undefined || (typeof found === "string" && found !== "" && !found.includes("\0"))) return found as string | undefined;
    return entry.error("MCP_FIELD_TYPE", `"oauth" → "${keys[0]}" must be a non-empty string.`, ["oauth"]);
  };
  const fields = {
    clientId: text("clientId", "client_id"),
    clientSecret: text("clientSecret", "client_secret"),
    scopes: readScopes(first("scopes", "scope"), entry),
    callbackPort: readPort(first("callbackPort", "callback_port"), entry),
    resource: text("resource"),
    issuer: text("issuer"),
    clientMetadataUrl: readDocumentUrl(text("clientMetadataUrl", "client_metadata_url"), entry),
    grantType: readGrantType(first("grantType", "grant_type"), entry),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined));
}

function readScopes(value: unknown, entry: EntryReader): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const scopes = typeof value === "string" ? value.split(/\s+/).filter((scope) => scope !== "") : value;
  // RFC 6749, section 3.3.
  if (Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)))
    return Object.freeze(scopes as string[]);
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "scopes" must be an array of scopes, or a string with spaces between them.', ["oauth"]);
}

/** The URL of the metadata document that an authorization server fetches to identify this client. */
function readDocumentUrl(value: string | undefined, entry: EntryReader): string | undefined {
  const url = value !== undefined && URL.canParse(value) ? new URL(value) : undefined;
  if (value === undefined || (url?.protocol === "https:" && url.pathname !== "/")) return value;
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "clientMetadataUrl" must be the https URL of a document.', ["oauth"]);
}

function readGrantType(value: unknown, entry: EntryReader): ServerOAuthSpec["grantType"] {
  if (value === undefined || value === "authorization_code" || value === "client_credentials") return value;
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "grantType" must be "authorization_code" or "client_credentials".', ["oauth"]);
}

function readPort(value: unknown, entry: EntryReader): number | undefined {
  if (value === undefined || (Number.isInteger(value) && (value as number) > 0 && (value as number) < 65_536))
    return value as number | undefined;
  return entry.error("MCP_FIELD_TYPE", '"oauth" → "callbackPort" must be a port number from 1 to 65535.', ["oauth"]);
}
