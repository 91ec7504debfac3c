/** A JSON object from outside: its members are not checked yet. */
export type Json = Readonly<Record<string, unknown>>;

/** Whether a value is an object that is not an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value from outside where a text is expected. Values of another type count as absent: the empty text. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The nesting limit of data from a peer, a file or a model. Recursive code relies on it. */
export const maxJsonDepth = 128;

/** The limit of values in one message: parsing more would block the event loop too long. */
export const maxJsonValues = 500_000;

/** Whether data is nested deeper than the limit, or is cyclic. Iterative, so that any depth can be checked. */
export function isNestedTooDeep(root: unknown, limit: number = maxJsonDepth): boolean {
  let level: object[] = isContainer(root) ? [root] : [];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > limit) return true;
    const next: object[] = [];
    for (const container of level) addContainers(container, next);
    level = next;
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function addContainers(container: object, found: object[]): void {
  if (Array.isArray(container)) for (const member of container as readonly unknown[]) if (isContainer(member)) found.push(member);
  if (Array.isArray(container)) return;
  for (const key of Object.keys(container)) {
    const member = (container as Readonly<Record<string, unknown>>)[key];
    if (isContainer(member)) found.push(member);
  }
}

const quote = 0x22;
const backslash = 0x5c;

/** Whether a JSON text is nested deeper than the limit, decided without parsing it. */
export function isTextNestedTooDeep(text: string, limit: number): boolean {
  // A shorter text cannot be deeper.
  if (text.length < limit) return false;
  let depth = 0;
  let isInText = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (isInText) {
      if (code === backslash) index++;
      else if (code === quote) isInText = false;
    } else if (code === quote) isInText = true;
    else if (code === 0x5b || code === 0x7b) {
      depth++;
      if (depth > limit) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}

/** Counts the values of a JSON text in UTF-8 before it is parsed, chunk by chunk. */
export class JsonValueCount {
  #count = 1;
  #isInText = false;
  /** The previous chunk ended with a backslash that escapes the next character. */
  #isEscaped = false;

  get count(): number {
    return this.#count;
  }

  get isTooMany(): boolean {
    return this.#count > maxJsonValues;
  }

  add(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.isTooMany; at++) {
      if (this.#isInText) at = this.#skipText(piece, at);
      else {
        const byte = piece[at] as number;
        if (byte === quote) this.#isInText = true;
        // A comma, and the start of each array or object.
        else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) this.#count++;
      }
    }
  }

  /** Returns the position of the closing quote, or the end of the chunk. */
  #skipText(piece: Buffer, from: number): number {
    let start = from;
    if (this.#isEscaped) start++;
    this.#isEscaped = false;
    for (let at = piece.indexOf(quote, start); at !== -1; at = piece.indexOf(quote, at + 1)) {
      if (backslashesBefore(piece, at, start) % 2 === 1) continue;
      this.#isInText = false;
      return at;
    }
    this.#isEscaped = backslashesBefore(piece, piece.length, start) % 2 === 1;
    return piece.length;
  }
}

function backslashesBefore(piece: Buffer, end: number, start: number): number {
  let count = 0;
  while (end - count > start && piece[end - count - 1] === backslash) count++;
  return count;
}

/** Whether a complete JSON text has too many values to be parsed. A short text cannot. */
export function hasTooManyValues(text: Buffer): boolean {
  if (text.length <= maxJsonValues) return false;
  const count = new JsonValueCount();
  count.add(text);
  return count.isTooMany;
}
