import { join } from "node:path";
import type { PermissionRequest } from "../../tools/tool.ts";
import { forbidsPath, forbidsWithin, type PathPattern, type RequestedPath, readFollowedPath } from "./permission-paths.ts";
import { forbidsWord, type UrlPattern } from "./permission-patterns.ts";
import { maxLineLength } from "./read-shell-script.ts";
import { trackedPaths } from "./shell-git.ts";
import type { PathUse, ShellReach } from "./shell-reach.ts";

/** The words of one command, unquoted, as a POSIX shell would see them. */
type Words = readonly string[];

/** What a line for a shell would run, as far as its text shows. */
export interface CommandLine {
  /** Every command that the line may run, also those within substitutions. More may be listed than would run. */
  readonly commands: readonly Words[];
  /** There is nothing in it that may turn into something else: no redirections, substitutions, variables, comments. */
  readonly isClear: boolean;
  /** It is clear, and one command: nothing follows it. */
  readonly isSimple: boolean;
  /** The line is longer than what is parsed, and may run any command: `commands` is empty. */
  readonly isTooLong: boolean;
}

const tooLong: CommandLine = Object.freeze({ commands: Object.freeze([]), isClear: false, isSimple: false, isTooLong: true });

/**
 * Splits a command line into commands, in one pass. It is not a shell parser: when unsure, it lists a command too many
 * and says that the line is not simple, so that what forbids matches too much rather than too little, and what allows
 * too little.
 */
export function parseCommandLine(text: string): CommandLine {
  if (text.length > maxLineLength) return tooLong;
  const reader = new LineReader(text);
  reader.read();
  const { commands, isClear, isSeries } = reader;
  return { commands, isClear, isSimple: isClear && !isSeries && commands.length === 1, isTooLong: false };
}

class LineReader {
  readonly commands: Words[] = [];
  isClear = true;
  isSeries = false;
  readonly #text: string;
  #words: string[] = [];
  #word: string | undefined;
  /** After a redirection comes a file, which is not a word of the command. */
  #dropsWord = false;
  #isInDoubleQuotes = false;

  constructor(text: string) {
    this.#text = text;
  }

  read(): void {
    for (let at = 0; at < this.#text.length; at++) at = this.#isInDoubleQuotes ? this.#readQuoted(at) : this.#readBare(at);
    if (this.#isInDoubleQuotes) this.isClear = false;
    this.#endCommand();
  }

  /** Takes in the character at this place and gives the place of the last one that went with it. */
  #readBare(at: number): number {
    const char = this.#text[at]!;
    if (char === "'") return this.#readSingleQuotes(at);
    if (char === '"') return this.#openQuotes(at);
    if (char === "\\") return this.#readEscape(at);
    if (char === " " || char === "\t") return this.#endWord(at);
    if (isOperator(char)) return this.#readOperator(at, char);
    if (char === "$" || char === "`") return this.#readExpansion(at, char);
    if (char === "#" && this.#word === undefined) this.isClear = false;
    this.#add(char);
    return at;
  }

  #readQuoted(at: number): number {
    const char = this.#text[at]!;
    if (char === '"') {
      this.#isInDoubleQuotes = false;
      return at;
    }
    // Between double quotes a backslash is itself before all but these.
    if (char === "\\" && /[$`"\\\n]/.test(this.#text[at + 1] ?? "")) return this.#readEscape(at);
    if (char === "$" || char === "`") return this.#readExpansion(at, char);
    this.#add(char);
    return at;
  }

  #readSingleQuotes(at: number): number {
    const end = this.#text.indexOf("'", at + 1);
    if (end === -1) this.isClear = false;
    this.#add(this.#text.slice(at + 1, end === -1 ? undefined : end));
    return end === -1 ? this.#text.length : end;
  }

  #openQuotes(at: number): number {
    this.#isInDoubleQuotes = true;
    this.#add("");
    return at;
  }

  #readEscape(at: number): number {
    const next = this.#text[at + 1];
    if (next === undefined) this.isClear = false;
    // An escaped line break is removed.
    else if (next !== "\n") this.#add(next);
    return at + 1;
  }

  /** `$(`, backticks and their ends begin another command; the variables among them stand for unknown text. */
  #readExpansion(at: number, char: string): number {
    this.isClear = false;
    if (char === "`" || this.#text[at + 1] === "(") {
      this.#isInDoubleQuotes = false;
      this.#endCommand();
      return char === "`" ? at : at + 1;
    }
    this.#add(char);
    return at;
  }

  #readOperator(at: number, char: string): number {
    // bash takes a carriage return for part of a word, and other shells for the end of a command.
    if ("()<>\r".includes(char)) this.isClear = false;
    if (char !== "<" && char !== ">") {
      this.isSeries = true;
      this.#endCommand();
      return at;
    }
    // The number of a stream before the sign is not a word either: 2>file.
    if (this.#word !== undefined && /^\d+$/.test(this.#word)) this.#word = undefined;
    this.#endWord(at);
    const follows = this.#text[at + 1];
    if (follows === "(") this.#endCommand();
    else this.#dropsWord = true;
    return follows === ">" || follows === "<" || follows === "&" || follows === "|" || follows === "(" ? at + 1 : at;
  }

  #add(text: string): void {
    this.#word = (this.#word ?? "") + text;
  }

  #endWord(at: number): number {
    if (this.#word === undefined) return at;
    if (this.#dropsWord) this.#dropsWord = false;
    else this.#words.push(this.#word);
    this.#word = undefined;
    return at;
  }

  #endCommand(): void {
    this.#endWord(0);
    this.#dropsWord = false;
    if (this.#words.length > 0) this.commands.push(this.#words);
    this.#words = [];
  }
}

function isOperator(char: string): boolean {
  return ";&|\n\r()<>".includes(char);
}

/** What a shell rule is about: the first words of a command, and whether more may follow. */
export interface CommandPattern {
  readonly words: readonly string[];
  /** `git:*`: whatever follows the words. */
  readonly isPrefix: boolean;
}

/** The commands of a request, as its tool lists them and as its text reads. */
export interface RequestedCommands {
  /** What the tool says: `git push`, `ls`. Undefined: it says nothing. */
  readonly identifiers: readonly string[] | undefined;
  readonly line: CommandLine | undefined;
  readonly redirectsToFile: boolean;
}

export function readCommands({ fullCommandText, commands, hasWriteFileRedirection }: PermissionRequest): RequestedCommands {
  return {
    identifiers: readIdentifiers(commands),
    line: typeof fullCommandText === "string" ? parseCommandLine(fullCommandText) : undefined,
    redirectsToFile: hasWriteFileRedirection === true,
  };
}

/**
 * Whether patterns allow all of what is requested. The tool's own list must be covered as a whole; where it gives none,
 * only a line of a single plain command can be allowed. Neither is taken for a line with redirections, substitutions or
 * variables: their values are unknown here.
 */
export function allowsCommands(patterns: readonly CommandPattern[], requested: RequestedCommands): boolean {
  const isAllowed = (words: readonly string[]): boolean => patterns.some((pattern) => allowsWords(pattern, words));
  const { identifiers, line, redirectsToFile } = requested;
  if (identifiers === undefined) return !redirectsToFile && line?.isSimple === true && isAllowed(line.commands[0]!);
  return approvableWords(requested)?.every((identifier) => isAllowed(wordsOf(identifier))) === true;
}

/**
 * The commands that the tool lists, where they are all that the text has and nothing in it could turn into another.
 * Undefined otherwise.
 */
export function approvableWords({ identifiers = [], line, redirectsToFile }: RequestedCommands): readonly string[] | undefined {
  if (redirectsToFile || identifiers.length === 0 || line?.isClear === false) return undefined;
  const isTold = (words: readonly string[]): boolean => identifiers.some((identifier) => startsWith(words, wordsOf(identifier)));
  return line === undefined || line.commands.every(isTold) ? identifiers : undefined;
}

/** Whether a pattern forbids any of what is requested. A request that lists no command, or a line that is not parsed, is forbidden by all. */
export function forbidsCommands(pattern: CommandPattern, { identifiers = [], line }: RequestedCommands): boolean {
  if (line === undefined ? identifiers.length === 0 : line.isTooLong) return true;
  const commands = [...identifiers.map(wordsOf), ...(line?.commands ?? [])];
  return commands.some((words) => forbidsWords(pattern, words, 0));
}

function allowsWords({ words, isPrefix }: CommandPattern, given: readonly string[]): boolean {
  return (isPrefix ? given.length >= words.length : given.length === words.length) && words.every((word, index) => word === given[index]);
}

function startsWith(words: readonly string[], start: readonly string[]): boolean {
  return start.length > 0 && start.every((word, index) => word === words[index]);
}

// Words after which another command may begin, with options of the first one in between.
const carriers: ReadonlySet<string> = new Set(
  (
    "sudo doas env command builtin exec eval nohup setsid stdbuf nice ionice time timeout xargs parallel watch busybox sh bash zsh dash ksh fish " +
    "if then else elif while until do ! {"
  ).split(" "),
);

// Deeper nesting of commands is treated as hostile.
const maxDepth = 4;

/**
 * Forbidding reads generously: a command by any path, options before the words of the pattern, a command that another
 * one starts, a command line in quotes that a shell is given.
 */
function forbidsWords(pattern: CommandPattern, given: readonly string[], depth: number): boolean {
  const start = given.findIndex((word) => !/^[A-Za-z_]\w*\+?=/.test(word));
  if (start === -1) return false;
  if (beginsWith(pattern.words, given, start)) return true;
  if (!carriers.has(baseName(given[start]!)) || depth === maxDepth) return false;
  return given.some((word, index) => {
    if (index <= start) return false;
    if (beginsWith(pattern.words, given, index)) return true;
    return /[\s;&|]/.test(word) && parseCommandLine(word).commands.some((words) => forbidsWords(pattern, words, depth + 1));
  });
}

function beginsWith(wanted: readonly string[], given: readonly string[], at: number): boolean {
  const [first, ...rest] = wanted;
  if (first === undefined) return true;
  const word = given[at];
  if (word === undefined || (word !== first && baseName(word) !== first)) return false;
  return follows(rest, given, at + 1);
}

/** The wanted words come next, each perhaps after options, which may have a value each. */
function follows(wanted: readonly string[], given: readonly string[], from: number): boolean {
  // The places that may come next: an option moves each on by one, or by two when the word after it is its value.
  let places: ReadonlySet<number> = new Set([from]);
  for (const word of wanted) {
    const possible = withOptionsSkipped(places, given);
    // More options than anybody writes: whatever hides behind them is taken for what is forbidden.
    if (possible.size > maxPlaces) return true;
    places = new Set([...possible].filter((place) => given[place] === word).map((place) => place + 1));
    if (places.size === 0) return false;
  }
  return true;
}

const maxPlaces = 100;

function withOptionsSkipped(places: ReadonlySet<number>, given: readonly string[]): ReadonlySet<number> {
  const all = new Set(places);
  // A set that grows while it is walked is walked to its end.
  for (const place of all) {
    if (all.size > maxPlaces) break;
    if (given[place]?.startsWith("-")) all.add(place + 1).add(place + 2);
  }
  return all;
}

function baseName(word: string): string {
  return word.slice(Math.max(word.lastIndexOf("/"), word.lastIndexOf("\\")) + 1).replace(/\.(exe|cmd|bat)$/i, "");
}

export function wordsOf(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

function readIdentifiers(commands: unknown): readonly string[] | undefined {
  if (!Array.isArray(commands)) return undefined;
  const identifiers = commands.map((command: unknown) => (command as { identifier?: unknown } | null)?.identifier);
  // One that cannot be read is one that no rule allows.
  return identifiers.map((identifier) => (typeof identifier === "string" ? identifier : "\0"));
}

/** Whether a command line reaches what a rule forbids: it does, it may, or it cannot. */
export type LineVerdict = "reaches" | "unsure" | "apart";

const maxPaths = 5_000;

/** What a line means for a rule about reading or writing paths. */
export function reachesPath(reach: ShellReach, pattern: PathPattern, kind: string): LineVerdict {
  if (reach.repositories.some((repository) => keepsForbidden(repository, pattern))) return "reaches";
  const uses = kind === "write" ? reach.paths.filter(({ access }) => access !== "read") : reach.paths;
  let isSure = reach.pathDoubt === undefined && (kind === "read" || reach.writeDoubt === undefined) && reach.paths.length <= maxPaths;
  for (const use of uses.slice(0, maxPaths)) {
    const path = readFollowedPath(use.path);
    if (path === undefined) isSure = false;
    else if (forbidsPath(pattern, path)) return "reaches";
    else if (isSure && mayReachBelow(use, path, pattern, kind)) isSure = false;
  }
  return isSure ? "apart" : "unsure";
}

/** Deleting and moving a folder does not show what is in it, but changes that. */
function mayReachBelow({ tree, access }: PathUse, path: RequestedPath, pattern: PathPattern, kind: string): boolean {
  return tree !== undefined && !(kind === "read" && access === "write") && forbidsWithin(pattern, path, tree);
}

const maxTracked = 20_000;

function keepsForbidden(repository: string, pattern: PathPattern): boolean {
  const tracked = trackedPaths(repository);
  if (tracked === undefined || tracked.length > maxTracked) return true;
  return tracked.some((path) => {
    const written = join(repository, path);
    return forbidsPath(pattern, { written, real: written });
  });
}

/** What a line means for a rule about addresses. */
export function reachesAddress({ addresses, addressDoubt }: ShellReach, pattern: UrlPattern): LineVerdict {
  if (addresses.some((word) => forbidsWord(pattern, word))) return "reaches";
  return addressDoubt === undefined ? "apart" : "unsure";
}
