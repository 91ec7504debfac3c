import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { findHidden, hiddenWords, withoutHidden } from "../../base/untrusted-text.ts";
import {
  checkShapes,
  type LeftOutKeys,
  readOption,
  readOptions,
  type ToolHandler,
  type ToolLike,
  type ToolPermission,
} from "../define/define-tool.ts";
import { copyJson } from "../json-copy.ts";
import { schemaKeywords } from "../schema/schema-structure.ts";
import { isLibrarySchema, type LibrarySchema, toJsonSchema } from "../schema/standard-schema.ts";
import { checkToolName, type JsonSchema, type ToolDefinition } from "../tool.ts";

interface ReadDefinition {
  /** Frozen, and plain JSON throughout. */
  readonly definition: ToolDefinition;
  /** The schema object of a library that `parameters` came from. */
  readonly library: LibrarySchema | undefined;
  /** The handler and the permission function, each read once. */
  readonly functions: { readonly handler: ToolHandler<unknown> | undefined; readonly permission: ToolPermission<unknown> | undefined };
}

type Report = (diagnostic: Diagnostic) => void;

/**
 * Reads the JSON part of a tool definition, each field once. An optional field of the wrong type is left out with a diagnostic.
 * @throws HostError `TOOL_INVALID` for an invalid name, parameters, handler or permission.
 */
export function readDefinition(source: ToolLike, report: Report): ReadDefinition {
  if (typeof source !== "object" || source === null) throw invalid("A tool must be an object with a name.");
  const name = readName(source);
  const { fields, leftOut } = readOptions(source, name);
  checkShapes(name, fields);
  reportLeftOut(leftOut, name, report);
  const parameters = (fields["parameters"] ?? undefined) as object | undefined;
  const library = parameters !== undefined && isLibrary(parameters, name) ? parameters : undefined;
  const definition: Record<string, unknown> = { name };
  for (const [key, read] of readers) {
    const value =
      key === "parameters" ? readParameters(parameters, library, name, report) : readField(fields[key], key, read, name, report);
    if (value !== undefined) definition[key] = value;
  }
  takeOutHidden(definition, name, report);
  const functions = {
    handler: fields["handler"] ?? undefined,
    permission: fields["permission"] ?? undefined,
  } as ReadDefinition["functions"];
  return { definition: Object.freeze(definition) as unknown as ToolDefinition, library, functions };
}

/**
 * Removes characters that people cannot see from the definition's texts and from those in its schemas, so that models do not read hidden
 * text.
 */
function takeOutHidden(definition: Record<string, unknown>, name: string, report: Report): void {
  const found = shownKeys.flatMap((key) => {
    if (isPlainText(definition[key])) return [];
    const visible = visibleValue(definition, key, name);
    if (visible === undefined) return [];
    definition[key] = visible.value;
    return visible.found;
  });
  if (found.length === 0) return;
  const shown = found.slice(0, 3).map(({ path, what }) => `${path.slice(0, 200)} has ${what}`);
  const more = found.length > 3 ? `, and ${found.length - 3} more fields` : "";
  const message = `Tool "${name}": ${shown.join(", ")}${more}. People cannot see these characters, so they are removed before a model reads the text. Delete them.`;
  report({ severity: "warning", code: "TOOL_TEXT_HIDDEN", message });
}

const shownKeys = ["title", "description", "annotations", "parameters", "outputSchema"];
const plainText = /^[\t\n\r\x20-\x7e]*$/;

/** Whether all texts and names in a value consist of printable ASCII, as most do: then nothing in it is hidden. */
function isPlainText(value: unknown): boolean {
  if (typeof value === "string") return plainText.test(value);
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isPlainText);
  const members = value as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(members)) if (!plainText.test(key) || !isPlainText(members[key])) return false;
  return true;
}

function visibleValue(definition: Readonly<Record<string, unknown>>, key: string, name: string): VisibleDefinition | undefined {
  const value = definition[key];
  if (value === undefined) return undefined;
  try {
    return typeof value === "string" ? visibleField(value, key) : visibleSchema(value as JsonSchema, key);
  } catch (error) {
    if (error instanceof HiddenInData) throw invalid(`Tool "${name}": ${error.message}.`);
    throw error;
  }
}

function readName(source: ToolLike): string {
  const name = readOption(source, "name", "(unnamed)");
  const check = checkToolName(name);
  if (!check.ok) throw invalid(check.message);
  return name as string;
}

function reportLeftOut({ unknown, twice }: LeftOutKeys, name: string, report: Report): void {
  for (const alias of twice) {
    const message = `Tool "${name}" has both "${alias}" and the option that it is an alias of. The alias is ignored: remove "${alias}".`;
    report({ severity: "warning", code: "TOOL_OPTION_TWICE", message });
  }
  if (unknown.length === 0) return;
  const shown = unknown
    .slice(0, 20)
    .map((key) => JSON.stringify(key.slice(0, 60)))
    .join(", ");
  const message = `Tool "${name}": these keys have no effect: ${shown}. Put your own data under "metadata".`;
  report({ severity: "info", code: "TOOL_UNKNOWN_KEYS", message });
}

function isLibrary(parameters: object, name: string): boolean {
  try {
    return isLibrarySchema(parameters);
  } catch (cause) {
    throw invalid(`Tool "${name}": parameters cannot be read.`, cause);
  }
}

function readParameters(
  parameters: object | undefined,
  library: LibrarySchema | undefined,
  name: string,
  report: Report,
): JsonSchema | undefined {
  if (parameters === undefined) return undefined;
  if (library === undefined && isShape(parameters))
    throw invalid(
      `Tool "${name}": parameters is a map of schemas, but must be one schema. Wrap it in z.object({ … }), or your library's equivalent.`,
    );
  const copy = copyJson(library === undefined ? parameters : convert(library, name, report));
  if (!copy.ok) throw invalid(`Tool "${name}": ${["parameters", copy.path].filter(Boolean).join(".")} ${copy.reason}.`);
  const schema = copy.value as JsonSchema;
  const { type } = schema;
  if (type === undefined || type === "object") return schema;
  throw invalid(`Tool "${name}": parameters has the type ${JSON.stringify(type)}, but it must be "object".`);
}

/** Whether this is only the properties of an object schema, which some libraries accept as the whole schema. */
function isShape(parameters: object): boolean {
  try {
    return isRecord(parameters) && parameters["type"] === undefined && Object.values(parameters).some((value) => isSchemaObject(value));
  } catch {
    // Unreadable parameters are reported when they are copied.
    return false;
  }
}

function isSchemaObject(value: unknown): boolean {
  return ((typeof value === "object" && value !== null) || typeof value === "function") && isLibrarySchema(value);
}

function convert(library: LibrarySchema, name: string, report: Report): JsonSchema {
  try {
    const { schema, isPartial } = toJsonSchema(library);
    const message = `Tool "${name}": a part of parameters cannot be represented in JSON, so the model sees it without a type. Describe it in words.`;
    if (isPartial) report({ severity: "warning", code: "SCHEMA_PARTIAL", message });
    return schema;
  } catch (cause) {
    throw invalid(`Tool "${name}": ${cause instanceof HostError ? cause.message : "parameters cannot be read."}`, cause);
  }
}

/** Returns the value to keep, or throws the complaint about it. */
type Reader = (value: unknown) => unknown;

const readers: readonly (readonly [key: string, read: Reader])[] = [
  ["title", (value) => (typeof value === "string" ? value : mustBe("a string"))],
  ["description", (value) => (typeof value === "string" ? value : mustBe("a string"))],
  ["parameters", (value) => value],
  ["outputSchema", readOutputSchema],
  ["annotations", readRecord],
  ["overridesBuiltInTool", readFlag],
  ["skipPermission", readFlag],
  ["defer", (value) => (value === "auto" || value === "never" ? value : mustBe('"auto" or "never"'))],
  ["isTerminal", readFlag],
  ["metadata", readRecord],
  [
    "timeout",
    (value) =>
      typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY ? value : mustBe("a positive number of milliseconds"),
  ],
];

class WrongField extends Error {}

function readField(value: unknown, key: string, read: Reader, name: string, report: Report): unknown {
  if (value === undefined || value === null) return undefined;
  try {
    return read(value);
  } catch (error) {
    const why = error instanceof WrongField || error instanceof HostError ? error.message : "cannot be read";
    const message = `Tool "${name}": ${key} ${why}; it was ignored.`;
    report({ severity: "warning", code: "TOOL_FIELD_INVALID", message });
    return undefined;
  }
}

function readFlag(value: unknown): boolean {
  return typeof value === "boolean" ? value : mustBe("true or false");
}

function readRecord(value: unknown): unknown {
  if (!isRecord(value)) return mustBe("an object");
  const copy = copyJson(value);
  if (copy.ok && isRecord(copy.value)) return copy.value;
  throw new WrongField(copy.ok ? "must be an object" : `${copy.path === "" ? "" : `(${copy.path}) `}${copy.reason}`);
}

function readOutputSchema(value: unknown): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return mustBe("a schema");
  return readRecord(isLibrarySchema(value) ? toJsonSchema(value).schema : value);
}

function mustBe(what: string): never {
  throw new WrongField(`must be ${what}`);
}

function invalid(message: string, cause?: unknown): HostError {
  return new HostError("TOOL_INVALID", message, cause === undefined ? undefined : { cause });
}

/** A definition without hidden text, and the fields that had some: `parameters.properties.city.description`. */
interface VisibleDefinition {
  readonly value: unknown;
  readonly found: readonly { readonly path: string; readonly what: string }[];
}

/** Hidden characters that cannot be removed without changing the meaning: in a parameter name or an enum value. */
class HiddenInData extends Error {}

interface Cleaning {
  readonly found: { path: string; what: string }[];
}

/** A text field of a definition without hidden characters. */
function visibleField(text: string, path: string): VisibleDefinition {
  const cleaning: Cleaning = { found: [] };
  return { value: cleanText(text, [path], cleaning), found: cleaning.found };
}

/**
 * A JSON Schema without hidden characters: texts are cleaned, patterns get escapes. Names and values must be sent unchanged, so they
 * cannot be cleaned.
 * @throws HiddenInData naming the place.
 */
function visibleSchema(schema: JsonSchema, path: string): VisibleDefinition {
  const cleaning: Cleaning = { found: [] };
  return { value: cleanSchema(schema, [path], cleaning), found: cleaning.found };
}

const data: ReadonlySet<string> = new Set(["enum", "const", "default", "required", "dependentRequired"]);

function cleanSchema(schema: unknown, path: readonly string[], cleaning: Cleaning): unknown {
  if (!isRecord(schema)) return schema;
  return mapped(schema, (value, key) => {
    const at = [...path, key];
    assertVisible(key, path, "a keyword");
    if (data.has(key)) return assertVisibleData(value, at);
    if (key === "pattern" && typeof value === "string") {
      // In a regular expression an escape means the same and is visible.
      if (findHidden(value) === undefined) return value;
      return value.replace(/\\?([^\\])|\\\\/gsu, (token, character: string | undefined) => {
        if (character === undefined || findHidden(character) === undefined) return token;
        const code = character.codePointAt(0)!.toString(16);
        return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
      });
    }
    const kind = schemaKeywords.get(key);
    if (kind === "named" && isRecord(value))
      return mapped(value, (schema, name) => {
        assertVisible(name, at, "a name");
        return Array.isArray(schema) ? assertVisibleData(schema, [...at, name]) : cleanSchema(schema, [...at, name], cleaning);
      });
    if (kind === "schema" && Array.isArray(value))
      return mappedList(value, (item, index) => cleanSchema(item, [...at, String(index)], cleaning));
    return kind === "schema" ? cleanSchema(value, at, cleaning) : cleanTexts(value, at, cleaning);
  });
}

/** Cleans what no validator reads: descriptions, examples, unknown keywords. */
function cleanTexts(value: unknown, path: readonly string[], cleaning: Cleaning): unknown {
  if (typeof value === "string") return cleanText(value, path, cleaning);
  if (Array.isArray(value)) return mappedList(value, (item, index) => cleanTexts(item, [...path, String(index)], cleaning));
  if (!isRecord(value)) return value;
  return mapped(value, (item, key) => {
    assertVisible(key, path, "a name");
    return cleanTexts(item, [...path, key], cleaning);
  });
}

function cleanText(text: string, path: readonly string[], { found }: Cleaning): string {
  const hidden = findHidden(text);
  if (hidden === undefined) return text;
  found.push({ path: path.join("."), what: hiddenWords(hidden) });
  return withoutHidden(text);
}

function assertVisibleData(value: unknown, path: readonly string[]): unknown {
  if (typeof value === "string") assertVisible(value, path, "a value");
  else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      assertVisible(key, path, "a name");
      assertVisibleData(item, path);
    }
  }
  return value;
}

function assertVisible(text: string, path: readonly string[], what: string): void {
  // JSON writes ASCII control characters as escapes, so they are visible: one may be a separator.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  const hidden = findHidden(text.replace(/[\u0000-\u001f]/g, ""));
  if (hidden === undefined) return;
  const where = path.slice(0, 12).join(".");
  throw new HiddenInData(`${where} has ${what} with ${hiddenWords(hidden)}, which look like a different name or value. Remove them`);
}

/** Returns the same object unless a member changed. */
function mapped(record: Readonly<Record<string, unknown>>, map: (value: unknown, key: string) => unknown): unknown {
  let isSame = true;
  const entries = Object.entries(record).map(([key, value]): [string, unknown] => {
    const next = map(value, key);
    isSame &&= next === value;
    return [key, next];
  });
  return isSame ? record : Object.freeze(Object.fromEntries(entries));
}

function mappedList(list: readonly unknown[], map: (value: unknown, index: number) => unknown): unknown {
  const next = list.map(map);
  return next.every((value, index) => value === list[index]) ? list : Object.freeze(next);
}

/**
 * A hash of the tool's contract: name, title, description, parameters and the two flags, where an absent flag counts as `false`. Key
 * order and white space make no difference; any other change of these six does.
 */
export function signatureOf(definition: ToolDefinition): string {
  const { name, title, description, parameters, overridesBuiltInTool = false, skipPermission = false } = definition;
  return sha256(canonicalJson({ name, title, description, parameters, overridesBuiltInTool, skipPermission }));
}

/** A hash of every field of a definition and the generation of the code behind it: equal hashes mean nothing changed. */
export function revisionOf(definition: ToolDefinition, generation: string | number): string {
  return sha256(canonicalJson({ definition, generation }));
}
