/** What replacing a passage in a text comes to. */
export type TextEdit =
  | { readonly kind: "edited"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly count: number };

/**
 * Replaces the one place where a passage stands. Models write line breaks as LF, so in a text with CRLF a passage is
 * looked for with those as well, and what takes its place gets them: the text keeps its own.
 */
export function replaceOnce(text: string, passage: string, replacement: string): TextEdit {
  const hasCrlf = usesCrlf(text);
  const spellings = hasCrlf && !passage.includes("\r\n") ? [passage, toCrlf(passage)] : [passage];
  for (const wanted of new Set(spellings)) {
    const found = countOf(text, wanted);
    if (found.count > 1) return { kind: "ambiguous", count: found.count };
    if (found.count === 1) {
      const rest = text.slice(found.first + wanted.length);
      return { kind: "edited", text: text.slice(0, found.first) + fitLineBreaks(replacement, text) + rest };
    }
  }
  return { kind: "missing" };
}

/** A text with the line breaks of another one that it is put into, or takes the place of. */
export function fitLineBreaks(text: string, other: string): string {
  return usesCrlf(other) && !text.includes("\r\n") ? toCrlf(text) : text;
}

/** Whether most line breaks of a text are CRLF. */
export function usesCrlf(text: string): boolean {
  let crlf = 0;
  let all = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    all++;
    if (text[at - 1] === "\r") crlf++;
  }
  return crlf * 2 > all;
}

function toCrlf(text: string): string {
  return text.replaceAll("\n", "\r\n");
}

// More are not told apart: "several" is all that matters.
const maxCounted = 1000;

/** Places that overlap count each: which one is meant is as open as with others. */
function countOf(text: string, passage: string): { count: number; first: number } {
  const first = text.indexOf(passage);
  let count = 0;
  for (let at = first; at !== -1 && count < maxCounted; at = text.indexOf(passage, at + 1)) count++;
  return { count, first };
}
