import { resolve } from "node:path";
import { toError } from "../../base/errors.ts";
import { counted } from "../../base/text.ts";
import { onAbort } from "../../base/wait.ts";
import type { ExportFormat } from "../../host/file-session-store.ts";
import type { Host } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { formatOf, writeExport } from "../export-session.ts";
import { withHost } from "../open-host.ts";
import { chooseAgent } from "../project-agents.ts";
import { type PromptCommandOptions, toSessionOptions } from "../prompt-session.ts";
import { followTodos, todoLines } from "../show-todos.ts";
import { resumeStored } from "../stored-sessions.ts";
import { visibleLine } from "../terminal-style.ts";
import { createTurnReport, type TurnReport } from "../turn-report.ts";

export interface RunCommandOptions extends PromptCommandOptions {
  readonly export?: string;
  /** The stored session that the prompt continues: its id, or the beginning of it. */
  readonly resume?: string;
  /** Whether a copy of it is continued. */
  readonly fork?: boolean;
  /** The number of the user's message that is taken back first, with all after it. */
  readonly rewind?: number;
}

/** Lets a model work on one prompt with the tools of the skills. Calls that no rule allows are asked for on a terminal, and denied elsewhere. */
export async function run(context: CommandContext, given: string, options: RunCommandOptions): Promise<number> {
  const { io, out } = context;
  const exported = options.export === undefined ? undefined : { file: resolve(io.cwd, options.export), format: formatOf(options.export) };
  const chosen = options.agent === undefined ? undefined : chooseAgent(context, options.agent);
  const sessionOptions = toSessionOptions(options, context, chosen);
  const place = placeIn(options);
  const prompt = given === "-" ? await io.stdin.read(io.signal) : given;
  if (prompt.trim() === "") throw usageError("The prompt is empty. Describe the task.");
  for (const diagnostic of chosen?.diagnostics ?? []) if (diagnostic.severity !== "info" && !out.isJson) out.complainOf(diagnostic);
  const outcome = await withHost(context, { workspace: true }, async (host) => {
    const session = await openSession(host, context, sessionOptions, place);
    const report = createTurnReport(io, out);
    session.on((event) => {
      if (out.isJson) out.json(event);
      report.onEvent(event);
    });
    using _todos = followTodos(session, out);
    try {
      const answer = await converse(context, session, prompt, report);
      const { rows } = await session.readSqlTodos();
      if (rows.length > 0) out.note(`\n${todoLines(rows).join("\n")}`);
      return answer;
    } finally {
      if (exported !== undefined) await exportTo(session, exported);
    }
  });
  out.envelope({ ...outcome, diagnostics: chosen?.diagnostics ?? [] });
  return outcome.ok ? 0 : 1;
}

/** Where in a stored session the prompt is said. */
interface Place {
  readonly resume: string;
  readonly isFork: boolean;
  /** The message in whose place it is said. Undefined: it comes after all. */
  readonly message: number | undefined;
}

/** Undefined: in a new session. @throws CliError when options do not fit together. */
function placeIn({ resume, fork, rewind }: RunCommandOptions): Place | undefined {
  if (resume !== undefined) return { resume, isFork: fork === true, message: rewind };
  if (fork === undefined && rewind === undefined) return undefined;
  throw usageError("--fork and --rewind are about a stored session. Name it with --resume <id>.");
}

async function openSession(host: Host, { out }: CommandContext, options: SessionOptions, place: Place | undefined): Promise<Session> {
  // So that a chat that continues it can restore files, too.
  if (place === undefined) return host.createSession({ ...options, fileChangeTracking: true });
  const { resume, isFork, message } = place;
  const session = await resumeStored(host, resume, options, isFork);
  try {
    if (message !== undefined) await takeBack(session, message);
  } catch (error) {
    if (isFork) await host.deleteSession(session.id);
    throw error;
  }
  if (isFork) out.note(`A copy is continued, session ${session.id}.`);
  return session;
}

/** Takes back a message of the user with all that followed it. What tools did to files stays. */
async function takeBack(session: Session, number: number): Promise<void> {
  const points = await session.conversation.rewindPoints();
  const point = points[number - 1];
  if (point !== undefined) return void (await session.rewind(point.eventId));
  const count = counted(points.length, "message");
  throw new CliError("MESSAGE_UNKNOWN", `Message ${number} cannot be taken back: you have sent ${count} in this session.`, 1);
}

interface Outcome {
  readonly ok: boolean;
  readonly data: object;
}

async function converse({ io, out }: CommandContext, session: Session, prompt: string, report: TurnReport): Promise<Outcome> {
  const stop = onAbort(io.signal, () => void session.abort());
  try {
    io.signal.throwIfAborted();
    const answer = await session.sendAndWait({ prompt });
    for (const name of report.unallowed) {
      out.note(
        `"${visibleLine(name)}" was denied: it is not allowed. Allow it with --allow ${visibleLine(name)}, or everything with --yes.`,
      );
    }
    return { ok: !report.hitLimit, data: { content: answer.content, model: answer.model, sessionId: session.id } };
  } catch (error) {
    if (io.signal.aborted) throw new CliError("STOPPED", toError(io.signal.reason).message, 1);
    throw error;
  } finally {
    stop[Symbol.dispose]();
  }
}

async function exportTo(session: Session, { file, format }: { readonly file: string; readonly format: ExportFormat }): Promise<void> {
  const { exportEvents } = await import("../../host/file-session-store.ts");
  await writeExport(file, exportEvents(session.id, await session.getMessages(), format));
}
