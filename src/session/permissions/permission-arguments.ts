import { isAbsolute, posix, relative, resolve } from "node:path";
import { matchesPath, matchesWildcard } from "./permission-globs.ts";

/** What a rule says of a call's arguments: of one by its name, or of whatever they are. */
export interface ArgumentPattern {
  /** `path`, `range.start`; undefined: any. */
  readonly name: string | undefined;
  readonly glob: string;
}

/** Reads `src/**` or `path=src/**, mode=read`. */
export function readArgumentPatterns(text: string): readonly ArgumentPattern[] {
  return text.split(/,\s*(?=[A-Za-z_][\w.-]*=)/).map((part) => {
    const [, name, glob = part] = /^([A-Za-z_][\w.-]*)=(.*)$/s.exec(part.trim()) ?? [];
    return { name, glob: glob.trim() };
  });
}

/**
 * Whether every pattern holds for every value that it is about. A pattern without a name is about the only argument;
 * of several nobody knows which one it means. Text with `..` among its parts matches nothing: it may lead anywhere.
 */
export function allowsArguments(patterns: readonly ArgumentPattern[], args: unknown): boolean {
  return patterns.every(({ name, glob }) => {
    const value = name === undefined ? onlyArgument(args) : valueAt(args, name);
    const texts = Array.isArray(value) ? value.map(toText) : [toText(value)];
    return texts.length > 0 && texts.every((text) => text !== undefined && !hasParentParts(text) && matchesArgument(glob, text));
  });
}

/** Whether every pattern is met by some text that it is about, however that is spelt. */
export function forbidsArguments(patterns: readonly ArgumentPattern[], args: unknown, workingDirectory: string): boolean {
  return patterns.every(({ name, glob }) => {
    const texts = textsIn(name === undefined ? args : valueAt(args, name));
    // More than anybody can look through: taken for what is forbidden.
    return (
      texts === undefined || texts.some((text) => spellings(text, workingDirectory).some((spelling) => matchesArgument(glob, spelling)))
    );
  });
}

/** `*` stays within a part where the pattern has `**`, or slashes at all, as in paths; in other patterns it takes all. */
function matchesArgument(glob: string, text: string): boolean {
  return glob.includes("/") || glob.includes("**") ? matchesPath(glob, text) : matchesWildcard(glob, text);
}

function hasParentParts(text: string): boolean {
  return text.split(/[\\/]/).includes("..");
}

function spellings(text: string, workingDirectory: string): readonly string[] {
  if (text === "" || text.includes("\0")) return [text];
  const slashed = text.replaceAll("\\", "/");
  const fromHere = isAbsolute(text) ? relative(workingDirectory, text) : relative(workingDirectory, resolve(workingDirectory, text));
  return [text, slashed, posix.normalize(slashed), fromHere.replaceAll("\\", "/")];
}

function onlyArgument(args: unknown): unknown {
  if (!isRecord(args)) return undefined;
  const values = Object.values(args);
  return values.length === 1 ? values[0] : undefined;
}

function valueAt(args: unknown, name: string): unknown {
  if (isRecord(args) && Object.hasOwn(args, name)) return args[name];
  let value = args;
  for (const part of name.split(".")) value = isRecord(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  return value;
}

function toText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

const maxValues = 10_000;

/** Every text in a value, at any depth. Undefined: there are too many. */
function textsIn(value: unknown): readonly string[] | undefined {
  const texts: string[] = [];
  const open: unknown[] = [value];
  for (let seen = 0; open.length > 0; seen++) {
    if (seen > maxValues) return undefined;
    const next = open.pop();
    const text = toText(next);
    if (text !== undefined) texts.push(text);
    else if (typeof next === "object" && next !== null) for (const item of Object.values(next)) open.push(item);
  }
  return texts;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
