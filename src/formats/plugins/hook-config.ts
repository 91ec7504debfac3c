import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { createTextReport } from "../skills/text-report.ts";
import { type JsonPath, parseJson } from "../text/json-document.ts";
import { createFieldReader, describe, type JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import type { BundleDialect } from "./plugin-dialects.ts";

/** The command of a hook: a shell line per operating system, or a program with arguments. */
export type HookProgram =
  | { readonly kind: "shell"; readonly bash: string | undefined; readonly powershell: string | undefined }
  | { readonly kind: "program"; readonly command: string; readonly args: readonly string[] };

/** A configured hook. */
export interface HookCommand {
  readonly moment: HookMoment;
  /** The event's name in the file. */
  readonly event: string;
  readonly protocol: HookProtocol;
  readonly dialect: BundleDialect;
  /** The tools, agents or sources that it applies to; undefined: all. */
  readonly matcher: string | undefined;
  readonly program: HookProgram;
  /** Relative to the session's working directory, or absolute. */
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly timeout: number;
  /** Started without waiting for its end. */
  readonly isAsync: boolean;
}

interface HookConfigOptions {
  readonly file: string;
  readonly dialect: BundleDialect;
  /** The path of the hooks in the file; absent: `hooks`. */
  readonly at?: JsonPath | undefined;
}

interface HookConfig {
  /** In the order of the file. */
  readonly hooks: readonly HookCommand[];
  /** False: the file, or the value of an event, is invalid, so any hook may be missing. */
  readonly isWhole: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Reads a hook configuration of Claude Code, Codex, Copilot or Gemini. An invalid hook is omitted with a diagnostic and does
 * not affect the others. Never throws.
 */
export function parseHookConfig(text: string, options: HookConfigOptions): HookConfig {
  const { file, at } = options;
  if (text.length > maxJsonBytes) return { hooks: [], isWhole: false, diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const { document, faults } = parseJson(text);
  const report = createTextReport(text, file);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  if (document === undefined) return { hooks: [], isWhole: false, diagnostics: report.diagnostics };
  let isWhole = true;
  const complain: JsonComplain = (severity, code, message, path) => {
    isWhole &&= !wholeFaults.has(code);
    report.add(severity, code, message, document.offsetOf(path));
  };
  const hooks = readEvents(document.value, at, options, complain);
  return { hooks, isWhole, diagnostics: report.diagnostics };
}

/** Structural faults, and too many hooks: the intended hooks are unknown then. */
const wholeFaults: ReadonlySet<string> = new Set(["HOOKS_TYPE", "HOOKS_TOO_MANY"]);

const maxHooks = 500;

function readEvents(
  value: unknown,
  at: JsonPath | undefined,
  { dialect }: HookConfigOptions,
  complain: JsonComplain,
): readonly HookCommand[] {
  const whole = at === undefined ? value : valueAt(value, at);
  if (isRecord(whole) && (own(whole, "disableAllHooks") === true || Object.keys(whole).length === 0)) return [];
  const isWrapped = isRecord(whole) && own(whole, "hooks") !== undefined;
  const [events, path] = isWrapped ? [whole["hooks"], [...(at ?? []), "hooks"]] : [whole, at ?? []];
  if (!isRecord(events) || (at === undefined && !isWrapped)) {
    const found = isRecord(events) ? "has no" : `has ${describe(events)} as`;
    const advice = 'Write { "hooks": { "<event>": [ … ] } }.';
    complain("error", "HOOKS_TYPE", `This ${found} "hooks"; it must be an object of hooks by event. ${advice}`, path);
    return [];
  }
  const hooks: HookCommand[] = [];
  for (const [event, entries] of Object.entries(events))
    hooks.push(...readEvent(event, entries, { dialect, path: [...path, event], complain }));
  const longest = Object.values(events).reduce<number>(
    (most, entries) => (Array.isArray(entries) ? Math.max(most, entries.length) : most),
    hooks.length,
  );
  if (longest > maxHooks) complain("error", "HOOKS_TOO_MANY", `There are ${longest} hooks, but only the first ${maxHooks} are used.`, path);
  return hooks.slice(0, maxHooks);
}

interface Reading {
  readonly dialect: BundleDialect;
  readonly path: JsonPath;
  readonly complain: JsonComplain;
}

function readEvent(event: string, entries: unknown, { dialect, path, complain }: Reading): readonly HookCommand[] {
  const known = hookEventOf(dialect, event);
  const shown = JSON.stringify(event.slice(0, 60));
  if (known.kind !== "known") {
    const why = known.kind === "unknown" ? "Unknown event" : "skillhost has no equivalent of the event";
    complain("warning", "HOOK_EVENT_UNSUPPORTED", `${why} ${shown}: its hooks never run.`, path);
    return [];
  }
  if (!Array.isArray(entries)) {
    complain(
      "error",
      "HOOKS_TYPE",
      `The event ${shown} must have an array of hooks, not ${describe(entries)}. Its hooks are ignored.`,
      path,
    );
    return [];
  }
  const { moment, protocol } = known;
  const place = { event, moment, protocol, dialect };
  return entries
    .slice(0, maxHooks)
    .flatMap((entry: unknown, index) => readEntry(entry, place, { dialect, path: [...path, index], complain }));
}

type EventPlace = Pick<HookCommand, "event" | "moment" | "protocol" | "dialect">;

/** A hook, or hooks that share a matcher. */
function readEntry(entry: unknown, place: EventPlace, reading: Reading): readonly HookCommand[] {
  const { path, complain } = reading;
  if (!isRecord(entry)) {
    complain("error", "HOOKS_TYPE", `A hook must be an object, not ${describe(entry)}. It is ignored.`, path);
    return [];
  }
  const group = own(entry, "hooks");
  if (group === undefined) return readHook(entry, place, own(entry, "matcher"), reading);
  if (Array.isArray(group)) {
    return group.slice(0, maxHooks).flatMap((hook: unknown, index) => {
      const within = { ...reading, path: [...path, "hooks", index] };
      if (isRecord(hook)) return readHook(hook, place, own(hook, "matcher") ?? own(entry, "matcher"), within);
      complain("error", "HOOKS_TYPE", `A hook must be an object, not ${describe(hook)}. It is ignored.`, within.path);
      return [];
    });
  }
  complain("error", "HOOKS_TYPE", `"hooks" of a matcher must be an array, not ${describe(group)}. They are ignored.`, [...path, "hooks"]);
  return [];
}

function readHook(hook: Json, place: EventPlace, matcher: unknown, { dialect, path, complain }: Reading): readonly HookCommand[] {
  let isSound = true;
  const fields = createFieldReader(
    hook,
    (_severity, code, message, at) => {
      isSound = false;
      complain("error", code, `${message} The hook is ignored.`, at);
    },
    { code: "HOOK_FIELD_TYPE", path },
  );
  const refuse = (code: string, message: string): readonly HookCommand[] => {
    complain("error", code, `${message} The hook is ignored.`, path);
    return [];
  };
  const type = fields.text("type") ?? "command";
  if (type !== "command") return refuse("HOOK_TYPE_UNSUPPORTED", `Hooks of type ${JSON.stringify(type.slice(0, 40))} are not supported.`);
  if (matcher !== undefined && typeof matcher !== "string")
    return refuse("HOOK_FIELD_TYPE", `"matcher" must be a string, not ${describe(matcher)}.`);
  const program = readProgram(hook, fields);
  const [cwd, env, timeout] = [fields.text("cwd"), fields.texts("env"), readTimeout(hook, dialect, fields)];
  const isAsync = fields.flag("async") ?? false;
  if (!isSound) return [];
  if (program === undefined) return refuse("HOOK_COMMAND_MISSING", "A hook needs a command.");
  if (own(hook, "if") !== undefined)
    complain("warning", "HOOK_CONDITION_UNSUPPORTED", '"if" has no effect here: the hook runs whenever its matcher matches.', [
      ...path,
      "if",
    ]);
  return [{ ...place, matcher, program, cwd, env: env ?? {}, timeout, isAsync }];
}

type Fields = ReturnType<typeof createFieldReader>;

function readProgram(hook: Json, fields: Fields): HookProgram | undefined {
  const [command, exec, bash, powershell] = [fields.text("command"), fields.text("exec"), fields.text("bash"), fields.text("powershell")];
  const args = fields.list("args");
  if (args !== undefined && !args.every((arg) => typeof arg === "string")) fields.wrong("args", '"args" must contain only strings.');
  const direct = exec ?? (own(hook, "args") === undefined ? undefined : command);
  if (direct !== undefined && direct.trim() !== "") return { kind: "program", command: direct, args: (args ?? []) as readonly string[] };
  const lines = { bash: bash ?? command, powershell: powershell ?? command };
  return [lines.bash, lines.powershell].every((line) => line === undefined || line.trim() === "") ? undefined : { kind: "shell", ...lines };
}

const longestTimeout = 3_600_000;

function readTimeout(hook: Json, dialect: BundleDialect, fields: Fields): number {
  const given = own(hook, "timeoutSec") ?? own(hook, "timeout");
  if (given === undefined) return defaultHookTimeout(dialect);
  if (typeof given !== "number" || !(given > 0)) {
    fields.wrong("timeout", `"timeout" must be a positive number, not ${describe(given)}.`);
    return defaultHookTimeout(dialect);
  }
  // Gemini uses milliseconds, all others use seconds.
  return Math.min(dialect === "gemini" ? given : given * 1_000, longestTimeout);
}

function valueAt(value: unknown, path: JsonPath): unknown {
  let at = value;
  for (const step of path)
    at = typeof at === "object" && at !== null && Object.hasOwn(at, step) ? (at as Record<string | number, unknown>)[step] : undefined;
  return at;
}

function own(object: Json, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The event of a hook, independent of the dialect. */
export type HookMoment =
  | "preToolUse"
  | "postToolUse"
  | "postToolUseFailure"
  | "userPromptSubmitted"
  | "userPromptTransformed"
  | "sessionStart"
  | "sessionEnd"
  | "errorOccurred"
  | "agentStop"
  | "subagentStart"
  | "subagentStop";

/** The protocol of a hook's input and output: that of Claude Code (also Codex and VS Code), of Gemini, or of the Copilot runtime. */
type HookProtocol = "claude" | "gemini" | "copilot";

const claudeEvents: Readonly<Record<string, HookMoment>> = {
  PreToolUse: "preToolUse",
  PostToolUse: "postToolUse",
  PostToolUseFailure: "postToolUseFailure",
  UserPromptSubmit: "userPromptSubmitted",
  SessionStart: "sessionStart",
  SessionEnd: "sessionEnd",
  Stop: "agentStop",
  SubagentStart: "subagentStart",
  SubagentStop: "subagentStop",
};

const geminiEvents: Readonly<Record<string, HookMoment>> = {
  BeforeTool: "preToolUse",
  AfterTool: "postToolUse",
  BeforeAgent: "userPromptSubmitted",
  AfterAgent: "agentStop",
  SessionStart: "sessionStart",
  SessionEnd: "sessionEnd",
};

const copilotMoments: readonly HookMoment[] = [
  "preToolUse",
  "postToolUse",
  "postToolUseFailure",
  "userPromptSubmitted",
  "userPromptTransformed",
  "sessionStart",
  "sessionEnd",
  "errorOccurred",
  "agentStop",
  "subagentStart",
  "subagentStop",
];

/** Events of these clients without an equivalent here. */
const withoutCounterpart: ReadonlySet<string> = new Set([
  "Notification",
  "PermissionRequest",
  "PermissionDenied",
  "PreCompact",
  "PostCompact",
  "PreCompress",
  "Setup",
  "InstructionsLoaded",
  "ConfigChange",
  "CwdChanged",
  "FileChanged",
  "WorktreeCreate",
  "WorktreeRemove",
  "TaskCreated",
  "TaskCompleted",
  "TeammateIdle",
  "StopFailure",
  "Elicitation",
  "ElicitationResult",
  "Interrupt",
  "BeforeModel",
  "AfterModel",
  "BeforeToolSelection",
  "notification",
  "permissionRequest",
  "preCompact",
]);

type HookEvent =
  | { readonly kind: "known"; readonly moment: HookMoment; readonly protocol: HookProtocol }
  | { readonly kind: "unsupported" | "unknown" };

/** The event that corresponds to an event of a dialect. */
function hookEventOf(dialect: BundleDialect, name: string): HookEvent {
  const [table, protocol] = dialect === "gemini" ? ([geminiEvents, "gemini"] as const) : ([claudeEvents, "claude"] as const);
  if (Object.hasOwn(table, name)) return { kind: "known", moment: table[name]!, protocol };
  if (dialect === "copilot" && (copilotMoments as readonly string[]).includes(name))
    return { kind: "known", moment: name as HookMoment, protocol: "copilot" };
  if (dialect === "copilot" && name === "ErrorOccurred") return { kind: "known", moment: "errorOccurred", protocol: "claude" };
  return { kind: withoutCounterpart.has(name) ? "unsupported" : "unknown" };
}

/** The default time limit of a hook, in milliseconds. */
function defaultHookTimeout(dialect: BundleDialect): number {
  return dialect === "copilot" ? 30_000 : 60_000;
}
