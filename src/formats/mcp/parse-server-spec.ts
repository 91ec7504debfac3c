import { isAbsolute, resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { copyJson } from "../../tools/json-copy.ts";
import type { JsonComplain } from "../text/json-fields.ts";
import type { VariableLookup } from "./expand-variables.ts";
import { type McpDialect, rulesOf } from "./mcp-dialects.ts";
import type { LocalServerSpec, McpServerSpec, RemoteServerSpec, UnconfiguredServer } from "./mcp-server-spec.ts";
import { isExample, readEnvironment, readHeaders, readOAuth } from "./server-credentials.ts";
import { createEntryReader, type EntryReader, kindOf, readToolChoice, reportRest, shown } from "./server-entry.ts";

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
  const entry = createEntryReader(isRecord(value) ? value : {}, reading);
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
