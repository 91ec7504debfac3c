import type { Severity } from "../../base/diagnostic.ts";
import { findHidden, hiddenWords } from "../../base/hidden-characters.ts";

export const hiddenTextCode = "TEXT_HIDDEN";

/** Reports, once for a text, what people do not see of it and models do not get. Whether there was anything. */
export function reportHidden(text: string, add: (severity: Severity, code: string, message: string, offset: number) => void): boolean {
  const found = findHidden(text);
  if (found === undefined) return false;
  add("warning", hiddenTextCode, hiddenMessage(`This file has ${hiddenWords(found)}, the first of them here`), found.offset);
  return true;
}

export function hiddenMessage(what: string): string {
  return `${what}. People do not see these, so models do not get them. Delete them, or write them as escapes where they are meant.`;
}
