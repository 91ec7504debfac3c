import { resolve } from "node:path";
import { toError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import type { ExportFormat } from "../../host/file-session-store.ts";
import type { Session } from "../../session/session.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { formatOf, writeExport } from "../export-session.ts";
import { withHost } from "../open-host.ts";
import { chooseAgent } from "../project-agents.ts";
import { type PromptCommandOptions, toSessionOptions } from "../prompt-session.ts";
import { followTodos, todoLines } from "../show-todos.ts";
import { visibleLine } from "../terminal-style.ts";
import { createTurnReport, type TurnReport } from "../turn-report.ts";

export interface RunCommandOptions extends PromptCommandOptions {
  readonly export?: string;
}

/** Lets a model work on one prompt with the tools of the skills. Calls that no rule allows are asked for on a terminal, and denied elsewhere. */
export async function run(context: CommandContext, given: string, options: RunCommandOptions): Promise<number> {
  const { io, out } = context;
  const exported = options.export === undefined ? undefined : { file: resolve(io.cwd, options.export), format: formatOf(options.export) };
  const chosen = options.agent === undefined ? undefined : chooseAgent(context, options.agent);
  const sessionOptions = toSessionOptions(options, context, chosen);
  const prompt = given === "-" ? await io.stdin.read(io.signal) : given;
  if (prompt.trim() === "") throw usageError("The prompt is empty. Describe the task.");
  for (const diagnostic of chosen?.diagnostics ?? []) if (diagnostic.severity !== "info" && !out.isJson) out.complainOf(diagnostic);
  const outcome = await withHost(context, { workspace: true }, async (host) => {
    const session = await host.createSession(sessionOptions);
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
