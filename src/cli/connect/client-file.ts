import { existsSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { parse as parseToml } from "smol-toml";
import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { decodeText } from "../../formats/text/decode-text.ts";
import { editJson } from "../../formats/text/edit-json.ts";
import { appendTomlTable, removeTomlTable, type TomlTable, writeTomlTable } from "../../formats/text/edit-toml.ts";
import { parseJson } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { CliError } from "../cli-error.ts";
import type { McpClient } from "./mcp-clients.ts";

/** A configuration file of a client. */
export interface ClientFile {
  readonly path: string;
  /** Empty: it does not exist. */
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
}

type Format = McpClient["format"];

/**
 * Reads a client's file. One that does not exist is empty.
 * @throws CliError `CLIENT_FILE` when it cannot be read or parsed.
 */
export function readClientFile(path: string, format: Format): ClientFile {
  if (!existsSync(path)) return { path, text: "", value: {} };
  const read = readTextFile(path, maxJsonBytes);
  if (!read.ok) throw fault(path, read.diagnostic.message);
  const { text, diagnostics } = decodeText(read.bytes, path);
  // Written back, such a text would be another one.
  const [changed] = diagnostics.filter(({ code }) => code.startsWith("TEXT_"));
  if (changed !== undefined) throw fault(path, changed.message);
  const mark = read.bytes[0] === 0xef && read.bytes[1] === 0xbb ? "\uFEFF" : "";
  const value = parseText(text, format, path);
  if (!isRecord(value)) throw fault(path, "It does not contain an object.");
  return { path, text: mark + text, value };
}

function parseText(text: string, format: Format, path: string): unknown {
  if (text.trim() === "") return {};
  if (format === "json") {
    const { document, faults } = parseJson(text, { comments: true });
    if (document === undefined) throw fault(path, `${faults[0]!.message} (${lineAt(text, faults[0]!.offset)})`);
    return document.value;
  }
  try {
    return parseToml(text);
  } catch (error) {
    throw fault(path, errorMessage(error).split("\n")[0]!);
  }
}

function lineAt(text: string, offset: number): string {
  return `line ${text.slice(0, offset).split("\n").length}`;
}

function fault(path: string, why: string): CliError {
  return new CliError("CLIENT_FILE", `${path} cannot be changed: ${why} Fix it, or print the entry with --print and add it by hand.`, 1);
}

/** The entries of a client's file by name. */
export function entriesOf({ path, value }: ClientFile, key: string): Readonly<Record<string, unknown>> {
  const entries = Object.hasOwn(value, key) ? value[key] : {};
  if (!isRecord(entries)) throw fault(path, `"${key}" in it is not an object.`);
  return entries;
}

/**
 * The text of a client's file with one entry set or, for undefined, removed. Everything else stays as it is written.
 * @throws CliError `CLIENT_FILE` when the entry is written in a form that cannot be changed alone.
 */
export function withEntry(file: ClientFile, client: Pick<McpClient, "format" | "key">, name: string, entry: TomlTable | undefined): string {
  const path = [client.key, name];
  const text = client.format === "json" ? editJson(file.text, path, entry) : editToml(file, path, entry);
  return verified(file, text, client.format, path, entry);
}

function editToml(file: ClientFile, path: readonly string[], entry: TomlTable | undefined): string {
  const entries = entriesOf(file, path[0]!);
  const bare = Object.hasOwn(entries, path[1]!) ? removeTomlTable(file.text, path) : file.text;
  if (bare === undefined) throw fault(file.path, `"${path.join(".")}" is not written as a table of its own.`);
  return entry === undefined ? bare : appendTomlTable(bare, path, entry);
}

/** The text of a JSON file with a text added to, or removed from, a list of texts. */
export function withListed(file: ClientFile, path: readonly string[], item: string, isListed: boolean): string {
  const list = path.reduce<unknown>((value, key) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined), file.value);
  if (list !== undefined && !Array.isArray(list)) throw fault(file.path, `"${path.join(".")}" in it is not a list.`);
  const index = list?.indexOf(item) ?? -1;
  if (isListed === index >= 0) return file.text;
  if (!isListed) return editJson(file.text, [...path, index], undefined);
  return list === undefined ? editJson(file.text, path, [item]) : editJson(file.text, [...path, list.length], item);
}

/** Compares what was written with what was meant, because a wrong edit would break another program. */
function verified(file: ClientFile, text: string, format: Format, [key, name]: readonly string[], entry: TomlTable | undefined): string {
  const { [name!]: _before, ...others } = entriesOf(file, key!);
  const after = parseText(text.replace(/^\uFEFF/, ""), format, file.path) as Readonly<Record<string, unknown>>;
  const { [key!]: servers = {}, ...rest } = after;
  const { [key!]: _servers, ...restBefore } = file.value;
  const wanted = entry === undefined ? others : { ...others, [name!]: entry };
  if (isDeepStrictEqual(plain(servers), plain(wanted)) && isDeepStrictEqual(plain(rest), plain(restBefore))) return text;
  throw fault(file.path, "The entry cannot be changed without changing other settings.");
}

// The parsers differ in prototypes, which the files do not have.
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? String(item) : item)));
}

/** An entry as it is written into a new file, to be added by hand. */
export function printEntry({ format, key }: Pick<McpClient, "format" | "key">, name: string, entry: TomlTable): string {
  return format === "json" ? `${JSON.stringify({ [key]: { [name]: entry } }, null, 2)}\n` : writeTomlTable([key, name], entry);
}
