import { basename, isAbsolute, posix, relative, resolve } from "node:path";
import { isRecord } from "../../base/json.ts";
import { matchesPath, matchesWildcard, shellQuoted } from "../../base/text.ts";
import { type ApprovalText, approvalText, exactJson, exactText } from "../../base/untrusted-text.ts";
import { findConfinement, type ProcessLimits } from "../../io/process/confine-process.ts";
import type { CallReach, PermissionAsk, PermissionRequest } from "../../tools/tool.ts";

/** What a call of a tool that is written in JSON reaches, in the form that rules of kind `url`, `shell`, `read` and `write` judge. */
export interface RuledReach {
  readonly request: PermissionRequest;
  /** Where the program runs. Undefined: there is none. */
  readonly workingDirectory: string | undefined;
  /** The operating system keeps the program from what rules protect. */
  readonly isConfined: boolean;
}

export interface ReachFound extends RuledReach {
  /** What the program has to run with: the rules were judged for that. */
  readonly limits: ProcessLimits | undefined;
}

interface LimitRules {
  readonly limitsOf: ((line: string, workingDirectory: string) => ProcessLimits | "unenforceable") | undefined;
}

/** A promise only for programs where rules are about paths or addresses: then they may have to run confined. */
export function findReach(reach: CallReach, { limitsOf }: LimitRules): ReachFound | Promise<ReachFound> {
  if (reach.kind === "url") return { request: { kind: "url", url: reach.url }, ...unconfined };
  const fullCommandText = commandLineOf(reach);
  const found = { request: { kind: "shell", fullCommandText }, workingDirectory: reach.cwd };
  const limits = limitsOf?.(fullCommandText, reach.cwd);
  if (limits === undefined || limits === "unenforceable") return { ...unconfined, ...found };
  return findConfinement().then(({ kind }) => (kind === "enforced" ? { ...found, isConfined: true, limits } : { ...unconfined, ...found }));
}

const unconfined = Object.freeze({ workingDirectory: undefined, isConfined: false, limits: undefined });

/**
 * The line by which a shell would run exactly this program: each word is quoted, so that nothing in it is expanded. A script on the
 * stdin of a shell stands as `-c`, where rules look for commands.
 */
function commandLineOf({ command, args, env, stdin }: Extract<CallReach, { kind: "program" }>): string {
  const variables = Object.entries(env);
  const isPlain = variables.every(([name]) => /^[A-Za-z_]\w*$/.test(name));
  const assignments = variables.map(([name, value]) => (isPlain ? `${name}=${shellQuoted(value)}` : shellQuoted(`${name}=${value}`)));
  const script = stdin !== undefined && /^(?:ba|da|z|k|fi)?sh$/.test(basename(command)) ? ["-c", stdin] : [];
  const words = [command, ...args, ...script].map(shellQuoted);
  return [...(isPlain ? [] : ["env"]), ...assignments, ...words].join(" ");
}

/** What a rule says of a call's arguments: of one by its name, or of whatever they are. */
interface ArgumentPattern {
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
 * with several arguments it would be ambiguous. Text with `..` among its parts matches nothing: it may lead anywhere.
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

// What a person must see of a request: what would run, where, and what would change.
const shownFields = ["fullCommandText", "path", "fileName", "method", "url", "environment", "diff", "hookMessage"];

/**
 * The question whether a call may run, for people, by every way of asking them. `source` names where the tool comes from,
 * where that is known. `isCut: false` shows all of it, however long.
 */
export function permissionText(data: PermissionAsk, source?: string, options: { readonly isCut?: boolean } = {}): ApprovalText {
  const name = exactJson(data.toolName);
  const parts: [label: string, ApprovalText][] = [["Arguments", argumentsText(data.toolArgs, options)]];
  for (const field of shownFields) {
    const value = data[field];
    if (typeof value === "string" && value !== "") parts.push([field, approvalText(value, options)]);
  }
  const from = source === undefined ? "" : ` of ${exactText(source).replace(/\s+/g, " ")}`;
  const question = `May the tool ${name}${from} be called?`;
  return {
    text: [question, ...parts.map(([label, { text }]) => `${label}:\n${text}`)].join("\n"),
    isWhole: parts.every(([, { isWhole }]) => isWhole),
  };
}

function argumentsText(args: unknown, options: { readonly isCut?: boolean }): ApprovalText {
  try {
    return approvalText(JSON.stringify(args, null, 2) ?? "none", options);
  } catch {
    // A hook gave arguments that JSON cannot hold; the person at least sees that.
    return { text: "| (arguments that cannot be shown)", isWhole: false };
  }
}
