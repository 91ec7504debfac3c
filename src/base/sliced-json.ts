import { maxJsonDepth } from "./json.ts";

const [quote, comma, colon, openList, closeList, openObject, closeObject] = [0x22, 0x2c, 0x3a, 0x5b, 0x5d, 0x7b, 0x7d];
const [space, tab, lineBreak, carriageReturn, backslash] = [0x20, 0x09, 0x0a, 0x0d, 0x5c];

interface Container {
  readonly isList: boolean;
  readonly value: unknown[] | Record<string, unknown>;
  /** The range of members that are parsed together; empty when both are equal. */
  runStart: number;
  runEnd: number;
  runCost: number;
  hasMembers: boolean;
}

export interface SlicedJsonOptions {
  /** The maximum to parse at once, in values; 64 characters count as one. */
  readonly most?: number;
}

/** The text is nested more than `maxJsonDepth` levels deep. */
export class JsonTooDeep extends Error {}

/**
 * Parses JSON in slices, so that the event loop can run in between. It accepts and returns the same as `JSON.parse`: the text
 * is split between the members of large arrays and objects, and `JSON.parse` reads the parts.
 */
export class SlicedJson {
  readonly #text: string;
  readonly #most: number;
  readonly #open: Container[] = [];
  readonly #longTexts = new Map<number, number>();
  #at = 0;
  #cost = 0;
  #value: unknown;

  constructor(text: string, { most = 2_000 }: SlicedJsonOptions = {}) {
    this.#text = text;
    this.#most = most;
    this.#skipBlanks();
    const first = text.charCodeAt(this.#at);
    if (first === openList || first === openObject) this.#value = this.#enter(first);
    else this.#value = JSON.parse(text);
  }

  /** The result, after `advance` returned true. */
  get value(): unknown {
    return this.#value;
  }

  /** Continues for slightly more than this many values. Returns true at the end. @throws SyntaxError, JsonTooDeep */
  advance(values: number): boolean {
    this.#cost = 0;
    for (let container = this.#open.at(-1); container !== undefined && this.#cost < values; container = this.#open.at(-1)) {
      this.#readMember(container);
    }
    return this.#open.length === 0;
  }

  #readMember(container: Container): undefined {
    this.#skipBlanks();
    const start = this.#at;
    if (!container.hasMembers && this.#code() === closerOf(container)) return this.#close(container);
    container.hasMembers = true;
    if (!container.isList) {
      if (this.#code() !== quote) this.#fail();
      this.#at = this.#endOfText(this.#at);
      this.#skipBlanks();
      if (this.#code() !== colon) this.#fail();
      this.#at++;
      this.#skipBlanks();
    }
    const valueStart = this.#at;
    const costBefore = this.#cost;
    const end = this.#endOfValue();
    if (end === undefined) {
      // A member that is too large to be parsed at once is entered.
      this.#parseRun(container);
      const key = container.isList ? "" : this.#text.slice(start, this.#text.lastIndexOf(":", valueStart));
      this.#at = valueStart;
      const inner = this.#enter(this.#code());
      if (container.isList) (container.value as unknown[]).push(inner);
      else define(container.value as Record<string, unknown>, JSON.parse(key) as string, inner);
      return;
    }
    if (container.runStart === container.runEnd) container.runStart = start;
    container.runEnd = end;
    container.runCost += this.#cost - costBefore;
    this.#at = end;
    this.#endMember(container);
    if (container.runCost >= this.#most) this.#parseRun(container);
  }

  #enter(opening: number): Container["value"] {
    const isList = opening === openList;
    const value = isList ? [] : {};
    this.#open.push({ isList, value, runStart: 0, runEnd: 0, runCost: 0, hasMembers: false });
    this.#at++;
    return value;
  }

  /** Reads the text after a member: a comma, or the end of the container, which is itself a member. */
  #endMember(container: Container): undefined {
    this.#skipBlanks();
    const code = this.#code();
    if (code === comma) this.#at++;
    else if (code === closerOf(container)) this.#close(container);
    else this.#fail();
  }

  #close(container: Container): undefined {
    this.#parseRun(container);
    this.#open.pop();
    this.#at++;
    const outer = this.#open.at(-1);
    if (outer !== undefined) return this.#endMember(outer);
    this.#skipBlanks();
    if (this.#at < this.#text.length) this.#fail();
  }

  #parseRun(container: Container): void {
    const { isList, runStart, runEnd } = container;
    if (runStart === runEnd) return;
    container.runStart = container.runEnd;
    container.runCost = 0;
    const run = this.#text.slice(runStart, runEnd);
    if (isList) for (const item of JSON.parse(`[${run}]`) as unknown[]) (container.value as unknown[]).push(item);
    else
      for (const [key, member] of Object.entries(JSON.parse(`{${run}}`) as object))
        define(container.value as Record<string, unknown>, key, member);
  }

  /** The end of the value that begins here, whose content is not checked. Undefined: too large to be parsed at once. */
  #endOfValue(): number | undefined {
    const start = this.#at;
    const code = this.#code();
    if (code === openList || code === openObject) return this.#endOfContainer(start);
    const end = code === quote ? this.#endOfText(start) : this.#endOfPlain(start);
    this.#cost += 1 + ((end - start) >> 6);
    return end;
  }

  #endOfContainer(start: number): number | undefined {
    const outside = this.#open.length;
    let depth = 0;
    let values = 1;
    for (let at = start; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at);
      if (code === quote) at = this.#endOfText(at) - 1;
      else if (code === comma) values++;
      else if (code === openList || code === openObject) {
        values++;
        if (outside + ++depth > maxJsonDepth) throw new JsonTooDeep();
      } else if ((code === closeList || code === closeObject) && --depth === 0) {
        this.#cost += values + ((at - start) >> 6);
        return at + 1;
      }
      if (values + ((at - start) >> 6) <= this.#most) continue;
      this.#cost += values + ((at - start) >> 6);
      return undefined;
    }
    return this.#fail();
  }

  /** The position after the closing quote. */
  #endOfText(start: number): number {
    const known = this.#longTexts.get(start);
    if (known !== undefined) return known;
    for (let at = this.#text.indexOf('"', start + 1); at !== -1; at = this.#text.indexOf('"', at + 1)) {
      let escapes = 0;
      while (this.#text.charCodeAt(at - 1 - escapes) === backslash) escapes++;
      if (escapes % 2 === 1) continue;
      // Cached, because the text may be scanned again when each of its containers is entered.
      if (at - start > longText) this.#longTexts.set(start, at + 1);
      return at + 1;
    }
    return this.#fail();
  }

  #endOfPlain(start: number): number {
    let at = start;
    while (at < this.#text.length && !isEndOfPlain(this.#text.charCodeAt(at))) at++;
    return at === start ? this.#fail() : at;
  }

  #skipBlanks(): void {
    while (isBlank(this.#code())) this.#at++;
  }

  #code(): number {
    return this.#text.charCodeAt(this.#at);
  }

  #fail(): never {
    throw new SyntaxError(`Unexpected ${this.#at < this.#text.length ? "token" : "end"} in JSON at position ${this.#at}`);
  }
}

const longText = 65_536;

function closerOf({ isList }: Container): number {
  return isList ? closeList : closeObject;
}

function isBlank(code: number): boolean {
  return code === space || code === tab || code === lineBreak || code === carriageReturn;
}

function isEndOfPlain(code: number): boolean {
  return code === comma || code === closeList || code === closeObject || isBlank(code);
}

/** Like `JSON.parse`: `__proto__` is an ordinary member. */
function define(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}
