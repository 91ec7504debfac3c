import { join, resolve, sep } from "node:path";
import { RE2JS } from "re2js";
import { errorMessage } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import { createVariableLookup, expandVariables, rulesOf } from "../../../formats/mcp/mcp-dialects.ts";
import type { HookCommand, HookMoment, HookProgram } from "../../../formats/plugins/hook-config.ts";
import { manifestRulesOf } from "../../../formats/plugins/plugin-dialects.ts";
import { type ProgramOutcome, runProgram } from "../../../io/process/child-process.ts";
import { hookOptions, type SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import type { BundleData } from "../bundle.ts";
import { type HookReply, hookAnswer, hookError, hookPayload, namesOfTool } from "./hook-answer.ts";

/** The folders of a hook, and its lifetime. */
export interface HookPlace {
  /** The bundle's folder. */
  readonly folder: string;
  readonly workingDirectory: string;
  readonly data: BundleData;
  /** Ends running hooks. */
  readonly signal: AbortSignal;
}

// Far more than a useful answer needs.
const maxOutputBytes = 1_048_576;

/**
 * Runs a hook's program with its input as JSON on stdin, a minimal environment and a time limit. All processes that it started
 * end with it.
 * @throws HostError `HOOK_COMMAND` when it cannot be started, takes too long or writes too much.
 */
async function runHook(command: HookCommand, input: Readonly<Record<string, unknown>>, place: HookPlace): Promise<HookReply> {
  const stdin = `${JSON.stringify(hookPayload(command, input))}\n`;
  const cwd = resolve(String(input["cwd"] ?? place.workingDirectory), command.cwd ?? ".");
  const timeout = AbortSignal.timeout(command.timeout);
  const signal = AbortSignal.any([place.signal, timeout]);
  const env = environmentOf(command, place, cwd);
  let outcome: ProgramOutcome = { kind: "not-found", message: "The hook has no command for this operating system." };
  for (const program of programsOf(command, place)) {
    outcome = await runProgram({ ...program, cwd, env, stdin, signal, maxOutputBytes, graceMs: 500 });
    if (outcome.kind !== "not-found") break;
  }
  if (outcome.kind === "aborted") {
    const late = `took longer than its ${command.timeout / 1000} seconds and was stopped`;
    throw hookError(command, timeout.aborted ? late : "was stopped with its host");
  }
  if (outcome.kind !== "exited") throw hookError(command, `cannot be started: ${outcome.message}`);
  if (outcome.truncated) throw hookError(command, `answered with more than ${maxOutputBytes} bytes`);
  return { code: outcome.code, stdout: outcome.stdout, stderr: outcome.stderrTail };
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** The programs to try. The first that exists is run. */
function programsOf({ program, dialect }: HookCommand, place: HookPlace): readonly Program[] {
  if (program.kind === "program") {
    const fill = (text: string): string => fillPlaces(dialect, text, place);
    const command = fill(program.command);
    return [{ command: /^\.\.?[\\/]/.test(command) ? join(place.folder, command) : command, args: program.args.map(fill) }];
  }
  return process.platform === "win32" ? onWindows(program, dialect, place) : shells(program.bash, place);
}

function shells(line: string | undefined, place: HookPlace): readonly Program[] {
  if (line === undefined) return [];
  // All other places are environment variables, so that their values need no quoting.
  const args = ["-c", line.replaceAll("${/}", sep).replaceAll("${pathSeparator}", sep)];
  return ["bash", "sh"].map((command) => ({ command, args, place }));
}

function onWindows(
  { bash, powershell }: Extract<HookProgram, { kind: "shell" }>,
  dialect: HookCommand["dialect"],
  place: HookPlace,
): readonly Program[] {
  const filled = fillPlaces(dialect, powershell ?? "", place);
  const line: readonly Program[] = powershell === undefined ? [] : [{ command: "powershell", args: ["-NoProfile", "-Command", filled] }];
  return dialect === "copilot" ? line : [...shells(bash, place), ...line];
}

function fillPlaces(dialect: HookCommand["dialect"], text: string, { folder, workingDirectory, data }: HookPlace): string {
  const places = { folder, workspace: workingDirectory, separator: sep, data: data.path };
  return expandVariables(text, { ...rulesOf(manifestRulesOf(dialect).servers), ...ownPlaces }, createVariableLookup({ places })).text;
}

const ownPlaces = {
  environment: [],
  places: {
    CLAUDE_PLUGIN_ROOT: "folder",
    PLUGIN_ROOT: "folder",
    extensionPath: "folder",
    CLAUDE_PLUGIN_DATA: "data",
    PLUGIN_DATA: "data",
    CLAUDE_PROJECT_DIR: "workspace",
    workspacePath: "workspace",
    "/": "separator",
    pathSeparator: "separator",
  },
} as const;

function environmentOf({ env, dialect }: HookCommand, place: HookPlace, cwd: string): Record<string, string> {
  const { folder, data } = place;
  const own = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fillPlaces(dialect, value, place)]));
  const dataFolder = data.ensure();
  return {
    ...own,
    CLAUDE_PLUGIN_ROOT: folder,
    CLAUDE_PLUGIN_DATA: dataFolder,
    CLAUDE_PROJECT_DIR: cwd,
    PLUGIN_ROOT: folder,
    PLUGIN_DATA: dataFolder,
    ...(dialect === "gemini" && { GEMINI_PROJECT_DIR: cwd, GEMINI_CWD: cwd, extensionPath: folder, workspacePath: cwd }),
  };
}

type Inputs = Readonly<Record<string, unknown>>;

/** Creates the test of a hook's matcher. Undefined: the matcher is not a supported regular expression. */
export function createMatcher(command: HookCommand): ((input: Inputs) => boolean) | undefined {
  const { matcher, moment } = command;
  const isForAll = matcher === undefined || ["", "*", "**"].includes(matcher.trim());
  const subject = subjects[moment];
  if (isForAll || subject === undefined) return () => true;
  const fits = createTest(command, matcher);
  return fits && ((input) => subject(command, input).some(fits));
}

type Subject = (command: HookCommand, input: Inputs) => readonly string[];

const toolNames: Subject = ({ dialect, protocol }, { toolName }) =>
  protocol === "copilot" ? [String(toolName)] : namesOfTool(dialect, String(toolName));
const agentName: Subject = (_command, { agentName: name }) => [String(name)];

/** The texts that a matcher tests. Hooks for other moments run always. */
const subjects: Readonly<Partial<Record<HookMoment, Subject>>> = {
  preToolUse: toolNames,
  postToolUse: toolNames,
  postToolUseFailure: toolNames,
  subagentStart: agentName,
  subagentStop: agentName,
  // Other clients call a new session "startup".
  sessionStart: (_command, { source }) => (source === "resume" ? ["resume"] : ["startup", String(source)]),
  sessionEnd: (_command, { reason }) => [String(reason), "other"],
};

/** As each dialect documents it: words between bars are names, anything else is a regular expression (anchored for Copilot). */
function createTest({ dialect, protocol }: HookCommand, matcher: string): ((text: string) => boolean) | undefined {
  const isWords = /^[\w|,\s-]+$/.test(matcher);
  if (isWords && protocol === "claude" && dialect !== "codex") {
    const words = new Set(matcher.split(/[|,]/).map((word) => word.trim()));
    return (text) => words.has(text);
  }
  const isWhole = dialect === "copilot";
  if (matcher.length > 2_000) return undefined;
  try {
    // The expression is untrusted, so it must run in linear time.
    const pattern = RE2JS.compile(isWhole ? `^(?:${matcher})$` : matcher);
    return (text) => pattern.test(text);
  } catch {
    // It has look-around or back-references, or is not a regular expression. The caller reports it.
    return undefined;
  }
}

type Observer = (input: Inputs) => unknown;

/**
 * The hooks of a bundle in the form of session options. A failing hook throws, so that a gate denies the call and an observer is
 * ignored. Its stderr is logged.
 */
export function createBundleHooks(commands: readonly HookCommand[], place: HookPlace & { readonly log: Logger }): SessionHooks {
  const hooks: Partial<Record<keyof SessionHooks, readonly Observer[]>> = {};
  for (const command of commands) {
    const fits = createMatcher(command);
    if (fits === undefined) continue;
    const option = hookOptions[command.moment];
    hooks[option] = [...(hooks[option] ?? []), (input) => (fits(input) ? run(command, input, place) : undefined)];
  }
  return hooks as unknown as SessionHooks;
}

async function run(command: HookCommand, input: Inputs, place: HookPlace & { readonly log: Logger }): Promise<unknown> {
  if (!command.isAsync) {
    const reply = await runHook(command, input, place);
    logFailure(command, place, reply);
    return hookAnswer(command, input, reply);
  }
  // It runs in the background, and only the log gets its outcome.
  runHook(command, input, place).then(
    (reply) => void logFailure(command, place, reply),
    (error) => place.log.warning(errorMessage(error), { hook: command.event }),
  );
  return undefined;
}

function logFailure(
  { event, program }: HookCommand,
  { log, folder }: HookPlace & { readonly log: Logger },
  { code, stderr }: HookReply,
): void {
  if (code === 0 || code === 2) return;
  const line = program.kind === "shell" ? (program.bash ?? program.powershell) : program.command;
  log.warning(`A ${event} hook of the plugin in ${folder} ended with exit code ${code}.`, {
    command: line?.slice(0, 200),
    stderr: stderr.slice(-2_000),
  });
}
