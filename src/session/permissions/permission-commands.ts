import type { PermissionRequest } from "../../tools/tool.ts";
import { type CommandLine, parseCommandLine } from "./permission-shell.ts";

/** What a shell rule is about: the first words of a command, and whether more may follow. */
export interface CommandPattern {
  readonly words: readonly string[];
  /** `git:*`: whatever follows the words. */
  readonly isPrefix: boolean;
}

/** The commands of a request, as its tool tells them and as its text reads. */
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
 * variables: nobody knows here what they will be.
 */
export function allowsCommands(patterns: readonly CommandPattern[], requested: RequestedCommands): boolean {
  const isAllowed = (words: readonly string[]): boolean => patterns.some((pattern) => allowsWords(pattern, words));
  const { identifiers, line, redirectsToFile } = requested;
  if (identifiers === undefined) return !redirectsToFile && line?.isSimple === true && isAllowed(line.commands[0]!);
  return toldWhole(requested)?.every((identifier) => isAllowed(wordsOf(identifier))) === true;
}

/**
 * The commands that the tool tells, where they are all that the text has and nothing in it could turn into another.
 * Undefined otherwise.
 */
export function toldWhole({ identifiers = [], line, redirectsToFile }: RequestedCommands): readonly string[] | undefined {
  if (redirectsToFile || identifiers.length === 0 || line?.isClear === false) return undefined;
  const isTold = (words: readonly string[]): boolean => identifiers.some((identifier) => startsWith(words, wordsOf(identifier)));
  return line === undefined || line.commands.every(isTold) ? identifiers : undefined;
}

/** Whether a pattern forbids any of what is requested. A request that tells no command, or a line that is not parsed, is forbidden by all. */
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

// A command within a command within a command: deeper ones are nobody's honest work.
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
