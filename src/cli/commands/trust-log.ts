import { approvalLogIn, readApprovalLog } from "../../trust/approval-log.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../terminal-style.ts";

export interface TrustLogOptions {
  readonly last?: number;
}

/** Prints what this user approved, oldest first. The exit code is 1 if the log was changed by something else. */
export async function trustLog({ out }: CommandContext, { last }: TrustLogOptions): Promise<number> {
  const file = approvalLogIn();
  const { records: all, diagnostics } = readApprovalLog(file);
  const records = last === undefined ? all : all.slice(-last);
  const ok = diagnostics.length === 0;
  out.envelope({ ok, data: { file, records }, diagnostics });
  if (out.isJson) return ok ? 0 : 1;
  for (const { time, user, action, kind, id, digest, scope, by } of records) {
    const where = scope === undefined || scope.kind === "user" ? "" : ` for ${scope.kind} ${scope.id}`;
    const content = digest === undefined ? "" : ` (${digest})`;
    out.line(visibleLine(`${time} ${user} ${action} ${kind} ${id}${content}${where}, by ${by}`));
  }
  if (records.length === 0) out.note(`Nothing has been approved yet (${out.path(file)}).`);
  for (const diagnostic of diagnostics) out.complainOf(diagnostic);
  return ok ? 0 : 1;
}
