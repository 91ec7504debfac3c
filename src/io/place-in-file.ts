import { type Position, positionAt } from "../base/diagnostic.ts";
import { readTextFile } from "./read-bounded.ts";

const maxBytes = 4 * 1024 * 1024;

/** Where a text stands in a file, for a diagnostic about it: the first place. Undefined: nowhere, or the file cannot be read. */
export function placeInFile(file: string, text: string | RegExp): Position | undefined {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) return undefined;
  const offset = typeof text === "string" ? read.text.indexOf(text) : read.text.search(text);
  return offset === -1 ? undefined : positionAt(read.text, offset);
}

/** Where a file imports something by this specifier, or a name of it. */
export function importPlace(file: string, specifier: string, name?: string): Position | undefined {
  const quoted = `["'\`]${escaped(specifier)}["'\`]`;
  const isImported = `(?<=\\b(?:from|import|require)\\s{0,20}\\(?\\s{0,20}${quoted})`;
  const named = name === undefined ? undefined : `\\b${escaped(name)}\\b(?=[^;"'\`]{0,2000}\\bfrom\\s{0,20}${quoted})`;
  for (const pattern of [named, `${quoted}${isImported}`, quoted]) {
    const place = pattern === undefined ? undefined : placeInFile(file, new RegExp(pattern));
    if (place !== undefined) return place;
  }
  return undefined;
}

function escaped(text: string): string {
  return text.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&");
}
