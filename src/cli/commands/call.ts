import { positionAt } from "../../base/diagnostic.ts";
import { parseJson } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import type { Host } from "../../host/host.ts";
import type { ListedTool, Session } from "../../session/session.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { permissionRoute, userInputHandler } from "../confirm.ts";
import { didYouMean } from "../did-you-mean.ts";
import { withHost } from "../open-host.ts";
import type { CliIo } from "../process-io.ts";
import { visibleText } from "../terminal-style.ts";

export interface CallCommandOptions {
  readonly arg?: readonly string[];
  readonly yes?: boolean;
  readonly timeout?: number;
}

/** Calls a tool through the complete pipeline of a session. The exit code is 0 for a successful result. */
export async function call(context: CommandContext, name: string, json: string | undefined, options: CallCommandOptions): Promise<number> {
  const { io, out } = context;
  const waits = (): void => out.note("Waiting for arguments as JSON on stdin. To call without arguments, pass '{}'.");
  const args = await readArguments({ json, pairs: options.arg ?? [] }, io, waits);
  return withHost(context, {}, async (host) => {
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
    // Tools of an MCP server are known only after it has started.
    if (findTool(session, name) === undefined) await session.ready(io.signal);
    const tool = findTool(session, name) ?? unknownTool(name, session, host, out.isJson);
    if (session.catalog.executables.get(tool.name)?.hasHandler === false) throw withoutHandler(tool);
    const result = await limit.run((signal) => session.callTool(name, args, { signal: AbortSignal.any([io.signal, signal]) }));
    report(context, tool, result, host);
    if (permission.wasUnanswered()) out.note("The call was denied: it needs permission, and this is not a terminal. Allow it with --yes.");
    if (limit.hasPassed()) out.note(`The call was cancelled after ${options.timeout} ms.`);
    return result.resultType === "success" ? 0 : 1;
  });
}

function findTool(session: Session, name: string): ListedTool | undefined {
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

function report({ io, out }: CommandContext, tool: ListedTool, result: ToolResult, host: Host): void {
  if (out.isJson) {
    const ok = result.resultType === "success";
    out.envelope({ ok, data: { tool: tool.name, source: tool.source, result }, diagnostics: host.diagnostics });
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

const patienceMs = 1_000;

interface GivenArguments {
  /** JSON, or "-" for stdin. */
  readonly json: string | undefined;
  /** `key=value` each. */
  readonly pairs: readonly string[];
}

/**
 * The arguments of a call: JSON from the command line or stdin, overlaid with the `--arg` pairs. `waits` is called when the command waits
 * for stdin.
 */
async function readArguments({ json, pairs }: GivenArguments, io: CliIo, waits: () => void): Promise<Readonly<Record<string, unknown>>> {
  const fromStdin = json === "-" || (json === undefined && pairs.length === 0 && io.stdin.isPiped);
  const text = fromStdin ? await readStdin(io, waits) : json;
  const base = text === undefined || text.trim() === "" ? {} : parseObject(text, fromStdin ? "stdin" : "the arguments");
  return Object.assign(Object.create(null), base, parsePairs(pairs));
}

async function readStdin(io: CliIo, waits: () => void): Promise<string> {
  const timer = setTimeout(waits, patienceMs);
  try {
    const text = await io.stdin.read(io.signal);
    if (text.length > maxJsonBytes)
      throw usageError(`stdin has more than ${maxJsonBytes} characters. Pass the path of a file as an argument instead.`);
    return text;
  } finally {
    clearTimeout(timer);
  }
}

function parseObject(text: string, where: string): object {
  const { document, faults } = parseJson(text);
  const fault = faults[0];
  if (document === undefined && fault) {
    const { line, column } = positionAt(text, fault.offset);
    throw usageError(`The JSON in ${where} is not valid (${line}:${column}): ${fault.message}`);
  }
  const value = document?.value;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw usageError(`Tool arguments must be a JSON object such as '{"path": "src"}', or --arg path=src.`);
}

function parsePairs(pairs: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = Object.create(null);
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) throw usageError(`--arg requires the form name=value, but got ${JSON.stringify(pair)}.`);
    values[pair.slice(0, at)] = parseValue(pair.slice(at + 1));
  }
  return values;
}

function parseValue(text: string): unknown {
  const { document } = parseJson(text);
  return document === undefined ? text : document.value;
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
