import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import { shorten } from "../../base/text.ts";
import type { ToolResult } from "../../tools/tool.ts";

const maxLines = 100;
const maxLineLength = 300;
const context = 2;

/** The longest text of a result that is kept for the next comparison, in UTF-16 units. Of longer ones it is the beginning. */
const longestKept = 1_000_000;

/** A result as it is kept for the next comparison, whatever its size. */
export interface KeptResult {
  readonly code: string;
  readonly text: KeptText;
  readonly data: KeptText;
}

interface KeptText {
  readonly head: string;
  readonly length: number;
  /** Of the whole text, if it is longer than its head. */
  readonly digest?: string;
}

export function keptResult({ resultType, textResultForLlm, structuredContent }: ToolResult): KeptResult {
  return { code: resultType, text: kept(textResultForLlm), data: kept(dataText(structuredContent)) };
}

/** The lines of a difference: of the code, then of the text; of the structured content only where the text is the same. */
export function resultDifference(before: KeptResult, after: KeptResult): readonly string[] {
  const code = before.code === after.code ? [] : [`-${before.code}`, `+${after.code}`];
  const text = keptDifference(before.text, after.text);
  return [...code, ...text, ...(text.length > 0 ? [] : keptDifference(before.data, after.data))];
}

function kept(text: string): KeptText {
  if (text.length <= longestKept) return { head: text, length: text.length };
  // A copy: a part of a text keeps the whole one in memory.
  const head = Buffer.from(text.slice(0, longestKept), "utf16le").toString("utf16le");
  return { head, length: text.length, digest: sha256(text) };
}

/** Of few lines, so that lines of a difference are those that changed. Large data stays as it is: sorting it takes seconds. */
function dataText(data: unknown): string {
  if (data === undefined) return "";
  const plain = JSON.stringify(data);
  return plain.length > longestKept ? plain : JSON.stringify(JSON.parse(canonicalJson(data)), null, 2);
}

function keptDifference(before: KeptText, after: KeptText): readonly string[] {
  const lines = textDifference(before.head, after.head);
  if (lines.length > 0 || (before.length === after.length && before.digest === after.digest)) return lines;
  return [`-… ${before.length} characters`, `+… ${after.length} characters, which differ after the first ${longestKept}`];
}

/**
 * The lines of a difference: `-` for lines that are gone, `+` for new ones, a space for those around them. One changed part is found, from
 * the first to the last line that differs, so the work is linear for any text. Empty if the texts are equal.
 */
function textDifference(before: string, after: string): readonly string[] {
  if (before === after) return [];
  const [old, current] = [before.split("\n"), after.split("\n")];
  const most = Math.min(old.length, current.length);
  let start = 0;
  while (start < most && old[start] === current[start]) start++;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === current.at(-1 - end)) end++;
  const marked = (mark: string, lines: readonly string[]): string[] => {
    const shown = lines.slice(0, maxLines).map((line) => `${mark}${shorten(line, maxLineLength)}`);
    return lines.length > maxLines ? [...shown, `${mark}… ${lines.length - maxLines} more lines`] : shown;
  };
  return [
    ...marked(" ", current.slice(Math.max(0, start - context), start)),
    ...marked("-", old.slice(start, old.length - end)),
    ...marked("+", current.slice(start, current.length - end)),
    ...marked(" ", current.slice(current.length - end, current.length - end + context)),
  ];
}
