import { isAbsolute, resolve } from "node:path";
import { HostError } from "../base/errors.ts";
import type { ToolLike } from "../tools/define-tool.ts";
import type { AskHandler } from "./asks.ts";
import { type CatalogView, createCatalogView } from "./catalog-view.ts";
import { type Hook, type HookKind, hookOptions, type ResolvedHooks } from "./hooks.ts";
import type { FilterPrecedence } from "./tool-filter.ts";

/** A session's hooks, by the Copilot SDK's names; a list runs in its order. */
export interface SessionHooks {
  readonly onPreToolUse?: Hook<"preToolUse"> | readonly Hook<"preToolUse">[] | undefined;
  readonly onPostToolUse?: Hook<"postToolUse"> | readonly Hook<"postToolUse">[] | undefined;
  readonly onPostToolUseFailure?: Hook<"postToolUseFailure"> | readonly Hook<"postToolUseFailure">[] | undefined;
}

export interface LargeOutputOptions {
  /** False: results are never cut. Default: true. */
  readonly enabled?: boolean | undefined;
  /** Longer results go to a file. Default: 51,200. */
  readonly maxSizeBytes?: number | undefined;
  /** Where the files go. Default: the session's folder. */
  readonly outputDir?: string | undefined;
}

export interface SessionOptions {
  /** Letters, digits, ".", "_" and "-". Default: a new UUID. */
  readonly sessionId?: string | undefined;
  /** Default: the host's. */
  readonly workingDirectory?: string | undefined;
  readonly model?: string | undefined;
  /** Tools of this program. Change them with `session.setTools`. */
  readonly tools?: readonly ToolLike[] | undefined;
  readonly availableTools?: readonly string[] | undefined;
  readonly excludedTools?: readonly string[] | undefined;
  readonly toolFilterPrecedence?: FilterPrecedence | undefined;
  /** More skill folders; they take precedence over the host's. Relative ones start at the working directory. */
  readonly skillDirectories?: readonly string[] | undefined;
  readonly disabledSkills?: readonly string[] | undefined;
  readonly hooks?: SessionHooks | undefined;
  /** Decides about calls that need permission. Absent: nobody does, and they are denied. */
  readonly onPermissionRequest?: AskHandler<"permission"> | undefined;
  readonly onUserInputRequest?: AskHandler<"userInput"> | undefined;
  readonly onElicitationRequest?: AskHandler<"elicitation"> | undefined;
  /** True: clients may still attach, so a question that nobody can answer yet stays open. Default: false. */
  readonly waitForAttachments?: boolean | undefined;
  /** Deadline of calls in milliseconds, for tools without their own. Default: 120,000. */
  readonly toolTimeout?: number | undefined;
  readonly largeOutput?: LargeOutputOptions | undefined;
}

/** What `update` may change while a session lives. A field given as undefined goes back to its default. */
export type SessionChange = Omit<SessionOptions, "sessionId" | "workingDirectory" | "tools" | "waitForAttachments">;

/** The options of a session, checked and complete. Frozen; `update` makes another. */
export interface ResolvedSessionConfig {
  readonly sessionId: string;
  readonly workingDirectory: string;
  readonly tools: readonly ToolLike[];
  /** What the tools depend on. */
  readonly view: CatalogView;
  readonly hooks: ResolvedHooks;
  readonly onPermissionRequest: AskHandler<"permission"> | undefined;
  readonly onUserInputRequest: AskHandler<"userInput"> | undefined;
  readonly onElicitationRequest: AskHandler<"elicitation"> | undefined;
  readonly waitForAttachments: boolean;
  readonly toolTimeout: number;
  /** Infinite when results are never cut. */
  readonly largeOutput: { readonly maxSizeBytes: number; readonly outputDir: string | undefined };
  /** What was asked for, for `update` to change. */
  readonly options: SessionOptions;
}

export interface SessionDefaults {
  readonly sessionId: string;
  readonly workingDirectory: string;
}

/**
 * Checks a session's options and fills in what they leave open.
 * @throws HostError `SESSION_OPTIONS` naming the field that is unknown or of the wrong type.
 */
export function resolveSessionConfig(options: SessionOptions, defaults: SessionDefaults): ResolvedSessionConfig {
  const given = readFields(options, "session options", fields);
  const workingDirectory = resolve(defaults.workingDirectory, given.workingDirectory ?? "");
  const { largeOutput = {} } = given;
  return Object.freeze({
    sessionId: given.sessionId ?? defaults.sessionId,
    workingDirectory,
    tools: given.tools ?? [],
    view: createCatalogView({ ...given, skillDirectories: absolute(given.skillDirectories, workingDirectory) }),
    hooks: resolveHooks(given.hooks ?? {}),
    onPermissionRequest: given.onPermissionRequest,
    onUserInputRequest: given.onUserInputRequest,
    onElicitationRequest: given.onElicitationRequest,
    waitForAttachments: given.waitForAttachments ?? false,
    toolTimeout: given.toolTimeout ?? 120_000,
    largeOutput: Object.freeze({
      maxSizeBytes: largeOutput.enabled === false ? Number.POSITIVE_INFINITY : (largeOutput.maxSizeBytes ?? 51_200),
      outputDir: largeOutput.outputDir === undefined ? undefined : resolve(workingDirectory, largeOutput.outputDir),
    }),
    // Absolute by now: resolved again from here it stays what it is.
    options: { ...given, workingDirectory },
  });
}

/**
 * The configuration after a change: what the change does not mention stays.
 * @throws HostError `SESSION_OPTIONS` for what cannot change while a session lives.
 */
export function changeSessionConfig(config: ResolvedSessionConfig, change: SessionChange): ResolvedSessionConfig {
  if (isRecord(change)) {
    const fixed = Object.keys(change).find((key) => fixedFields.has(key));
    if (fixed !== undefined) throw wrong(fixed, `cannot change while the session lives${fixed === "tools" ? "; use setTools" : ""}`);
  }
  const given = readFields(change, "changes", fields);
  return resolveSessionConfig({ ...config.options, ...given }, config);
}

const fixedFields: ReadonlySet<string> = new Set(["sessionId", "workingDirectory", "tools", "waitForAttachments"]);

type Fields<T> = { readonly [K in keyof T]-?: (value: unknown, field: string) => Exclude<T[K], undefined> };

const fields: Fields<SessionOptions> = {
  sessionId: readSessionId,
  workingDirectory: readText,
  model: readText,
  // Each tool is read when it is pushed, with the messages of a push.
  tools: (value, field) => (Array.isArray(value) ? (value as ToolLike[]) : mustBe(field, "a list of tools")),
  availableTools: readTexts,
  excludedTools: readTexts,
  toolFilterPrecedence: (value, field) =>
    value === "excluded" || value === "available" ? value : mustBe(field, '"excluded" or "available"'),
  skillDirectories: readTexts,
  disabledSkills: readTexts,
  hooks: (value, field) => readFields(value, field, hookFields),
  onPermissionRequest: readCallback,
  onUserInputRequest: readCallback,
  onElicitationRequest: readCallback,
  waitForAttachments: readFlag,
  toolTimeout: readPositive,
  largeOutput: (value, field) => readFields(value, field, largeOutputFields),
};

const hookFields: Fields<SessionHooks> = {
  onPreToolUse: readHooks<"preToolUse">,
  onPostToolUse: readHooks<"postToolUse">,
  onPostToolUseFailure: readHooks<"postToolUseFailure">,
};

const largeOutputFields: Fields<LargeOutputOptions> = { enabled: readFlag, maxSizeBytes: readPositive, outputDir: readText };

/** Reads an object by a table of its fields: every field known, each of its type, undefined as if it were absent. */
function readFields<T extends object>(value: unknown, what: string, table: Fields<T>): T {
  if (!isRecord(value)) return mustBe(what, "an object");
  const read: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(table, key)) throw wrong(key, `is not an option here. ${capitalized(what)} are ${Object.keys(table).join(", ")}`);
    const field = value[key];
    read[key] = field === undefined ? undefined : table[key as keyof T](field, key);
  }
  return read as T;
}

function readSessionId(value: unknown, field: string): string {
  // It names a folder.
  const isId = typeof value === "string" && /^(?!\.+$)[\w.-]{1,128}$/.test(value);
  return isId ? value : mustBe(field, 'up to 128 letters, digits, ".", "_" and "-"');
}

function readText(value: unknown, field: string): string {
  return typeof value === "string" && value !== "" && !value.includes("\0") ? value : mustBe(field, "a text that is not empty");
}

function readTexts(value: unknown, field: string): readonly string[] {
  if (!Array.isArray(value)) return mustBe(field, "a list of texts");
  const texts = value.map((text: unknown, index) => (typeof text === "string" ? text : mustBe(`${field}[${index}]`, "a text")));
  return Object.freeze(texts);
}

function readFlag(value: unknown, field: string): boolean {
  return typeof value === "boolean" ? value : mustBe(field, "true or false");
}

function readPositive(value: unknown, field: string): number {
  return typeof value === "number" && value > 0 ? value : mustBe(field, "a number above 0");
}

function readCallback<F extends (...args: never) => unknown>(value: unknown, field: string): F {
  return typeof value === "function" ? (value as F) : mustBe(field, "a function");
}

function readHooks<K extends HookKind>(value: unknown, field: string): readonly Hook<K>[] {
  const hooks = Array.isArray(value) ? value : [value];
  return Object.freeze(hooks.map((hook: unknown) => readCallback<Hook<K>>(hook, field)));
}

function resolveHooks(hooks: SessionHooks): ResolvedHooks {
  const entries = Object.entries(hookOptions).map(([kind, option]) => [kind, hooks[option as keyof SessionHooks] ?? []]);
  return Object.freeze(Object.fromEntries(entries)) as ResolvedHooks;
}

function absolute(directories: readonly string[] | undefined, from: string): readonly string[] | undefined {
  // "~" is the host's to expand.
  return directories?.map((directory) => (directory.startsWith("~") || isAbsolute(directory) ? directory : resolve(from, directory)));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function mustBe(field: string, what: string): never {
  throw wrong(field, `must be ${what}`);
}

function wrong(field: string, problem: string): HostError {
  return new HostError("SESSION_OPTIONS", `${field} ${problem}.`);
}
