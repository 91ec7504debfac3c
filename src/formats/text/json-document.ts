import type { Severity } from "../../base/diagnostic.ts";
import { maxJsonDepth } from "../../base/json.ts";

export type JsonPath = readonly (string | number)[];

/** A parsed JSON text with the positions of its parts. */
export interface JsonDocument {
  /** Plain objects and arrays as from `JSON.parse`, but without `__proto__` keys. */
  readonly value: unknown;
  /** The offset of a member's key or of an element; for a missing path, that of its nearest container. */
  offsetOf(path: JsonPath): number | undefined;
}

export interface JsonFault {
  readonly severity: Severity;
  readonly code: string;
  readonly message: string;
  readonly offset: number;
}

export interface JsonSyntax {
  /** Accepts comments (`//` and block comments) and trailing commas, as editors do in their settings. */
  readonly comments?: boolean;
}

/**
 * Parses JSON (RFC 8259) with the position of every key. Faults have the same messages and positions on every version of
 * Node.js, unlike those of `JSON.parse`. A syntax fault says how to fix it and yields no document; duplicate and refused keys
 * are warnings. Never throws.
 */
export function parseJson(text: string, { comments = false }: JsonSyntax = {}): { document?: JsonDocument; faults: readonly JsonFault[] } {
  const plain = parsePlain(text);
  if (plain !== undefined) {
    let positioned: JsonReader | undefined;
    const offsetIn = (path: JsonPath): number | undefined => {
      positioned ??= new JsonReader(text, comments, () => {});
      return offsetOf(positioned.root, positioned.places, path);
    };
    return { document: { value: plain.value, offsetOf: offsetIn }, faults: [] };
  }
  const faults: JsonFault[] = [];
  const warn: Warn = (code, message, offset) => faults.push({ severity: "warning", code, message, offset });
  try {
    const { root, places } = new JsonReader(text, comments, warn);
    return { document: { value: root, offsetOf: (path) => offsetOf(root, places, path) }, faults };
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    return { faults: [{ severity: "error", code: "JSON_SYNTAX", message: error.message, offset: error.offset }] };
  }
}

/**
 * The value of a text in which `JSON.parse` and `JsonReader` find the same and nothing has to be reported, which is nearly every
 * text: ten times as fast, and its strings do not keep the whole text in memory. Positions are determined when one is needed.
 */
function parsePlain(text: string): { readonly value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text);
    // A key that occurs twice is one member of the value.
    return countMembers(value, 1) === countColons(text) ? { value } : undefined;
  } catch {
    return undefined;
  }
}

/** NaN, which equals nothing, if the value has something that `JsonReader` reports. */
function countMembers(value: unknown, depth: number): number {
  if (depth > maxJsonDepth) return Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item, depth + 1);
    return count;
  }
  for (const key of Object.keys(value)) {
    count += key === "__proto__" ? Number.NaN : 1 + countMembers((value as Record<string, unknown>)[key], depth + 1);
  }
  return count;
}

/** The colons outside of the strings of a valid JSON text. */
function countColons(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === colon) count++;
    else if (code === quote) {
      for (at++; text.charCodeAt(at) !== quote; at++) if (text.charCodeAt(at) === backslash) at++;
    }
  }
  return count;
}

const [quote, colon, backslash] = [0x22, 0x3a, 0x5c];

type Warn = (code: string, message: string, offset: number) => void;
type Places = ReadonlyMap<object, ReadonlyMap<string | number, number>>;

function offsetOf(root: unknown, places: Places, path: JsonPath): number | undefined {
  let value = root;
  let offset: number | undefined;
  for (const step of path) {
    const next = typeof value === "object" && value !== null ? places.get(value)?.get(step) : undefined;
    if (next === undefined) break;
    offset = next;
    value = (value as Record<string | number, unknown>)[step];
  }
  return offset;
}

// Thrown to leave the recursion; never escapes this file.
class SyntaxFault extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

const numberText = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const wordText = /[\p{L}_$][\p{L}\p{N}_$-]*/uy;
// biome-ignore lint/suspicious/noControlCharactersInRegex: those that RFC 8259 forbids in strings
const plainText = /[^"\\\u0000-\u001f]*/y;
const escapeText = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const spaceText = /[ \t\r\n]*/y;
const lineText = /[^\r\n]*/y;

class JsonReader {
  readonly root: unknown;
  readonly places = new Map<object, Map<string | number, number>>();
  readonly #text: string;
  readonly #allowsComments: boolean;
  readonly #warn: Warn;
  #at: number;

  constructor(text: string, allowsComments: boolean, warn: Warn) {
    this.#text = text;
    this.#allowsComments = allowsComments;
    this.#warn = warn;
    this.#at = text.startsWith("\uFEFF") ? 1 : 0;
    if (this.#peek() === "") this.#fail("The file is empty. Write a JSON object, such as {}.");
    this.root = this.#value(1);
    if (this.#peek() !== "") this.#fail("There is more text after the end of the JSON value. Remove it, or check the brackets before it.");
  }

  #value(depth: number): unknown {
    const next = this.#peek();
    if (depth > maxJsonDepth) this.#fail(`The JSON is nested more than ${maxJsonDepth} levels deep. Make it flatter.`);
    if (next === "{") return this.#object(depth);
    if (next === "[") {
      const array: unknown[] = [];
      const places = this.#open(array);
      const open = this.#at++;
      for (let first = true; !this.#closes("]", first, open); first = false) {
        places.set(array.length, this.#at);
        array.push(this.#value(depth + 1));
      }
      return array;
    }
    if (next === '"') return this.#string();
    if (next === "-" || (next >= "0" && next <= "9")) {
      const digits = this.#match(numberText);
      const after = this.#text[this.#at + digits.length] ?? "";
      if (digits === "" || /[\w.]/.test(after))
        this.#fail("This is not a valid JSON number. Write it like 12, -0.5 or 1e3, or put quotes around it.");
      this.#at += digits.length;
      return Number(digits);
    }
    const word = this.#match(wordText);
    if (word === "true" || word === "false" || word === "null") {
      this.#at += word.length;
      return word === "null" ? null : word === "true";
    }
    if (word !== "") this.#fail(`${word} is not a JSON value. Strings need double quotes; the only bare words are true, false and null.`);
    return this.#fail(unexpected(this.#peek(), "a value"));
  }

  #object(depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    const places = this.#open(object);
    const open = this.#at++;
    for (let first = true; !this.#closes("}", first, open); first = false) {
      const at = this.#at;
      const key = this.#key();
      if (this.#peek() !== ":") this.#fail(`A colon is missing after the key ${JSON.stringify(key)}.`);
      this.#at++;
      const value = this.#value(depth + 1);
      if (key === "__proto__") this.#warn("JSON_KEY_REFUSED", 'The key "__proto__" is ignored. Use another name.', at);
      else {
        if (places.has(key))
          this.#warn("JSON_DUPLICATE_KEY", `The key ${JSON.stringify(key)} occurs twice; the last one is used. Remove the other.`, at);
        places.set(key, at);
        object[key] = value;
      }
    }
    return object;
  }

  #open(container: object): Map<string | number, number> {
    const places = new Map<string | number, number>();
    this.places.set(container, places);
    return places;
  }

  // Consumes the comma before the next member, or the closing bracket.
  #closes(bracket: string, first: boolean, open: number): boolean {
    const next = this.#peek();
    if (next === bracket) {
      this.#at++;
      return true;
    }
    if (next === "") this.#fail(`The file ends before the ${bracket} that closes this bracket.`, open);
    if (first) return false;
    if (next !== ",") this.#fail(`A comma or ${bracket} is missing before this.`);
    const comma = this.#at++;
    if (this.#peek() !== bracket) return false;
    if (!this.#allowsComments) this.#fail(`JSON does not allow a comma before ${bracket}. Remove it.`, comma);
    this.#at++;
    return true;
  }

  #key(): string {
    const next = this.#peek();
    if (next === '"') return this.#string();
    const word = this.#match(wordText);
    return this.#fail(word === "" ? unexpected(next, "a key in double quotes") : `The key ${word} needs double quotes: "${word}".`);
  }

  #string(): string {
    const start = this.#at++;
    let hasEscapes = false;
    for (;;) {
      this.#at += this.#match(plainText).length;
      const next = this.#text[this.#at];
      if (next === '"') break;
      if (next === undefined) this.#fail("The string that begins here has no closing quote.", start);
      if (next !== "\\")
        this.#fail(
          next === "\n" || next === "\r"
            ? "A string cannot contain a line break. Close it with a quote, or write \\n."
            : "A string cannot contain control characters. Write them as \\u escapes.",
        );
      const escaped = this.#match(escapeText);
      if (escaped === "") this.#fail("This is not a valid JSON escape sequence. Write a backslash itself as \\\\.");
      hasEscapes = true;
      this.#at += escaped.length;
    }
    this.#at++;
    return hasEscapes ? JSON.parse(this.#text.slice(start, this.#at)) : this.#text.slice(start + 1, this.#at - 1);
  }

  #peek(): string {
    for (;;) {
      this.#at += this.#match(spaceText).length;
      const next = this.#text[this.#at] ?? "";
      if (next !== "/" && next !== "#") return next;
      if (next === "#" || !this.#allowsComments) this.#fail("JSON does not allow comments. Remove it.");
      this.#skipComment();
    }
  }

  #skipComment(): void {
    if (this.#text[this.#at + 1] === "/") {
      this.#at += this.#match(lineText).length;
      return;
    }
    if (this.#text[this.#at + 1] !== "*") this.#fail('Unexpected "/". A comment begins with // or /*.');
    const end = this.#text.indexOf("*/", this.#at + 2);
    if (end === -1) this.#fail("The comment that begins here is not closed. Add */ at its end.");
    this.#at = end + 2;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0] ?? "";
  }

  #fail(message: string, offset: number = this.#at): never {
    throw new SyntaxFault(message, offset);
  }
}

function unexpected(found: string, wanted: string): string {
  if (found === "") return `Expected ${wanted}, but the file ends here.`;
  if (found === "'" || found === "`" || found === "\u201C") return "Strings in JSON need straight double quotes.";
  if (found === ",") return `Expected ${wanted}, but found a comma. Remove it.`;
  return `Expected ${wanted}, but found ${JSON.stringify(found)}.`;
}
