import { findHidden, hiddenWords, withoutHidden } from "../base/hidden-characters.ts";
import type { JsonSchema } from "./tool.ts";
import { isRecord, schemaKeywords } from "./walk-schema.ts";

/** A definition without hidden text, and the fields that had some: `parameters.properties.city.description`. */
export interface VisibleDefinition {
  readonly value: unknown;
  readonly found: readonly { readonly path: string; readonly what: string }[];
}

/** What cannot be taken out without making it another: a name of a parameter, a value of an enum. */
export class HiddenInData extends Error {}

interface Cleaning {
  readonly found: { path: string; what: string }[];
}

/** The text of a definition's field for models: without what people cannot see. */
export function visibleField(text: string, path: string): VisibleDefinition {
  const cleaning: Cleaning = { found: [] };
  return { value: cleanText(text, [path], cleaning), found: cleaning.found };
}

/**
 * The same of a JSON Schema: its texts are cleaned, and its patterns get escapes. Names and values must be sent as they
 * are, so that these cannot be cleaned.
 * @throws HiddenInData naming the place.
 */
export function visibleSchema(schema: JsonSchema, path: string): VisibleDefinition {
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
    if (key === "pattern" && typeof value === "string") return visiblePattern(value);
    const kind = schemaKeywords.get(key);
    if (kind === "named" && isRecord(value)) return cleanNamed(value, at, cleaning);
    if (kind === "schema" && Array.isArray(value))
      return mappedList(value, (item, index) => cleanSchema(item, [...at, String(index)], cleaning));
    return kind === "schema" ? cleanSchema(value, at, cleaning) : cleanTexts(value, at, cleaning);
  });
}

function cleanNamed(schemas: Readonly<Record<string, unknown>>, path: readonly string[], cleaning: Cleaning): unknown {
  return mapped(schemas, (schema, name) => {
    assertVisible(name, path, "a name");
    return Array.isArray(schema) ? assertVisibleData(schema, [...path, name]) : cleanSchema(schema, [...path, name], cleaning);
  });
}

/** What no validator looks at: descriptions, examples, keywords of others. */
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
  // JSON writes the controls of ASCII as escapes, so these are seen: a separator may well be one.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  const hidden = findHidden(text.replace(/[\u0000-\u001f]/g, ""));
  if (hidden === undefined) return;
  const where = path.slice(0, 12).join(".");
  throw new HiddenInData(
    `${where} has ${what} with ${hiddenWords(hidden)}, which people and models would read as another. Write it without them`,
  );
}

/** An escape means the same in a regular expression, and is seen. */
function visiblePattern(pattern: string): string {
  if (findHidden(pattern) === undefined) return pattern;
  return pattern.replace(/\\?([^\\])|\\\\/gsu, (token, character: string | undefined) => {
    if (character === undefined || findHidden(character) === undefined) return token;
    const code = character.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}

/** The same object unless a member became another. */
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
