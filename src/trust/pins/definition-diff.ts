/**
 * What differs between two versions of a definition, a line for each thing that went (`-`) or came (`+`), with its path:
 * `- description: "Reads a file."`. For people who decide about it: long texts are shown around the change, whatever
 * cannot be seen is written as an escape, and what is too much is counted. Empty: they are the same.
 */
export function definitionDiff(before: unknown, after: unknown): readonly string[] {
  const found: Found = { lines: [], more: 0 };
  compare(before, after, "", found);
  return found.more === 0 ? found.lines : [...found.lines, `… and ${found.more} more ${found.more === 1 ? "change" : "changes"}`];
}

/** Whether two values are the same as JSON: the order of keys makes no difference. What is nested without end is not. */
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

/** Text of strangers as people can check it: on one line, and without anything that cannot be seen. */
export function visibleJson(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").replace(unseen, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

// Control and format characters, unassigned and private ones, separators but the blank, and what fonts show as nothing.
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

// As deep as what has a digest goes.
const maxDepth = 500;
const maxLines = 40;
const maxWidth = 240;
// Of what is the same, before and after the place where two texts differ.
const around = 40;

interface Found {
  readonly lines: string[];
  more: number;
}

function compare(before: unknown, after: unknown, path: string, found: Found): void {
  if (isSameJson(before, after)) return;
  if (Array.isArray(before) && Array.isArray(after)) compareItems(before, after, path, found);
  else if (isObject(before) && isObject(after)) compareFields(before, after, path, found);
  else if (typeof before === "string" && typeof after === "string") tellTexts(before, after, path, found);
  else {
    tell(found, "-", path, before);
    tell(found, "+", path, after);
  }
}

function compareFields(before: object, after: object, path: string, found: Found): void {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const key of [...keys].sort()) compare(fieldOf(before, key), fieldOf(after, key), join(path, key), found);
}

/** What the two lists begin and end with alike is passed over, so that one more item is one line. */
function compareItems(before: readonly unknown[], after: readonly unknown[], path: string, found: Found): void {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSameJson(before[start], after[start])) start++;
  let end = 0;
  while (end < shorter - start && isSameJson(before.at(-1 - end), after.at(-1 - end))) end++;
  const [gone, come] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  for (let index = 0; index < Math.max(gone.length, come.length); index++)
    compare(gone[index], come[index], `${path}[${start + index}]`, found);
}

/** Two long texts around the first and up to the last place where they differ: what changed is never what is cut. */
function tellTexts(before: string, after: string, path: string, found: Found): void {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  tellText(found, "-", path, before, start, end);
  tellText(found, "+", path, after, start, end);
}

function tellText(found: Found, sign: string, path: string, text: string, start: number, end: number): void {
  const from = start <= around ? 0 : start - around;
  const to = end <= around ? text.length : text.length - end + around;
  const part = text.slice(from, to);
  const shown = visibleJson(part.slice(0, maxWidth));
  const rest = part.length > maxWidth ? `… (${part.length - maxWidth} more characters)` : "";
  add(found, `${sign} ${path || "(text)"}: ${from > 0 ? "…" : ""}${shown}${rest}${to < text.length && rest === "" ? "…" : ""}`);
}

function tell(found: Found, sign: string, path: string, value: unknown): void {
  if (value === undefined) return;
  const shown = visibleJson(value);
  const rest = shown.length > maxWidth ? `… (${shown.length - maxWidth} more characters)` : "";
  add(found, `${sign} ${path || "(all)"}: ${shown.slice(0, maxWidth)}${rest}`);
}

function add(found: Found, line: string): void {
  if (found.lines.length < maxLines) found.lines.push(line);
  else found.more++;
}

function join(path: string, key: string): string {
  const name = /^[A-Za-z_$][\w$-]*$/.test(key) && key.length <= 80 ? key : visibleJson(key.slice(0, 80));
  return path === "" ? name : `${path}.${name}`;
}

/** Own members only: a key such as `constructor` that one of them lacks is absent there. */
function fieldOf(object: object, key: string): unknown {
  return Object.hasOwn(object, key) ? (object as Record<string, unknown>)[key] : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
