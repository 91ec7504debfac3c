import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { isRecord, textOf } from "../base/json.ts";
import { readTextFile } from "../io/read-bounded.ts";
import type { Approval, ApprovalScope, ApprovalStore } from "./approvals.ts";
import { skillhostHome } from "./trust-policy.ts";

/** Something that was approved, or whose approval was taken back. */
interface ApprovalEvent {
  readonly action: "approved" | "revoked" | "changed";
  /** What kind of thing: a tool's permission, a folder, a key, a package, a setting. */
  readonly kind: string;
  readonly id: string;
  readonly digest?: string | undefined;
  readonly scope?: ApprovalScope | undefined;
  /** The command or program. */
  readonly by: string;
}

export interface ApprovalRecord extends ApprovalEvent {
  /** ISO 8601. */
  readonly time: string;
  readonly user: string;
}

/** The log in a user's folder for skillhost. */
export function approvalLogIn(home: string = skillhostHome()): string {
  return join(home, "approvals.jsonl");
}

/** The log for a folder of approvals: that of the user, if the folder is the user's own. */
export function approvalLogOf(directory: string): string {
  return directory === join(skillhostHome(), "approvals") ? approvalLogIn() : join(directory, "log.jsonl");
}

/**
 * Adds a line to the log, which is only ever appended to. Programs may share it: each line is one write.
 * @throws HostError `APPROVAL_LOG`: what cannot be logged must not be approved.
 */
export function logApproval(event: ApprovalEvent, file: string = approvalLogIn()): void {
  const { action, kind, id, digest, scope, by } = event;
  const record = {
    time: new Date().toISOString(),
    user: userName(),
    action,
    kind,
    id: id.slice(0, maxText),
    ...(digest !== undefined && { digest }),
    ...(scope !== undefined && { scope: scope.kind === "user" ? { kind: scope.kind } : { ...scope, id: scope.id.slice(0, maxText) } }),
    by: by.slice(0, maxText),
  };
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const opened = openSync(file, "a", 0o600);
    try {
      writeSync(opened, `${JSON.stringify(record)}\n`);
    } finally {
      closeSync(opened);
    }
  } catch (cause) {
    const message = `${file}, the log of approvals, cannot be written, so nothing was approved. Make it writable for you.`;
    throw new HostError("APPROVAL_LOG", message, { cause });
  }
}

const maxText = 4_096;

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run with a user id that has no name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}

/** The running program, for events that no command reports: `skillhost run`, `server.js`. */
export function runningProgram(argv: readonly string[] = process.argv): string {
  const [, script = "", ...words] = argv;
  const name = basename(script);
  const isOurs = /^skillhost(?:\.cmd|\.js)?$/.test(name) || /[\\/]cli[\\/]bin\.[jt]s$/.test(script);
  if (!isOurs) return name || "program";
  // Only words of commands: arguments may be private.
  const used = words.slice(0, words[0] === "trust" || words[0] === "keys" ? 2 : 1).filter((word) => /^[a-z-]{2,20}$/.test(word));
  return ["skillhost", ...used].join(" ");
}

/** A store that logs each approval and revocation before it stores it. A first use is not an approval by a person. */
export function withApprovalLog(store: ApprovalStore, file: string, by: string = runningProgram()): ApprovalStore {
  const log = (action: "approved" | "revoked", { kind, id, digest, scope }: Approval): void =>
    isAutomatic(kind) ? undefined : logApproval({ action, kind, id, digest, scope, by }, file);
  return {
    has: (key, scopes) => store.has(key, scopes),
    async remember(approval) {
      log("approved", approval);
      await store.remember(approval);
    },
    async forget(query) {
      for (const approval of await store.list(query)) log("revoked", approval);
      return store.forget(query);
    },
    list: (query) => store.list(query),
  };
}

function isAutomatic(kind: string): boolean {
  return kind.endsWith("-seen");
}

const maxBytes = 64 * 1024 * 1024;

/** The records of the log, oldest first. A line that is not a record is reported: someone else has changed the file. */
export function readApprovalLog(file: string = approvalLogIn()): {
  readonly records: readonly ApprovalRecord[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) return { records: [], diagnostics: read.diagnostic.code === "FILE_MISSING" ? [] : [{ ...read.diagnostic, file }] };
  const records: ApprovalRecord[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const [index, line] of read.text.split("\n").entries()) {
    const record = line === "" ? undefined : parseRecord(line);
    if (record !== undefined) records.push(record);
    else if (line !== "") {
      const message = "This line is not a record of skillhost: the file was changed by something else, or a write was interrupted.";
      diagnostics.push({ severity: "warning", code: "APPROVAL_LOG_LINE", message, file, range: { start: { line: index + 1, column: 1 } } });
    }
  }
  return { records, diagnostics };
}

function parseRecord(line: string): ApprovalRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // Reported as a line that is not a record.
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { digest, scope } = value;
  const [time, user, action, kind, id, by] = ["time", "user", "action", "kind", "id", "by"].map((key) => textOf(value[key]));
  if (!time || Number.isNaN(Date.parse(time)) || !kind || !id || (action !== "approved" && action !== "revoked" && action !== "changed"))
    return undefined;
  return {
    time,
    user: user ?? "",
    action,
    kind,
    id,
    by: by ?? "",
    ...(typeof digest === "string" && { digest }),
    ...(isRecord(scope) && { scope: scope as unknown as ApprovalScope }),
  };
}
