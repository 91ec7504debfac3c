import { positionAt } from "../base/diagnostic.ts";
import { isRecord } from "../base/json.ts";
import { parseJson } from "../formats/text/json-document.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import type { ListedTool } from "../session/session.ts";
import { SchemaIndex } from "../tools/schema/schema-structure.ts";
import { usageError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";
import { didYouMean } from "./did-you-mean.ts";
import type { Output } from "./output.ts";
import type { CliIo } from "./process-io.ts";
import { visibleLine, visibleText } from "./terminal-style.ts";

const patienceMs = 1_000;

interface GivenArguments {
  /** JSON, or "-" for stdin. */
  readonly json: string | undefined;
  /** `key=value` each. */
  readonly pairs: readonly string[];
  /** Whether options for single arguments follow: then a pipe is not read. */
  readonly hasFlags: boolean;
}

/** A tool's arguments by name. It has no prototype, so any name is safe. */
type Arguments = Record<string, unknown>;

/** The arguments of a call: JSON from the command line or stdin, overlaid with the `--arg` pairs. */
export async function readArguments({ json, pairs, hasFlags }: GivenArguments, { io, out }: CommandContext): Promise<Arguments> {
  const fromStdin = json === "-" || (json === undefined && pairs.length === 0 && !hasFlags && io.stdin.isPiped);
  const waits = (): void => out.note("Waiting for arguments as JSON on stdin. To call without arguments, pass '{}'.");
  const text = fromStdin ? await readStdin(io, waits) : json;
  const base = text === undefined || text.trim() === "" ? {} : parseObject(text, fromStdin ? "stdin" : "the arguments");
  return Object.assign(Object.create(null), base, parsePairs(pairs));
}

async function readStdin(io: CliIo, waits: () => void): Promise<string> {
  const timer = setTimeout(waits, patienceMs);
  try {
    const text = await io.stdin.read(io.signal);
    if (text.length > maxJsonBytes)
      throw usageError(`stdin has more than ${maxJsonBytes} characters. Pass the path of a file as an argument instead.`);
    return text;
  } finally {
    clearTimeout(timer);
  }
}

function parseObject(text: string, where: string): object {
  const { document, faults } = parseJson(text);
  const fault = faults[0];
  if (document === undefined && fault) {
    const { line, column } = positionAt(text, fault.offset);
    throw usageError(`The JSON in ${where} is not valid (${line}:${column}): ${fault.message}`);
  }
  const value = document?.value;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw usageError(`Tool arguments must be a JSON object such as '{"path": "src"}', or --arg path=src.`);
}

function parsePairs(pairs: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = Object.create(null);
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) throw usageError(`--arg requires the form name=value, but got ${JSON.stringify(pair)}.`);
    values[pair.slice(0, at)] = parseValue(pair.slice(at + 1));
  }
  return values;
}

function parseValue(text: string): unknown {
  const { document } = parseJson(text);
  return document === undefined ? text : document.value;
}

/** One argument of a tool, as an option of the command line. */
export interface ToolFlag {
  /** The property's name: `dry_run`. */
  readonly name: string;
  /** `--dry-run`; for a name that an option cannot have, `--arg dry_run=`. */
  readonly flag: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly types: ReadonlySet<string>;
  readonly isRequired: boolean;
}

/** The arguments that the options after the tool's name give. Options of unknown arguments and values of a wrong type are usage errors. */
export function parseFlags(words: readonly string[], tool: ListedTool, reserved: readonly string[]): Arguments {
  const flags = toolFlags(tool, reserved);
  const args: Arguments = Object.create(null);
  for (let index = 0; index < words.length; index++) {
    const [, dashes = "", option = "", inline] = /^(--?)([^=]*)(?:=([\s\S]*))?$/.exec(words[index]!) ?? [];
    if (dashes === "")
      throw usageError(
        `Unexpected argument ${JSON.stringify(words[index])}. Pass arguments as options (--name value) or as one JSON object.`,
      );
    const isNegated = option.startsWith("no-") && !flags.some((flag) => matches(flag, option));
    const flag = flags.find((each) => matches(each, isNegated ? option.slice(3) : option));
    if (flag === undefined || dashes !== "--" || (isNegated && !flag.types.has("boolean"))) throw unknownFlag(words[index]!, tool, flags);
    const next = words[index + 1];
    const isSwitch = flag.types.has("boolean") && inline === undefined && (isNegated || !/^(true|false)$/.test(next ?? ""));
    let text = isNegated ? "false" : (inline ?? (isSwitch ? "true" : undefined));
    if (text === undefined) {
      if (next === undefined || next.startsWith("--"))
        throw usageError(`${flag.flag} requires a value: ${flag.flag} ${placeholder(flag)}.`);
      text = next;
      index += 1;
    }
    add(args, flag, toValue(text, flag));
  }
  return args;
}

function unknownFlag(word: string, { name, parameters }: ListedTool, flags: readonly ToolFlag[]): Error {
  const option = word.split("=")[0]!;
  if (flags.length === 0 && !isRecord(parameters?.["properties"]))
    return usageError(`Tool "${name}" takes no arguments, so ${option} is unknown.`);
  const hint = didYouMean(
    option,
    flags.map(({ flag }) => flag),
  );
  return usageError(`Tool "${name}" has no argument ${option}.${hint} Run "skillhost call ${name} --help" to see all.`);
}

/** `dry_run`, `dryRun` and `dry-run` are the same option. */
function matches({ name }: ToolFlag, option: string): boolean {
  return name === option || optionName(name) === option;
}

function optionName(property: string): string {
  return property
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replaceAll("_", "-")
    .toLowerCase();
}

/** The arguments of a tool as options. Those whose names an option cannot have, or that skillhost has itself, are `--arg name=`. */
export function toolFlags({ parameters }: Pick<ListedTool, "parameters">, reserved: readonly string[]): readonly ToolFlag[] {
  const properties = isRecord(parameters?.["properties"]) ? parameters["properties"] : {};
  const required = Array.isArray(parameters?.["required"]) ? parameters["required"] : [];
  const options = Object.keys(properties).map(optionName);
  const schemas = new SchemaIndex(parameters);
  return Object.keys(properties).map((name, index) => {
    const option = options[index]!;
    const isOption = /^[a-z0-9][a-z0-9.-]*$/.test(option) && options.indexOf(option) === index && !reserved.includes(`--${option}`);
    const schema = target(properties[name], schemas);
    return {
      name,
      flag: isOption ? `--${option}` : `--arg ${name}=`,
      schema,
      types: typesOf(schema, schemas),
      isRequired: required.includes(name),
    };
  });
}

type Schema = Readonly<Record<string, unknown>>;

/** The schema that references lead to, with what is next to them. */
function target(schema: unknown, index: SchemaIndex): Schema {
  let found = schema;
  let siblings: Schema = {};
  for (let steps = 0; steps < 10 && isRecord(found) && typeof found["$ref"] === "string"; steps++) {
    const { $ref: reference, ...others } = found;
    siblings = { ...others, ...siblings };
    found = index.find(reference as string, found);
  }
  return isRecord(found) ? { ...found, ...siblings } : siblings;
}

/** The JSON types that a schema names itself, by its values, or by its alternatives. Empty: any. */
function typesOf(schema: Schema, index: SchemaIndex, depth = 0): ReadonlySet<string> {
  const { type, anyOf, oneOf, enum: values } = schema;
  if (type !== undefined)
    return new Set((Array.isArray(type) ? type : [type]).map((each) => (each === "integer" ? "number" : String(each))));
  const known = Object.hasOwn(schema, "const") ? [schema["const"]] : Array.isArray(values) ? values : undefined;
  if (known !== undefined) return new Set(known.map(typeOf));
  const choices = [anyOf, oneOf].flatMap((list) => (Array.isArray(list) && depth < 5 ? list : []));
  const types = choices.map((choice) => typesOf(target(choice, index), index, depth + 1));
  return types.some(({ size }) => size === 0) ? new Set() : new Set(types.flatMap((each) => [...each]));
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function add(args: Arguments, { name, flag, types }: ToolFlag, value: unknown): void {
  if (types.has("array") && Array.isArray(value)) args[name] = [...(Array.isArray(args[name]) ? args[name] : []), ...value];
  else if (Object.hasOwn(args, name)) throw usageError(`${flag} is given twice, but it takes one value.`);
  else args[name] = value;
}

/** The value that a text stands for: what the schema's types allow, text last. */
function toValue(text: string, { flag, types, schema }: ToolFlag): unknown {
  const { document } = parseJson(text);
  if (types.size === 0) return document === undefined ? text : document.value;
  if (document !== undefined && types.has(typeOf(document.value)) && typeof document.value !== "string") return document.value;
  if (types.has("string")) return text;
  if (types.has("array")) {
    const items = isRecord(schema["items"]) ? schema["items"] : {};
    return [toValue(text, { name: "", flag, schema: items, types: typesOf(items, new SchemaIndex(items)), isRequired: false })];
  }
  throw usageError(`${flag} requires ${[...types].map(typeNames).join(" or ")}, but got ${JSON.stringify(text)}.`);
}

function typeNames(type: string): string {
  return { number: "a number", boolean: "true or false", object: "a JSON object", null: "null" }[type] ?? type;
}

/** `<number>`, `<celsius|fahrenheit>` */
function placeholder({ schema, types }: Pick<ToolFlag, "schema" | "types">): string {
  const choices = listedValues({ schema, types });
  if (choices.length > 0 && choices.length <= 12)
    return `<${choices.map((each) => (typeof each === "string" ? visibleLine(each) : JSON.stringify(each))).join("|")}>`;
  const [type = "json", ...others] = [...types].filter((each) => each !== "null");
  if (others.length > 0) return "<value>";
  return { string: "<text>", number: "<number>", boolean: "<true|false>", array: "<value>" }[type] ?? "<json>";
}

function listedValues({ schema, types }: Pick<ToolFlag, "schema" | "types">): readonly unknown[] {
  const { enum: values, items } = schema;
  if (Array.isArray(values)) return values;
  return types.has("array") && isRecord(items) && Array.isArray(items["enum"]) ? items["enum"] : [];
}

/** The values of an argument, where its schema lists them, as they are typed. */
export function choicesOf(flag: ToolFlag): readonly string[] {
  const choices = listedValues(flag);
  const values = choices.length === 0 && flag.types.size === 1 && flag.types.has("boolean") ? [true, false] : choices;
  return values.map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
}

/** Prints how to call a tool, with an option for each argument. */
export function printToolUsage(tool: ListedTool, reserved: readonly string[], out: Output): void {
  const flags = toolFlags(tool, reserved);
  const { style } = out;
  const rows = flags.map((flag) => {
    const { schema, types, isRequired } = flag;
    const isAlone = types.size === 1 && types.has("boolean");
    const option = flag.flag.endsWith("=") || isAlone ? flag.flag : `${flag.flag} `;
    const left = `${visibleLine(option)}${isAlone && !flag.flag.endsWith("=") ? "" : placeholder(flag)}`;
    const notes = [
      ...(isRequired ? ["required"] : []),
      ...(types.has("array") ? ["repeatable"] : []),
      ...(Object.hasOwn(schema, "default") ? [`default: ${visibleLine(JSON.stringify(schema["default"]) ?? "")}`] : []),
    ];
    const description = typeof schema["description"] === "string" ? visibleLine(schema["description"]) : "";
    return { left, right: [description, notes.length === 0 ? "" : `(${notes.join(", ")})`].filter((part) => part !== "").join(" ") };
  });
  out.line(`Usage: skillhost call ${visibleLine(tool.name)}${usageOf(flags)}`);
  if (tool.description !== undefined) out.line(`\n${visibleText(tool.description)}`);
  if (rows.length === 0) return;
  const width = Math.min(36, Math.max(...rows.map(({ left }) => left.length)));
  out.line(`\n${style.bold("Arguments:")}`);
  for (const { left, right } of rows) out.line(`  ${left.padEnd(width)}  ${right}`.trimEnd());
}

/** ` --city <text> [options]` */
function usageOf(flags: readonly ToolFlag[]): string {
  const required = flags
    .filter(({ isRequired }) => isRequired)
    .map((flag) => ` ${flag.flag}${flag.flag.endsWith("=") ? "" : " "}${placeholder(flag)}`);
  return `${required.join("")}${flags.length > required.length ? " [options]" : ""}`;
}

/** Asks the user at the terminal for each required argument that is missing. Elsewhere, the arguments stay as they are. */
export async function askForArguments(args: Arguments, tool: ListedTool, { io, out }: CommandContext): Promise<Arguments> {
  if (io.ask === undefined || !io.stdin.isTTY || !io.stderr.isTTY || out.isJson) return args;
  for (const flag of toolFlags(tool, [])) {
    if (!flag.isRequired || Object.hasOwn(args, flag.name)) continue;
    const { description } = flag.schema;
    const about = typeof description === "string" ? ` – ${visibleLine(description)}` : "";
    args[flag.name] = await askFor(flag, `${visibleLine(flag.name)} ${placeholder(flag)}${about}\n> `, io, out);
  }
  return args;
}

/** Repeats the question until the answer has the right type. */
async function askFor(flag: ToolFlag, question: string, io: CliIo, out: Output): Promise<unknown> {
  for (;;) {
    const text = await io.ask!(question, io.signal);
    try {
      return toValue(text.trim(), flag);
    } catch (error) {
      out.complain(error instanceof Error ? error.message : String(error));
    }
  }
}
