import type { Diagnostic, Severity } from "../../base/diagnostic.ts";
import { findHidden, hiddenWords } from "../../base/untrusted-text.ts";

/**
 * Decodes a file without its byte order mark. UTF-8 is expected; UTF-16 with a byte order mark is read with a warning. Invalid
 * bytes become U+FFFD, and so does NUL, as CommonMark requires: the file still loads, and a warning reports the position.
 */
export function decodeText(bytes: Uint8Array, file: string): { text: string; diagnostics: readonly Diagnostic[] } {
  const diagnostics: Diagnostic[] = [];
  const warn = (code: string, message: string, severity: Severity = "warning"): void => {
    diagnostics.push({ severity, code, message, file });
  };
  const encoding = utf16Mark(bytes);
  if (encoding !== undefined) warn("TEXT_ENCODING", `This file is ${encoding.toUpperCase()}. Save it as UTF-8, which other hosts expect.`);
  const text = encoding === undefined ? decodeUtf8(bytes, warn) : new TextDecoder(encoding).decode(bytes);
  return { text: replaceNul(text, warn), diagnostics };
}

type Warn = (code: string, message: string) => void;

function utf16Mark(bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

const strictDecoder = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(bytes: Uint8Array, warn: Warn): string {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    // Not UTF-8: the fatal decoder throws without a position. A streaming decoder accepts a prefix that ends inside a
    // character, so the longest valid prefix is found by bisection; the start of the invalid character is at most three bytes
    // before its end.
    let offset = 0;
    for (let wrong = bytes.length + 1; wrong - offset > 1; ) {
      const middle = (offset + wrong) >> 1;
      if (isUtf8(bytes.subarray(0, middle), true)) offset = middle;
      else wrong = middle;
    }
    while (!isUtf8(bytes.subarray(0, offset), false)) offset--;
    warn("TEXT_NOT_UTF8", `This file is not valid UTF-8 at byte ${offset}; invalid bytes are read as U+FFFD. Save it as UTF-8.`);
    return new TextDecoder("utf-8").decode(bytes);
  }
}

function isUtf8(bytes: Uint8Array, stream: boolean): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream });
    return true;
  } catch {
    // The decoder throws for bytes that are not UTF-8.
    return false;
  }
}

function replaceNul(text: string, warn: Warn): string {
  const at = text.indexOf("\0");
  if (at === -1) return text;
  warn(
    "TEXT_NUL",
    `This file has a NUL character at offset ${at}; such characters are read as U+FFFD. Remove them, or save the file as UTF-8 text.`,
  );
  return text.replaceAll("\0", "\uFFFD");
}

export const hiddenTextCode = "TEXT_HIDDEN";

/** Reports, once per text, hidden characters, which are removed for models. Returns whether there were any. */
export function reportHidden(text: string, add: (severity: Severity, code: string, message: string, offset: number) => void): boolean {
  const found = findHidden(text);
  if (found === undefined) return false;
  add("warning", hiddenTextCode, hiddenMessage(`This file has ${hiddenWords(found)}, the first of them here`), found.offset);
  return true;
}

export function hiddenMessage(what: string): string {
  return `${what}. People cannot see these characters, so they are removed before a model reads the text. Delete them, or write intended ones as escapes.`;
}
