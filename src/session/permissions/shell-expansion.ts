import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { matchesWildcard } from "../../base/text.ts";
import type { ShellWord } from "./read-shell-script.ts";

/** What expansions depend on. */
export interface ExpansionContext {
  /** The folders in which the command may run: `cd` adds to them. Absolute. */
  readonly folders: Iterable<string>;
  readonly steps: StepBudget;
}

/** Counts what is looked at, so that the time an expansion takes depends on neither the line nor the disk. */
export class StepBudget {
  #left: number;

  constructor(steps: number) {
    this.#left = steps;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  take(steps = 1): void {
    this.#left -= steps;
  }
}

/** The texts that a word may become. Undefined: known only when the line runs. May contain more than the shell would produce. */
export function expandWord(word: ShellWord, context: ExpansionContext): readonly string[] | undefined {
  if (/[?!]/.test(word.marks)) return undefined;
  // The command of that name.
  if (word.text === "[") return [word.text];
  if (context.steps.isSpent && word.text.includes("{")) return undefined;
  const spelled = expandBraces(word);
  if (spelled === undefined) return undefined;
  context.steps.take(spelled.length - 1);
  const texts = new Set<string>();
  for (const each of spelled) {
    // No file has such a path, and looking for one would take long.
    if (each.text.length > maxPath && hasGlob(each)) return undefined;
    const homes = expandTilde(each, context.folders);
    if (homes === undefined) return undefined;
    for (const home of homes) {
      // A pattern that nothing fits stays as it is.
      texts.add(home.text);
      if (!hasGlob(home)) continue;
      for (const match of expandGlob(home, context)) texts.add(match);
      if (context.steps.isSpent || texts.size > maxTexts) return undefined;
    }
  }
  return [...texts];
}

const maxTexts = 2_000;
const maxPath = 4_096;
const maxSpellings = 256;

function slice({ text, marks }: ShellWord, from: number, to?: number): ShellWord {
  return { text: text.slice(from, to), marks: marks.slice(from, to) };
}

function concat(...words: readonly ShellWord[]): ShellWord {
  return { text: words.map(({ text }) => text).join(""), marks: words.map(({ marks }) => marks).join("") };
}

function isBare({ text, marks }: ShellWord, at: number, char: string): boolean {
  return text[at] === char && marks[at] === "b";
}

/** Undefined: too many, a sequence (`{1..9}`), or braces that do not pair. */
function expandBraces(word: ShellWord): readonly ShellWord[] | undefined {
  const open = [word];
  const done: ShellWord[] = [];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (open.length + done.length > maxSpellings) return undefined;
    const split = splitBraces(next);
    if (split === undefined) return undefined;
    if (split.length === 1 && split[0] === next) done.push(next);
    else open.push(...split);
  }
  return done;
}

/** Replaces the first braces that hold a comma. The word itself: there are none. */
function splitBraces(word: ShellWord): readonly ShellWord[] | undefined {
  for (let open = 0; open < word.text.length; open++) {
    if (isBare(word, open, "}")) return undefined;
    if (!isBare(word, open, "{")) continue;
    // `{}` stands for itself.
    if (isBare(word, open + 1, "}")) {
      open++;
      continue;
    }
    return splitAt(word, open);
  }
  return [word];
}

function splitAt(word: ShellWord, open: number): readonly ShellWord[] | undefined {
  const commas: number[] = [];
  let depth = 0;
  for (let at = open; at < word.text.length; at++) {
    if (isBare(word, at, "{")) depth++;
    else if (isBare(word, at, "}")) depth--;
    else if (isBare(word, at, ",") && depth === 1) commas.push(at);
    if (depth > 0) continue;
    if (commas.length === 0) return undefined;
    const ends = [...commas, at];
    const starts = [open + 1, ...commas.map((comma) => comma + 1)];
    return starts.map((start, index) => concat(slice(word, 0, open), slice(word, start, ends[index]), slice(word, at + 1)));
  }
  return undefined;
}

/** A tilde at the beginning, or behind the `=` or `:` of what may be an assignment. */
function expandTilde(word: ShellWord, folders: Iterable<string>): readonly ShellWord[] | undefined {
  if (/[=:]~/.test(word.text)) return undefined;
  if (!isBare(word, 0, "~")) return [word];
  const slash = word.text.indexOf("/");
  const end = slash === -1 ? word.text.length : slash;
  // A quoted name does not name a user.
  if (word.marks.slice(1, end).includes("q")) return [word];
  const homes = homesOf(word.text.slice(1, end), folders);
  return homes?.map((home) => concat(quoted(home), slice(word, end)));
}

function homesOf(user: string, folders: Iterable<string>): readonly string[] | undefined {
  if (user === "+") return [...folders];
  if (user === "") return process.env["HOME"] === undefined ? undefined : [process.env["HOME"]];
  const home = homeOfUser(user);
  return home === undefined ? undefined : [home];
}

function homeOfUser(user: string): string | undefined {
  try {
    const line = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((each) => each.startsWith(`${user}:`));
    return line?.split(":")[5];
  } catch {
    // A system that keeps its users elsewhere.
    return undefined;
  }
}

function quoted(text: string): ShellWord {
  return { text, marks: "q".repeat(text.length) };
}

function hasGlob({ text, marks }: ShellWord): boolean {
  for (let at = 0; at < text.length; at++) if (marks[at] === "b" && "*?[".includes(text[at]!)) return true;
  return false;
}

/** The names on the disk that a pattern fits, or may fit: a set of characters counts as any characters. */
function expandGlob(word: ShellWord, { folders, steps }: ExpansionContext): readonly string[] {
  const parts = splitPath(word);
  if (word.text.startsWith("/")) return expandParts("/", "/", parts, steps);
  return [...folders].flatMap((folder) => expandParts("", folder, parts, steps));
}

function expandParts(start: string, folder: string, parts: readonly ShellWord[], steps: StepBudget): readonly string[] {
  let found: readonly string[] = [start];
  for (const part of parts) {
    found = found.flatMap((path) =>
      hasGlob(part) ? namesIn(resolve(folder, path), part, steps).map((name) => put(path, name)) : [put(path, part.text)],
    );
    if (steps.isSpent || found.length > maxTexts) return found;
  }
  return found;
}

function put(path: string, name: string): string {
  return path === "" || path.endsWith("/") ? path + name : `${path}/${name}`;
}

function splitPath(word: ShellWord): readonly ShellWord[] {
  const parts: ShellWord[] = [];
  let start = 0;
  for (let at = 0; at <= word.text.length; at++) {
    if (at < word.text.length && word.text[at] !== "/") continue;
    if (at > start) parts.push(slice(word, start, at));
    start = at + 1;
  }
  return parts;
}

function namesIn(folder: string, part: ShellWord, steps: StepBudget): readonly string[] {
  // From a bare bracket on, anything: what is in brackets depends on the language of the system.
  const { text, marks } = part;
  const bracket = [...marks].findIndex((mark, at) => mark === "b" && text[at] === "[");
  const pattern = (bracket === -1 ? text : `${text.slice(0, bracket)}*`).replace(/\*+/g, "*");
  // Some shells find the folder itself and the one above by `.*`.
  const names = [...(pattern.startsWith(".") ? [".", ".."] : []), ...readNames(folder)];
  steps.take(names.length + 1);
  return names.filter((name) => (!name.startsWith(".") || pattern.startsWith(".")) && fits(pattern, name));
}

function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // No folder, or closed to us, and so to the shell.
    return [];
  }
}

function fits(pattern: string, name: string): boolean {
  // What one character is, among those beyond ASCII, depends on the language of the system as well.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: everything but ASCII is meant
  return matchesWildcard(/[^\x00-\x7f]/.test(name) ? pattern.replaceAll("?", "*") : pattern, name);
}
