import { isRecord } from "../../base/json.ts";
import { exactJson } from "../../base/untrusted-text.ts";

/**
 * The differences between two versions of a definition, one line for each removed (`-`) or added (`+`) value, with its path: `-
 * description: "Reads a file."`. For users who approve it: no change is omitted, the equal parts of long texts are, and
 * invisible characters are escaped. Empty: the versions are equal.
 */
export function definitionDiff(before: unknown, after: unknown): readonly string[] {
  const lines: string[] = [];
  compare(before, after, "", lines);
  return lines;
}

/** The content to approve: the difference from the known version, or the whole definition. */
export function diffToApprove(before: unknown, after: unknown): readonly string[] {
  return definitionDiff(before === undefined && isRecord(after) ? {} : before, after);
}

/** The lines of a difference for a message: lines beyond the limit are counted. */
export function briefDiff(lines: readonly string[]): readonly string[] {
  const more = lines.length - maxLines;
  const first = lines.slice(0, maxLines).map((line) => {
    const rest = line.length - maxWidth;
    return rest > 0 ? `${line.slice(0, maxWidth)}… (${rest} more characters)` : line;
  });
  return more > 0 ? [...first, `… and ${more} more ${more === 1 ? "change" : "changes"}`] : first;
}

/** Whether two values are equal as JSON, independent of the order of keys. Cyclic values are never equal. */
export function isSameJson(a: unknown, b: unknown, depth = 0): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || depth > maxDepth) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => isSameJson(item, b[index], depth + 1));
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isSameJson(fieldOf(a, key), fieldOf(b, key), depth + 1));
}

// The depth limit of digests.
const maxDepth = 500;
const maxLines = 40;
const maxWidth = 300;
// The length of the equal text to show before and after a difference.
const around = 40;

function compare(before: unknown, after: unknown, path: string, lines: string[]): void {
  if (isSameJson(before, after)) return;
  if (Array.isArray(before) && Array.isArray(after)) {
    // The equal start and end of the lists are skipped, so that one added item is one line.
    const shorter = Math.min(before.length, after.length);
    let start = 0;
    while (start < shorter && isSameJson(before[start], after[start])) start++;
    let end = 0;
    while (end < shorter - start && isSameJson(before.at(-1 - end), after.at(-1 - end))) end++;
    const [gone, come] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
    for (let index = 0; index < Math.max(gone.length, come.length); index++)
      compare(gone[index], come[index], `${path}[${start + index}]`, lines);
  } else if (isRecord(before) && isRecord(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const key of [...keys].sort()) compare(fieldOf(before, key), fieldOf(after, key), join(path, key), lines);
  } else if (typeof before === "string" && typeof after === "string") addTextDifference(before, after, path, lines);
  else {
    addLine(lines, "-", path, before);
    addLine(lines, "+", path, after);
  }
}

/** Shortens two long texts to the range from the first to the last difference: changed text is never cut. */
function addTextDifference(before: string, after: string, path: string, lines: string[]): void {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  addTextLine(lines, "-", path, before, start, end);
  addTextLine(lines, "+", path, after, start, end);
}

function addTextLine(lines: string[], sign: string, path: string, text: string, start: number, end: number): void {
  const from = start <= around ? 0 : start - around;
  const to = end <= around ? text.length : text.length - end + around;
  lines.push(`${sign} ${path || "(text)"}: ${from > 0 ? "…" : ""}${exactJson(text.slice(from, to))}${to < text.length ? "…" : ""}`);
}

function addLine(lines: string[], sign: string, path: string, value: unknown): void {
  if (value !== undefined) lines.push(`${sign} ${path || "(all)"}: ${exactJson(value)}`);
}

function join(path: string, key: string): string {
  const name = /^[A-Za-z_$][\w$-]*$/.test(key) && key.length <= 80 ? key : exactJson(key.slice(0, 80));
  return path === "" ? name : `${path}.${name}`;
}

/** Own members only: a missing key such as `constructor` is absent. */
function fieldOf(object: object, key: string): unknown {
  return Object.hasOwn(object, key) ? (object as Record<string, unknown>)[key] : undefined;
}
