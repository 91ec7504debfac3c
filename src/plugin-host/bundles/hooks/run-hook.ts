import { join, resolve, sep } from "node:path";
import { RE2JS } from "re2js";
import { errorMessage, HostError } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import { createVariableLookup, expandVariables } from "../../../formats/mcp/expand-variables.ts";
import { rulesOf } from "../../../formats/mcp/mcp-dialects.ts";
import type { HookCommand, HookMoment, HookProgram } from "../../../formats/plugins/hook-config.ts";
import { manifestRulesOf } from "../../../formats/plugins/plugin-dialects.ts";
import { type ProgramOutcome, runProgram } from "../../../io/process/child-process.ts";
import { hookOptions, type SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import type { BundleData } from "../bundle.ts";
import { type HookReply, hookAnswer, hookPayload, namesOfTool } from "./hook-answer.ts";

/** Where a hook runs. */
export interface HookPlace {
  /** The bundle's folder. */
  readonly folder: string;
  readonly workingDirectory: string;
  readonly data: BundleData;
  /** Ends every hook that still runs. */
  readonly signal: AbortSignal;
}

// As the Copilot runtime's own limit is in spirit: far more than any answer, far less than memory.
const maxOutputBytes = 1_048_576;

/**
 * Runs a hook's program: its input as JSON on stdin, a minimal environment, no longer than its time-out. Everything that
 * it started ends with it.
 * @throws HostError `HOOK_COMMAND` when it cannot be started, takes too long or answers without end.
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
  if (outcome.kind === "aborted")
    throw fault(
      command,
      timeout.aborted ? `took longer than its ${command.timeout / 1000} seconds and was stopped` : "was stopped with its host",
    );
  if (outcome.kind !== "exited") throw fault(command, `cannot be started: ${outcome.message}`);
  if (outcome.truncated) throw fault(command, `answered with more than ${maxOutputBytes} bytes`);
  return { code: outcome.code, stdout: outcome.stdout, stderr: outcome.stderrTail };
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** What to try, the first that is there. */
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
  // Everything else that stands for a place is a variable of the environment, so that its value needs no quoting.
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

function fault({ event }: HookCommand, what: string): HostError {
  return new HostError("HOOK_COMMAND", `The program of a ${event} hook ${what}.`);
}

type Inputs = Readonly<Record<string, unknown>>;

/** Decides whether a hook is for what happens. Undefined: its matcher is no regular expression that can be used. */
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

/** What a matcher is held against. Of other moments there is only one kind. */
const subjects: Readonly<Partial<Record<HookMoment, Subject>>> = {
  preToolUse: toolNames,
  postToolUse: toolNames,
  postToolUseFailure: toolNames,
  subagentStart: agentName,
  subagentStop: agentName,
  // What others call the start of a program is a new session here.
  sessionStart: (_command, { source }) => (source === "resume" ? ["resume"] : ["startup", String(source)]),
  sessionEnd: (_command, { reason }) => [String(reason), "other"],
};

/** As each dialect documents it: words between bars are names; otherwise a regular expression, of the whole for Copilot. */
function createTest({ dialect, protocol }: HookCommand, matcher: string): ((text: string) => boolean) | undefined {
  const isWords = /^[\w|,\s-]+$/.test(matcher);
  if (isWords && protocol === "claude" && dialect !== "codex") {
    const words = new Set(matcher.split(/[|,]/).map((word) => word.trim()));
    return (text) => words.has(text);
  }
  const isWhole = dialect === "copilot";
  if (matcher.length > 2_000) return undefined;
  try {
    // In time that grows with the text only: the expression is a stranger's.
    const pattern = RE2JS.compile(isWhole ? `^(?:${matcher})$` : matcher);
    return (text) => pattern.test(text);
  } catch {
    // Look-around, back-references, or no expression at all: whoever asked reports it.
    return undefined;
  }
}

type Observer = (input: Inputs) => unknown;

/**
 * The hooks of a bundle as sessions take them. One that fails throws, so that a gate denies what it guards and an observer
 * is passed over; of what it wrote to stderr, the log tells.
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
  if (!command.isAsync) return conclude(command, input, place, await runHook(command, input, place));
  // It goes on by itself; only the log hears how it ended.
  runHook(command, input, place).then(
    (reply) => void tell(command, place, reply),
    (error) => place.log.warning(errorMessage(error), { hook: command.event }),
  );
  return undefined;
}

function conclude(command: HookCommand, input: Inputs, place: HookPlace & { readonly log: Logger }, reply: HookReply): object | undefined {
  tell(command, place, reply);
  return hookAnswer(command, input, reply);
}

function tell({ event, program }: HookCommand, { log, folder }: HookPlace & { readonly log: Logger }, { code, stderr }: HookReply): void {
  if (code === 0 || code === 2) return;
  const line = program.kind === "shell" ? (program.bash ?? program.powershell) : program.command;
  log.warning(`A ${event} hook of the plugin in ${folder} ended with exit code ${code}.`, {
    command: line?.slice(0, 200),
    stderr: stderr.slice(-2_000),
  });
}
