import { resolve } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { shorten } from "../../base/text.ts";
import type { ExportFormat } from "../../host/file-session-store.ts";
import type { Host } from "../../host/host.ts";
import type { SessionInfo } from "../../host/host-sessions.ts";
import type { CommandContext } from "../command-context.ts";
import { confirm } from "../confirm.ts";
import { formatOf, writeExport } from "../export-session.ts";
import { withHost } from "../open-host.ts";
import { findStoredSession } from "../stored-sessions.ts";
import { visibleLine } from "../terminal-style.ts";

// Stored sessions need no skills, so none is loaded.
const withStore = <T>(context: CommandContext, use: (host: Host) => Promise<T>): Promise<T> =>
  withHost({ ...context, config: withoutCode(context), options: { ...context.options, skills: [] } }, { listsDiagnostics: true }, use);

function withoutCode({ config }: CommandContext): CommandContext["config"] {
  const { plugins: _plugins, serversIn: _servers, ...rest } = config;
  return { ...rest, skillDirectories: [], packageSkills: false };
}

/** Lists the stored sessions, the newest first. */
export function listSessions(context: CommandContext): Promise<number> {
  return withStore(context, async (host) => {
    const { out } = context;
    const sessions = await host.listSessions();
    const diagnostics = [...host.diagnostics, ...(await findDamaged(host, sessions))];
    if (out.isJson) out.envelope({ ok: true, data: { sessions }, diagnostics });
    else {
      for (const diagnostic of diagnostics) out.complainOf(diagnostic);
      for (const { sessionId, modifiedTime, summary, workingDirectory, isInUse } of sessions) {
        const state = isInUse ? out.style.yellow("  open") : "";
        out.line(`${out.style.bold(sessionId)}  ${dateOf(modifiedTime)}${state}  ${visibleLine(shorten(summary ?? "", 60))}`);
        if (workingDirectory !== undefined) out.line(out.style.dim(`  ${visibleLine(workingDirectory)}`));
      }
      if (sessions.length === 0) out.note('There are no stored sessions. "skillhost chat" begins one.');
    }
    return 0;
  });
}

/** Only sessions whose beginning says nothing are read completely: a first event may also be too long for a list. */
async function findDamaged(host: Host, sessions: readonly SessionInfo[]): Promise<readonly Diagnostic[]> {
  const found: Diagnostic[] = [];
  for (const { sessionId, startTime, isOpen } of sessions) {
    if (startTime !== undefined || isOpen) continue;
    const why = await damageOf(host, sessionId);
    if (why === undefined) continue;
    const advice = `The others are not affected. Delete it with "skillhost sessions delete ${sessionId}".`;
    found.push({
      severity: "warning",
      code: "SESSION_DAMAGED",
      message: `The stored session "${sessionId}" is damaged: ${why} ${advice}`,
      source: sessionId,
    });
  }
  return found;
}

async function damageOf(host: Host, sessionId: string): Promise<string | undefined> {
  try {
    const lines = (await host.exportSession(sessionId, { format: "jsonl" })).split("\n");
    const hasStart = lines.some((line) => line !== "" && JSON.parse(line).type === "session.start");
    return hasStart ? undefined : "its log has no readable beginning.";
  } catch (error) {
    return errorMessage(error);
  }
}

function dateOf(time: string | undefined): string {
  return time === undefined ? "" : time.slice(0, 16).replace("T", " ");
}

/** Stores a copy of a session, and prints its id. */
export function forkStored(context: CommandContext, id: string): Promise<number> {
  return withStore(context, async (host) => {
    const { out } = context;
    const { sessionId: forkedFrom } = await findStoredSession(host, id);
    const sessionId = await host.forkSession(forkedFrom);
    if (out.isJson) out.envelope({ ok: true, data: { sessionId, forkedFrom }, diagnostics: host.diagnostics });
    else out.line(sessionId);
    return 0;
  });
}

/** Prints a stored session, or writes it to a file. */
export function exportStored(
  context: CommandContext,
  id: string,
  file: string | undefined,
  options: { readonly format?: ExportFormat },
): Promise<number> {
  const target = file === undefined ? undefined : resolve(context.io.cwd, file);
  const format = options.format ?? (target === undefined ? "markdown" : formatOf(target));
  return withStore(context, async (host) => {
    const { io, out } = context;
    const { sessionId } = await findStoredSession(host, id);
    const text = await host.exportSession(sessionId, { format });
    if (target !== undefined) await writeExport(target, text);
    if (out.isJson)
      out.envelope({ ok: true, data: { sessionId, format, ...(target === undefined ? { text } : { file: target }) }, diagnostics: [] });
    else if (target === undefined) io.stdout.write(text);
    else out.note(`Written to ${out.path(target)}.`);
    return 0;
  });
}

/** Deletes stored sessions, after a question. One that is open or unknown is reported, and none is deleted then. */
export function deleteStored(
  context: CommandContext,
  ids: readonly string[],
  { yes = false }: { readonly yes?: boolean },
): Promise<number> {
  return withStore(context, async (host) => {
    const { out } = context;
    const found = await Promise.all(ids.map((id) => findStoredSession(host, id)));
    for (const { sessionId, summary } of found) out.note(`${sessionId}  ${visibleLine(shorten(summary ?? "", 60))}`);
    const otherwise = "Review them, then run again with --yes.";
    if (!yes && !(await confirm(context, { question: `Delete ${found.length === 1 ? "this session" : "these sessions"}?`, otherwise })))
      return 1;
    for (const { sessionId } of found) await host.deleteSession(sessionId);
    if (out.isJson) out.envelope({ ok: true, data: { deleted: found.map(({ sessionId }) => sessionId) }, diagnostics: [] });
    else for (const { sessionId } of found) out.line(`Deleted ${sessionId}.`);
    return 0;
  });
}
