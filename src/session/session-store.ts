import type { Diagnostic } from "../base/diagnostic.ts";
import type { HostError } from "../base/errors.ts";
import type { AppendLog } from "../io/log/append-log.ts";
import type { LogContents, LogRecord } from "../io/log/read-log.ts";

/**
 * Where a host keeps the logs of its sessions: in files (`sessionsDirectory`), or in what a program or a plugin brings. Several hosts may
 * share what is behind it. At any time one of them owns a session: only the log that `create` or `open` returned last can still add records.
 */
export interface SessionStore {
  /** Called once by the host that uses the store, before anything else. */
  attach(owner: SessionOwner): void;
  /** Begins a session, and owns it until its log is closed. @throws HostError `SESSION_EXISTS`, `SESSION_IN_USE`, `SESSION_STORE`. */
  create(sessionId: string): Promise<AppendLog>;
  /**
   * Owns a stored session. From then on records of its former owner are refused. With `takeOver`, an owner that lives and is idle is asked to
   * hand it over, and has so many milliseconds to answer, if the store has a way to ask.
   * @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE`, `SESSION_STORE`.
   */
  open(sessionId: string, takeOver?: number): Promise<AppendLog>;
  /** Reads a log, even while it is in use. @throws HostError `SESSION_NOT_FOUND`, `SESSION_STORE`. */
  read(sessionId: string): Promise<LogContents>;
  /**
   * Stores a new session with these events, complete or not at all. A store that has files of sessions copies those of `filesOf`.
   * @throws HostError `SESSION_EXISTS`, `SESSION_STORE`.
   */
  add(sessionId: string, events: readonly object[], filesOf: string): Promise<void>;
  /** The stored sessions, the most recently changed first. */
  list(): Promise<readonly StoredSession[]>;
  /** Removes a session. @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE`, `SESSION_STORE`. */
  delete(sessionId: string): Promise<void>;
}

/** The host that uses a store. */
export interface SessionOwner {
  /** Another process wants an open session. Undefined: it is being handed over and its log closed; otherwise the reason why not. */
  handOver(sessionId: string, claimant: string): string | undefined;
  /** Another owner has an open session, or it was deleted: its log refuses everything from here on, and the host ends the session. */
  lost(sessionId: string, error: HostError): void;
  /** A log cannot be written now (`LOG_NOT_WRITTEN`), or can be again (`LOG_WRITTEN_AGAIN`, of severity `info`, with the same `file`). */
  report(diagnostic: Diagnostic): void;
}

/** A stored session, with the records at the beginning of its log. */
export interface StoredSession {
  readonly sessionId: string;
  readonly records: readonly LogRecord[];
  readonly modifiedTime: Date;
  /** Whether any process has it open, including this one. */
  readonly isInUse: boolean;
}
