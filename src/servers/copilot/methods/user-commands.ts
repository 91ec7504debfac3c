import { randomUUID } from "node:crypto";
import type { Session } from "../../../session/session.ts";
import { approveAll } from "../../../tools/tool.ts";
import { badParams, notSupported } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { MethodFamily } from "./method.ts";

/** The commands that users enter themselves. The session's own shell tool runs them, so that its rules, limits and events apply. */
export const userCommands: MethodFamily = {
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
