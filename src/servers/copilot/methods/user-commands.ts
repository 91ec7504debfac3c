import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { runProgram } from "../../../io/process/child-process.ts";
import type { Session } from "../../../session/session.ts";
import { approveAll } from "../../../tools/tool.ts";
import type { Client } from "../clients/client.ts";
import { badParams, notSupported } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { MethodFamily } from "./method.ts";

/**
 * The commands that users enter themselves, and those of client programs. The session's own shell tool runs the former, so that its
 * rules, limits and events apply. The latter are outside of the conversation: only the client that starts one hears of it.
 */
export const userCommands: MethodFamily = {
  "session.shell.exec"({ server, client, params }) {
    const { session } = findSession(server, params);
    const command = params.text("command");
    const timeout = params.optionalNumber("timeout") ?? 30_000;
    if (!Number.isInteger(timeout) || timeout <= 0 || timeout > maxTimeout) {
      throw badParams(params.method, `timeout must be an integer from 1 to ${maxTimeout}.`);
    }
    const cwd = resolve(session.config.workingDirectory, params.optionalText("cwd") ?? ".");
    const commands = commandsOf(session);
    if (commands.size >= maxCommands)
      throw badParams(params.method, `${maxCommands} commands are running. Stop one with session.shell.kill.`);
    const processId = randomUUID();
    const stop = new AbortController();
    commands.set(processId, stop);
    void execute({ command, cwd, timeout, processId }, client, stop).finally(() => commands.delete(processId));
    return { processId };
  },
  "session.shell.kill"({ server, params }) {
    const stop = commandsOf(findSession(server, params).session).get(params.text("processId"));
    const signal = params.optionalText("signal") ?? "SIGTERM";
    if (!killSignals.includes(signal)) throw badParams(params.method, `signal must be one of ${killSignals.join(", ")}.`);
    stop?.abort(signal);
    return { killed: stop !== undefined };
  },
  async "session.shell.executeUserRequested"({ server, params, signal }) {
    const { session } = findSession(server, params);
    const [requestId, command] = [params.text("requestId"), params.text("command")];
    if (command.trim() === "") throw badParams(params.method, "command must not be empty.");
    const running = runningIn(session);
    if (running.has(requestId)) throw badParams(params.method, `A command with the requestId ${JSON.stringify(requestId)} is running.`);
    const stop = new AbortController();
    running.set(requestId, stop);
    try {
      await session.ready();
      if (!hasShell(session)) throw notSupported(`${params.method} is not supported in this session: it has no built-in tool "${shell}".`);
      return await run(session, command, AbortSignal.any([signal(), stop.signal]));
    } finally {
      running.delete(requestId);
    }
  },
  "session.shell.cancelUserRequested"({ server, params }) {
    const stop = runningIn(findSession(server, params).session).get(params.text("requestId"));
    stop?.abort();
    return { cancelled: stop !== undefined };
  },
};

const shell = "bash";
/** The longest time in seconds that the tool waits for a command. */
const maxWait = 600;

const killSignals = ["SIGTERM", "SIGKILL", "SIGINT"];
const maxTimeout = 2 ** 31 - 1;
const maxCommands = 32;

const commandsBySession = new WeakMap<Session, Map<string, AbortController>>();

function commandsOf(session: Session): Map<string, AbortController> {
  const known = commandsBySession.get(session);
  if (known !== undefined) return known;
  const commands = new Map<string, AbortController>();
  commandsBySession.set(session, commands);
  session.on("session.shutdown", () => {
    for (const stop of commands.values()) stop.abort("SIGTERM");
  });
  return commands;
}

interface ClientCommand {
  readonly command: string;
  readonly cwd: string;
  readonly timeout: number;
  readonly processId: string;
}

/** Never rejects. Commands end with their client. */
async function execute({ command, cwd, timeout, processId }: ClientCommand, { wire }: Client, stop: AbortController): Promise<void> {
  const notify = (method: string, data: object): void => {
    if (wire.isOpen) wire.notify(method, JSON.stringify({ processId, ...data }));
  };
  void wire.closed.then(() => stop.abort("SIGTERM"));
  const graceMs = (): number => (stop.signal.reason === "SIGKILL" ? 0 : 2_000);
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(timeout)]);
  const program =
    process.platform === "win32"
      ? { command: "cmd.exe", args: ["/d", "/s", "/c", command] }
      : { command: "/bin/sh", args: ["-c", command] };
  const outcome = await runProgram({
    ...program,
    cwd,
    signal,
    maxOutputBytes: 0,
    get graceMs() {
      return graceMs();
    },
    onOutput: (data, stream) => notify("shell.output", { stream, data }),
  });
  if (outcome.kind !== "exited" && outcome.kind !== "aborted") notify("shell.output", { stream: "stderr", data: outcome.message });
  notify("shell.exit", { exitCode: outcome.kind === "exited" ? (outcome.code ?? 1) : 1 });
}

const runningBySession = new WeakMap<Session, Map<string, AbortController>>();

function runningIn(session: Session): Map<string, AbortController> {
  const running = runningBySession.get(session) ?? new Map<string, AbortController>();
  runningBySession.set(session, running);
  return running;
}

/** A client's tool of this name is another one: what it would run is unknown. */
function hasShell(session: Session): boolean {
  return session.listTools().some(({ name, source }) => name === shell && source.kind === "builtin");
}

async function run(session: Session, command: string, signal: AbortSignal): Promise<object> {
  const toolCallId = randomUUID();
  const args = { command, description: "Run by the user.", initial_wait: maxWait };
  // The user has entered the command, so it is not asked about. Rules that deny it still do.
  const result = await session.callTool(shell, args, { toolCallId, signal, answers: { permission: approveAll } });
  const { resultType, textResultForLlm: text, toolTelemetry } = result;
  const exitCode = toolTelemetry?.["exitCode"];
  // It was denied or cancelled, or is still running.
  if (resultType !== "success" || typeof exitCode !== "number") {
    return { toolCallId, success: false, output: "", exitCode: null, error: text };
  }
  return { toolCallId, success: exitCode === 0, output: withoutEnd(text, `<exited with exit code ${exitCode}>`), exitCode };
}

/** Without the tool's own last line, which a text that was cut does not have. */
function withoutEnd(text: string, line: string): string {
  return text.endsWith(line) ? text.slice(0, -line.length) : text;
}
