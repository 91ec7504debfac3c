import { settlesWithin } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import type { ListedTool, Session } from "../../session/session.ts";
import type { Tool, ToolResult } from "../../tools/tool.ts";
import { askForArguments, parseFlags, printToolUsage, readArguments } from "../call-arguments.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { permissionRoute, userInputHandler } from "../confirm.ts";
import { didYouMean } from "../did-you-mean.ts";
import { withHost } from "../open-host.ts";
import type { Output } from "../output.ts";
import { findPinPlace, pinCall } from "../pin-call.ts";
import { visibleText } from "../terminal-style.ts";

export interface CallCommandOptions {
  readonly arg?: readonly string[];
  readonly yes?: boolean;
  readonly timeout?: number;
  /** The name under which the call is stored, for `skillhost test`. */
  readonly pin?: string;
  /** The options of skillhost itself, such as `--json`: arguments with these names can only be passed with `--arg`. */
  readonly reserved: readonly string[];
}

/**
 * Calls a tool through the complete pipeline of a session. The words are the arguments as JSON, or one option for each argument, or
 * `--help`. The exit code is 0 for a successful result.
 */
export async function call(context: CommandContext, name: string, words: readonly string[], options: CallCommandOptions): Promise<number> {
  // Read first, so that wrong arguments are reported before anything is loaded.
  const request = await readRequest(context, words, options);
  return withHost(context, {}, (host) => callWith(host, context, name, request, options));
}

/** Calls a tool of a host that is already there, and stays. */
export async function callOnHost(
  host: Host,
  context: CommandContext,
  name: string,
  words: readonly string[],
  options: CallCommandOptions,
): Promise<number> {
  const request = await readRequest(context, words, options);
  const sessions: Session[] = [];
  try {
    return await callWith(host, context, name, request, options, (session) => sessions.push(session));
  } finally {
    // A tool that ignores its cancellation does not keep the caller waiting.
    for (const session of sessions) await settlesWithin(session.disconnect(), endingMs);
  }
}

const endingMs = 1_000;

interface CallRequest {
  readonly given: Record<string, unknown>;
  readonly flags: readonly string[];
  /** Whether the arguments are JSON, so that nothing is asked. */
  readonly isJson: boolean;
  readonly wantsHelp: boolean;
}

async function readRequest(context: CommandContext, words: readonly string[], options: CallCommandOptions): Promise<CallRequest> {
  const [json, flags] = words[0] === "-" || words[0]?.startsWith("-") === false ? [words[0], words.slice(1)] : [undefined, words];
  const wantsHelp = flags.includes("--help") || flags.includes("-h");
  const given = wantsHelp ? {} : await readArguments({ json, pairs: options.arg ?? [], hasFlags: flags.length > 0 }, context);
  return { given, flags, isJson: json !== undefined, wantsHelp };
}

async function callWith(
  host: Host,
  context: CommandContext,
  name: string,
  { given, flags, isJson, wantsHelp }: CallRequest,
  options: CallCommandOptions,
  onSession?: (session: Session) => void,
): Promise<number> {
  const { io, out } = context;
  const limit = createCallLimit(options.timeout);
  const permission = permissionRoute(context, (used) => sourceOf(findTool(session, used)), options.yes === true);
  const userInput = userInputHandler(context);
  const session = await host.createSession({
    persist: false,
    toolTimeout: options.timeout,
    // There is no model whose context a large result could fill.
    largeOutput: { enabled: false },
    // The user's time to answer does not count towards the tool's limit.
    onPermissionRequest: (data, invocation) => limit.pausedWhile(() => permission.handler(data, invocation)),
    onUserInputRequest: userInput && ((data, invocation) => limit.pausedWhile(() => userInput(data, invocation))),
  });
  onSession?.(session);
  // Tools of an MCP server are known only after it has started.
  if (findTool(session, name) === undefined) await session.ready(io.signal);
  const tool = findTool(session, name) ?? unknownTool(name, session, host, out.isJson);
  if (wantsHelp) {
    printToolUsage(tool, options.reserved, out);
    return 0;
  }
  if (session.catalog.executables.get(tool.name)?.hasHandler === false) throw withoutHandler(tool);
  const place = options.pin === undefined ? undefined : findPinPlace(host, options.pin, tool);
  const fromFlags = Object.assign(given, parseFlags(flags, tool, options.reserved));
  const args = isJson ? fromFlags : await askForArguments(fromFlags, tool, context);
  const result = await limit.run((signal) => session.callTool(name, args, { signal: AbortSignal.any([io.signal, signal]) }));
  const isMade = result.resultType !== "denied" && result.resultType !== "rejected";
  const pinned = place && isMade ? { name: place.name, file: await pinCall(place, args, io.signal) } : undefined;
  report(context, { tool, result, pinned }, host);
  if (pinned !== undefined) out.note(pinnedNote(pinned, session.catalog.executables.get(tool.name), out));
  else if (place !== undefined) out.note("The call was not made, so it was not stored.");
  if (permission.wasUnanswered()) out.note("The call was denied: it needs permission, and this is not a terminal. Allow it with --yes.");
  if (limit.hasPassed()) out.note(`The call was cancelled after ${options.timeout} ms.`);
  return result.resultType === "success" ? 0 : 1;
}

/** The tool with a name as models use it, or as `skill/tool`. */
export function findTool(session: Session, name: string): ListedTool | undefined {
  return session.listTools().find((tool) => tool.name === name || tool.namespacedName === name);
}

function sourceOf(tool: ListedTool | undefined): string {
  return tool === undefined ? "this session" : `${tool.source.kind} "${tool.source.name}"`;
}

function withoutHandler({ name }: ListedTool): CliError {
  return new CliError(
    "TOOL_WITHOUT_HANDLER",
    `Tool "${name}" is a client tool without a handler: only a client that is attached to a session can answer its calls.`,
    1,
  );
}

function unknownTool(name: string, session: Session, host: Host, isJson: boolean): never {
  const tools = session.listTools().map((tool) => tool.name);
  const isKnown = host.explain(name).tools.length > 0;
  const hint = isKnown
    ? ` It exists but is not available: run "skillhost explain ${name}" to see why.`
    : (heldHint(name, host) ?? didYouMean(name, tools));
  const errors = host.diagnostics.filter(({ severity }) => severity === "error");
  // Without --json the diagnostics are already on stderr.
  throw new CliError(
    "TOOL_UNKNOWN",
    `Tool "${name}" does not exist.${hint} Run "skillhost list" to see all tools.`,
    1,
    isJson ? errors : [],
  );
}

/** The hint for a tool that is held back because its server changed it. */
function heldHint(name: string, host: Host): string | undefined {
  for (const { name: server, held } of host.listServers()) {
    const tool = held.find((each) => name === `${server}/${each.name}` || name === `${server}-${each.name}`);
    if (tool !== undefined) return ` It is waiting for approval: run "skillhost approve ${server} ${tool.name}" to see why.`;
  }
  return undefined;
}

interface Pinned {
  readonly name: string;
  readonly file: string;
}

function pinnedNote({ name, file }: Pinned, tool: Tool | undefined, out: Output): string {
  const isRun = tool?.definition.annotations?.readOnlyHint === true;
  const advice = isRun ? "" : ' The tool does not claim to read only, so "skillhost test" makes the call only with "automatic": true.';
  return `Stored as "${name}" in ${out.path(file)}.${advice}`;
}

interface CallReport {
  readonly tool: ListedTool;
  readonly result: ToolResult;
  readonly pinned: Pinned | undefined;
}

function report({ io, out }: CommandContext, { tool, result, pinned }: CallReport, host: Host): void {
  if (out.isJson) {
    const ok = result.resultType === "success";
    out.envelope({ ok, data: { tool: tool.name, source: tool.source, result, ...(pinned && { pinned }) }, diagnostics: host.diagnostics });
    return;
  }
  const text = result.textResultForLlm;
  // A terminal interprets control characters; a pipe or file gets the text unchanged.
  const shown = io.stdout.isTTY ? visibleText(text) : text;
  io.stdout.write(shown === "" || shown.endsWith("\n") ? shown : `${shown}\n`);
  for (const { mimeType, data } of result.binaryResultsForLlm ?? []) {
    out.note(`The result also contains ${visibleText(mimeType)}, ${Buffer.byteLength(data, "base64")} bytes; use --json to get it.`);
  }
  if (result.error !== undefined) out.complain(visibleText(result.error));
}

/** A time limit for one call; its clock pauses while the user is asked. */
interface CallLimit {
  hasPassed(): boolean;
  /** Runs the call; the signal fires at the time limit. */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  pausedWhile<T>(work: () => T | Promise<T>): Promise<T>;
}

/** Without milliseconds there is no limit. */
function createCallLimit(milliseconds: number | undefined): CallLimit {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let left = milliseconds ?? 0;
  let since = 0;
  const start = (): void => {
    if (milliseconds === undefined) return;
    since = performance.now();
    timer = setTimeout(() => stop.abort(new Error(`Cancelled after ${milliseconds} ms.`)), Math.max(0, left));
  };
  const pause = (): void => {
    clearTimeout(timer);
    left -= performance.now() - since;
  };
  return {
    hasPassed: () => stop.signal.aborted,
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      start();
      try {
        return await work(stop.signal);
      } finally {
        clearTimeout(timer);
      }
    },
    async pausedWhile<T>(work: () => T | Promise<T>): Promise<T> {
      pause();
      try {
        return await work();
      } finally {
        start();
      }
    },
  };
}
