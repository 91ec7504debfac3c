import { isPlainRecord } from "../base/read-fields.ts";
import { copyJson } from "../tools/json-copy.ts";

export interface ParsedArguments {
  /** Frozen plain JSON, or the text when there is an `argumentsError`. */
  readonly arguments: unknown;
  readonly argumentsError?: string;
}

/**
 * What a model's text for a tool's arguments says. No text, or `null`, is no arguments; JSON written as a JSON string is
 * unpacked once, since some models do that. What is no object stays a text with an error.
 */
export function parseArguments(text: string): ParsedArguments {
  if (text.trim() === "") return { arguments: Object.freeze({}) };
  const parsed = parse(text);
  if (parsed === undefined) {
    const isCut = new JsonProgress().feed(text) === "open";
    return {
      arguments: text,
      argumentsError: isCut ? "The arguments break off before their JSON ends." : "The arguments are not valid JSON.",
    };
  }
  const value = typeof parsed.value === "string" ? unpack(parsed.value) : parsed.value;
  if (value === null) return { arguments: Object.freeze({}) };
  if (!isPlainRecord(value)) return { arguments: text, argumentsError: "The arguments are not a JSON object." };
  const copy = copyJson(value);
  if (copy.ok) return { arguments: copy.value };
  return {
    arguments: text,
    argumentsError: `The arguments cannot be used: ${copy.path === "" ? "the object" : copy.path} ${copy.reason}.`,
  };
}

/** How far a text is in being one JSON object: nothing yet, begun, complete, or no object. Linear over all its pieces. */
export class JsonProgress {
  #state: "empty" | "open" | "complete" | "other" = "empty";
  #depth = 0;
  #isInText = false;
  #isEscaped = false;

  get isComplete(): boolean {
    return this.#state === "complete";
  }

  feed(text: string): "empty" | "open" | "complete" | "other" {
    for (let index = 0; index < text.length && this.#state !== "other"; index++) this.#take(text.charCodeAt(index));
    return this.#state;
  }

  #take(code: number): void {
    if (this.#isInText) this.#takeText(code);
    else if (code === quote && this.#depth > 0) this.#isInText = true;
    else if (code === openBrace || code === openBracket) this.#open(code);
    else if (code === closeBrace || code === closeBracket) this.#close();
    else if (this.#depth === 0 && code > space) this.#state = "other";
  }

  #takeText(code: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (code === backslash) this.#isEscaped = true;
    else if (code === quote) this.#isInText = false;
  }

  #open(code: number): void {
    if (this.#depth === 0 && (this.#state !== "empty" || code !== openBrace)) this.#state = "other";
    else this.#state = "open";
    this.#depth += 1;
  }

  #close(): void {
    this.#depth -= 1;
    if (this.#depth < 0) this.#state = "other";
    else if (this.#depth === 0) this.#state = "complete";
  }
}

const [quote, backslash, space] = [0x22, 0x5c, 0x20];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    // Reported by the caller in words of its own: the messages of JSON.parse differ between versions of Node.
    return undefined;
  }
}

function unpack(text: string): unknown {
  const inner = parse(text)?.value;
  return isPlainRecord(inner) ? inner : text;
}
