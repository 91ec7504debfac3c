import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { copyJson } from "../../tools/json-copy.ts";
import { createTextReport } from "../skills/text-report.ts";
import { type JsonDocument, type JsonPath, parseJson } from "../text/json-document.ts";
import type { JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import { detectDialect, type McpDialect, type VariableLookup } from "./mcp-dialects.ts";
import { type ParsedServer, readServer } from "./parse-server-spec.ts";
import { kindOf } from "./server-entry.ts";

export interface McpConfigOptions {
  /** The file for diagnostics; it determines the dialect if `dialect` is absent. */
  readonly file: string;
  readonly dialect?: McpDialect | undefined;
  /** Looks up the values of variables. Absent: no variable has a value. */
  readonly variables?: VariableLookup | undefined;
  /** Absolute base of a relative `cwd`. Absent: the folder in which the servers are used. */
  readonly folder?: string | undefined;
  /** The path of the map of servers in the file. Absent: the places of all known clients. */
  readonly at?: JsonPath | undefined;
}

export interface McpConfig {
  readonly dialect: McpDialect;
  /** In the order of the file; names are unique. */
  readonly servers: readonly ParsedServer[];
  /** The position of each server's entry, by name. Empty if the input was not text. */
  readonly places: ReadonlyMap<string, Position>;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Reads a configuration of MCP servers in the forms of all known clients: comments and trailing commas are accepted, the
 * wrapper is detected, a missing type is inferred, and variables are expanded as in the file's own client. An invalid server
 * does not affect the others. Never throws; no diagnostic shows the value of a variable.
 */
export function parseMcpConfig(input: string | object, options: McpConfigOptions): McpConfig {
  const { file } = options;
  const dialect = options.dialect ?? "claude";
  const places = new Map();
  if (typeof input === "string") return parseText(input, options);
  const copy = copyJson(input);
  if (copy.ok) return readDocument({ value: copy.value, offsetOf: () => undefined }, "", options);
  const message = `The configuration cannot be read: ${JSON.stringify(copy.path)} ${copy.reason}. Use plain data.`;
  return { dialect, servers: [], places, diagnostics: [{ severity: "error", code: "MCP_CONFIG_UNREADABLE", message, file }] };
}

function parseText(text: string, options: McpConfigOptions): McpConfig {
  const { file, dialect = "claude" } = options;
  const places = new Map();
  if (text.length > maxJsonBytes) return { dialect, servers: [], places, diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const { document, faults } = parseJson(text, { comments: true });
  const report = createTextReport(text, file);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  if (document === undefined) return { dialect, servers: [], places, diagnostics: report.diagnostics };
  const config = readDocument(document, text, options);
  report.take(config.diagnostics);
  return { ...config, diagnostics: report.diagnostics };
}

function readDocument(document: JsonDocument, text: string, options: McpConfigOptions): McpConfig {
  const { file, at } = options;
  const dialect = options.dialect ?? detectDialect(file, document.value);
  const report = createTextReport(text, file);
  const complain: JsonComplain = (severity, code, message, path) => report.add(severity, code, message, document.offsetOf(path));
  const listing = findServers(document.value, at, complain);
  const inputs = readInputs(document.value);
  const servers = listing.entries.map(({ name, value, path }) =>
    readServer(name, value, {
      dialect,
      variables: withDefaults(options.variables, inputs),
      folder: options.folder,
      about: (input) => inputs.get(input)?.description,
      complain: (severity, code, message, rest) => complain(severity, code, message, [...path, ...rest]),
    }),
  );
  const places = new Map<string, Position>();
  for (const { name, path } of listing.entries) {
    const offset = document.offsetOf(path);
    if (offset !== undefined) places.set(name, report.position(offset));
  }
  return { dialect, servers, places, diagnostics: withSource(report.diagnostics, listing) };
}

// The server is also in `source`, so that programs need not parse the message.
function withSource(diagnostics: readonly Diagnostic[], { entries }: ServerListing): readonly Diagnostic[] {
  const names = new Map(entries.map(({ name }) => [`MCP server ${JSON.stringify(name)}: `, name]));
  return diagnostics.map((diagnostic) => {
    const start = /^MCP server "(?:[^"\\]|\\.)*": /.exec(diagnostic.message)?.[0];
    const source = start === undefined ? undefined : names.get(start);
    return source === undefined ? diagnostic : { ...diagnostic, source };
  });
}

interface Input {
  readonly description: string | undefined;
  readonly fallback: string | undefined;
}

/** The inputs that VS Code asks for, by id. A password has no default. */
function readInputs(value: unknown): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  const list: unknown = isRecord(value) && Object.hasOwn(value, "inputs") ? value["inputs"] : undefined;
  for (const input of Array.isArray(list) ? list.slice(0, 1_000) : []) {
    const text = (key: string): string | undefined => {
      const found: unknown = isRecord(input) && Object.hasOwn(input, key) ? (input as Json)[key] : undefined;
      return typeof found === "string" && found !== "" ? found : undefined;
    };
    const id = text("id");
    const isSecret = isRecord(input) && input["password"] === true;
    if (id !== undefined) inputs.set(id, { description: text("description"), fallback: isSecret ? undefined : text("default") });
  }
  return inputs;
}

function withDefaults(variables: VariableLookup | undefined, inputs: ReadonlyMap<string, Input>): VariableLookup {
  return (reference) => variables?.(reference) ?? (reference.kind === "input" ? inputs.get(reference.name)?.fallback : undefined);
}

interface ServerEntry {
  readonly name: string;
  readonly value: unknown;
  readonly path: JsonPath;
}

interface ServerListing {
  readonly entries: readonly ServerEntry[];
}

const maxServers = 1_000;
const wrappers: readonly JsonPath[] = [["mcpServers"], ["mcp_servers"], ["servers"], ["mcp", "servers"], ["mcp"]];

/** Finds the servers in a configuration: under the keys of the known clients, or as the whole document. */
function findServers(value: unknown, at: JsonPath | undefined, complain: JsonComplain): ServerListing {
  const path = at ?? wrappers.find((candidate) => isWrapper(valueAt(value, candidate), candidate)) ?? (isBareMap(value) ? [] : undefined);
  const found = path === undefined ? undefined : valueAt(value, path);
  if (path !== undefined && Array.isArray(found)) return limited(listEntries(found, path, complain), path, complain);
  if (path !== undefined && isRecord(found)) return limited(mapEntries(found, path), path, complain);
  if (path === undefined) {
    const what = isRecord(value) ? "contains no MCP servers" : `must be an object, not ${kindOf(value)}`;
    complain("error", "MCP_CONFIG_NONE", `This file ${what}. Use { "mcpServers": { "name": { … } } }.`, []);
  } else if (typeof found === "string") {
    complain("info", "MCP_CONFIG_ELSEWHERE", `The servers are in another file, named by "${path.at(-1)}". Pass that file instead.`, path);
  } else if (found !== undefined && found !== null) {
    complain("error", "MCP_CONFIG_TYPE", `"${path.at(-1)}" must be an object of servers by name, not ${kindOf(found)}.`, path);
  }
  return { entries: [] };
}

function valueAt(value: unknown, path: JsonPath): unknown {
  let at = value;
  for (const key of path)
    at = typeof at === "object" && at !== null && Object.hasOwn(at, key) ? (at as Record<string | number, unknown>)[key] : undefined;
  return at;
}

// Settings use the keys "mcp" and "servers" for other purposes too.
function isWrapper(value: unknown, path: JsonPath): boolean {
  if (path.length === 1 && (path[0] === "mcpServers" || path[0] === "mcp_servers")) return value !== undefined;
  if (Array.isArray(value)) return path[0] === "servers" && value.some(isServerLike);
  return isRecord(value) && (Object.keys(value).length === 0 || Object.values(value).some(isServerLike));
}

function isBareMap(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const members = Object.entries(value).filter(([key]) => !isComment(key));
  return members.every(([, member]) => isRecord(member)) && (members.length === 0 || members.some(([, member]) => isServerLike(member)));
}

function isServerLike(value: unknown): boolean {
  return isRecord(value) && ["command", "url", "httpUrl", "serverUrl"].some((key) => Object.hasOwn(value, key));
}

function isComment(key: string): boolean {
  return /^(?:[$_]|\/\/|#)/.test(key);
}

function mapEntries(map: Json, path: JsonPath): readonly ServerEntry[] {
  return Object.entries(map)
    .filter(([name, value]) => !isComment(name) || isRecord(value))
    .map(([name, value]) => ({ name, value, path: [...path, name] }));
}

function listEntries(list: readonly unknown[], path: JsonPath, complain: JsonComplain): readonly ServerEntry[] {
  const taken = new Set<string>();
  return list.flatMap((value, index) => {
    const own = isRecord(value) ? [value["id"], value["name"]].find((name) => typeof name === "string" && name !== "") : undefined;
    const name = (own as string | undefined) ?? String(index);
    const at = [...path, index];
    if (taken.has(name)) {
      complain(
        "warning",
        "MCP_NAME_TAKEN",
        `Two servers are named ${JSON.stringify(name.slice(0, 100))}; the first is used. Rename one.`,
        at,
      );
      return [];
    }
    taken.add(name);
    return [{ name, value, path: at }];
  });
}

function limited(entries: readonly ServerEntry[], path: JsonPath, complain: JsonComplain): ServerListing {
  if (entries.length <= maxServers) return { entries };
  const message = `There are ${entries.length} servers, but only the first ${maxServers} are read. Split them into several files.`;
  complain("error", "MCP_TOO_MANY", message, path);
  return { entries: entries.slice(0, maxServers) };
}
