/** Result of replacing a passage in a text. */
export type TextEdit =
  | { readonly kind: "edited"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly count: number };

/**
 * Replaces the only occurrence of a passage. Models write LF, so in a text with CRLF the passage is also searched with
 * CRLF, and the replacement is converted: the text keeps its line breaks.
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

/** A text with the line breaks of the text that it is inserted into or replaces. */
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

// Only "several" matters beyond this number.
const maxCounted = 1000;

/** Overlapping matches count separately: they are just as ambiguous. */
function countOf(text: string, passage: string): { count: number; first: number } {
  const first = text.indexOf(passage);
  let count = 0;
  for (let at = first; at !== -1 && count < maxCounted; at = text.indexOf(passage, at + 1)) count++;
  return { count, first };
}
