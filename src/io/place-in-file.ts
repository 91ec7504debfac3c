import { type Position, positionAt } from "../base/diagnostic.ts";
import { readTextFile } from "./read-bounded.ts";

const maxBytes = 4 * 1024 * 1024;
/** Limits of the examined occurrences of a specifier, and of the characters before each: a generated file may have very many. */
const maxOccurrences = 200;
const maxStatement = 2_000;

/** The position of the first occurrence of a text in a file, for a diagnostic. Undefined when it is missing or the file cannot be read. */
export function placeInFile(file: string, text: string): Position | undefined {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) return undefined;
  const offset = read.text.indexOf(text);
  return offset === -1 ? undefined : positionAt(read.text, offset);
}

/**
 * The position of an import with this specifier: that of the name in the import if one is given, else that of the specifier in
 * an import, else its first occurrence in quotes.
 */
export function importPlace(file: string, specifier: string, name?: string): Position | undefined {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) return undefined;
  const { text } = read;
  const occurrences = quotedPlaces(text, specifier);
  const imported = occurrences.filter((offset) =>
    /\b(?:from|import|require)\s{0,20}\(?\s{0,20}$/.test(text.slice(Math.max(0, offset - 60), offset)),
  );
  const named = name === undefined ? undefined : firstDefined(imported, (offset) => nameBefore(text, offset, name));
  const offset = named ?? imported[0] ?? occurrences[0];
  return offset === undefined ? undefined : positionAt(text, offset);
}

function quotedPlaces(text: string, specifier: string): readonly number[] {
  if (specifier.length > maxStatement) return [];
  return ['"', "'", "`"]
    .flatMap((quote) => {
      const part = `${quote}${specifier}${quote}`;
      const found: number[] = [];
      for (let at = text.indexOf(part); at !== -1 && found.length < maxOccurrences; at = text.indexOf(part, at + part.length))
        found.push(at);
      return found;
    })
    .sort((one, other) => one - other);
}

/** The offset of the name in the statement that ends at the specifier. */
function nameBefore(text: string, specifier: number, name: string): number | undefined {
  const start = Math.max(0, specifier - maxStatement);
  const before = text.slice(start, specifier);
  const statement = Math.max(before.lastIndexOf(";"), before.lastIndexOf('"'), before.lastIndexOf("'"), before.lastIndexOf("`")) + 1;
  const found = new RegExp(`(?<![\\w$])${escaped(name)}(?![\\w$])`).exec(before.slice(statement));
  return found === null ? undefined : start + statement + found.index;
}

function firstDefined<T, R>(items: readonly T[], find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function escaped(text: string): string {
  return text.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&");
}
