import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError, toError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import type { AppendLog } from "../io/log/append-log.ts";
import type { LogRecord } from "../io/log/read-log.ts";
import type { SqlDatabase } from "../session/database/sql-database.ts";
import type { SessionEnvironment } from "../session/environment.ts";
import type { RecordedEvent } from "../session/history/events.ts";
import { type ForkOrigin, forkHistory } from "../session/history/fork-history.ts";
import {
  createSessionLog,
  openSessionLog,
  readRecorded,
  refuseNewer,
  type SessionLog,
  toRecordedOptions,
  toRememberedOptions,
  withoutCreation,
  withRemembered,
} from "../session/history/session-log.ts";
import type { ServerInfo } from "../session/mcp/server-connections.ts";
import { createSession, type Session } from "../session/session.ts";
import { isSessionId, type ResolvedSessionConfig, resolveSessionConfig, type SessionOptions } from "../session/session-config.ts";
import type { SessionStore, StoredSession } from "../session/session-store.ts";
import type { WorkspaceFiles } from "../session/workspace/workspace-files.ts";
import { type EnvironmentParts, HostSessionEnvironment } from "./session-environment.ts";

/**
 * The options that can change when a session is resumed.
 *
 * @example
 * ```ts
 * const options: ResumeOptions = { takeOver: true };
 * ```
 */
export interface ResumeOptions extends Omit<SessionOptions, "sessionId" | "persist"> {
  /**
   * Whether a session that another process has open and idle is taken over: it ends there. While a turn, a call or a question of it is
   * in progress, it is refused with `SESSION_IN_USE`. Default: false, a session that is open elsewhere is refused.
   */
  readonly takeOver?: boolean | undefined;
}

/** A session that is open in a host. */
export interface OpenSession {
  readonly session: Session;
  /** What opened it: `library`, `copilot`, `mcp`, `inspector`, or the name that a program gave itself. */
  readonly client: string;
}

export interface SessionOpening {
  /** What opens the session, for those who watch the host. Default: `library`. */
  readonly client?: string | undefined;
  /**
   * Whether the session is returned only after its sources are loaded. Otherwise they are loaded, and its servers are started,
   * in the background: at the latest for its first turn or `session.ready()`. Default: true.
   */
  readonly awaitsSources?: boolean | undefined;
  /** Whether an open session emits `session.resume` when it is resumed. Default: true. */
  readonly tellsResume?: boolean | undefined;
  /** Whether the caller also answers pending requests of the session. Default: false. */
  readonly continuesWork?: boolean | undefined;
  /** Stores the session outside the host's folder for sessions. The caller lists and deletes such sessions itself. */
  readonly storage?: SessionStorage | undefined;
  /** How long the owner of a session that is taken over has for its answer, in milliseconds. Default: 10,000. */
  readonly takeoverTimeout?: number | undefined;
}

/** The storage of one session. The session closes the log when it ends. */
export interface SessionStorage {
  readonly log: AppendLog;
  readonly files: WorkspaceFiles;
  /** Absent: the session cannot have one. */
  readonly database?: SqlDatabase | undefined;
}

/**
 * Options of `host.forkSession`.
 *
 * @example
 * ```ts
 * const options: ForkSessionOptions = { sessionId: "second-try" };
 * ```
 */
export interface ForkSessionOptions {
  /** The first event that the fork does not have. Default: it has all of them. */
  readonly toEventId?: string | undefined;
  /** The id of the fork. Default: a new one. */
  readonly sessionId?: string | undefined;
}

interface Recorded {
  readonly events: readonly RecordedEvent[];
  readonly options: Readonly<Record<string, unknown>>;
  readonly remembered: SessionOptions;
}

const takeoverMs = 10_000;
const maxRemembered = 1_000;

interface HostSessionsOptions {
  readonly report: (diagnostic: Diagnostic) => void;
  /** As `report`, for a log that cannot be written, and that can be again. */
  readonly reportLog: (diagnostic: Diagnostic) => void;
  onOpened(opened: OpenSession): void;
  onClosed(sessionId: string): void;
}

/** The open and the stored sessions of one host. */
export class HostSessions {
  readonly #parts: EnvironmentParts;
  readonly #files: SessionStore;
  #attached: SessionStore | undefined;
  readonly #report: (diagnostic: Diagnostic) => void;
  readonly #options: HostSessionsOptions;
  readonly #open = new Map<string, Session>();
  readonly #clients = new WeakMap<Session, string>();
  /** Those with a log, which can be resumed. */
  readonly #stored = new WeakSet<Session>();
  readonly #opening = new Map<string, Promise<Session>>();
  /** The options of ended sessions that must not be written to the log. */
  readonly #remembered = new Map<string, SessionOptions>();

  constructor(parts: EnvironmentParts, store: SessionStore, options: HostSessionsOptions) {
    this.#parts = parts;
    this.#files = store;
    this.#options = options;
    this.#report = options.report;
  }

  /** That of a plugin or of the host's options, else files. Known when the plugins are active. */
  get #store(): SessionStore {
    const store = this.#attached ?? this.#parts.options.sessionStore ?? this.#parts.plugins.sessionStore ?? this.#files;
    if (this.#attached === undefined) {
      this.#attached = store;
      store.attach({
        handOver: (sessionId, claimant) => this.#handOver(sessionId, claimant),
        lost: (sessionId, error) => this.#lost(sessionId, error),
        report: this.#options.reportLog,
      });
    }
    return store;
  }

  async create(options: SessionOptions, opening: SessionOpening = {}): Promise<Session> {
    // First, since the session's own tools must not have the names of built-in ones.
    await this.#parts.plugins.startLate();
    const environment = this.#environment(opening);
    // First, so that invalid options leave nothing behind.
    const { sessionId } = resolveSessionConfig(options, environment.defaults);
    if (this.#open.has(sessionId) || this.#opening.has(sessionId)) throw isOpen(sessionId);
    return this.#opened(sessionId, async () => {
      const { log: own } = this.#parts.options;
      const log = opening.storage ? createSessionLog(own, opening.storage.log) : await this.#newLog(sessionId, options.persist);
      try {
        return await this.#start({ ...options, sessionId }, environment, log, opening);
      } catch (error) {
        if (log !== undefined) await this.#discard(sessionId, log);
        throw error;
      }
    });
  }

  async resume(sessionId: string, changes: ResumeOptions, given: SessionOpening = {}): Promise<Session> {
    const { takeOver, ...mentioned } = readChanges(changes);
    if (takeOver !== undefined && typeof takeOver !== "boolean") throw new HostError("SESSION_OPTIONS", "takeOver must be true or false.");
    const opening = { ...given, takeoverTimeout: takeOver === true ? (given.takeoverTimeout ?? takeoverMs) : undefined };
    await this.#parts.plugins.startLate();
    // Nothing is awaited between this check and the entry in the table, so that concurrent calls open the session once.
    for (let change = this.#change(sessionId); change !== undefined; change = this.#change(sessionId)) await change;
    const open = this.#open.get(sessionId);
    if (open === undefined) return this.#opened(sessionId, () => this.#reopen(sessionId, mentioned, opening));
    await open.join(withoutSame(mentioned, open.config), opening);
    return open;
  }

  get open(): readonly OpenSession[] {
    return Array.from(this.#open.values(), (session) => this.#describe(session));
  }

  async list(): Promise<readonly SessionInfo[]> {
    const stored = (await this.#store.list()).map((session) => describeSession(session, this.#open.has(session.sessionId)));
    const known = new Set(stored.map(({ sessionId }) => sessionId));
    const notStored = [...this.#open.values()].filter(({ id }) => !known.has(id));
    return [
      ...notStored.map(({ id, config }) => ({ sessionId: id, workingDirectory: config.workingDirectory, isOpen: true, isInUse: true })),
      ...stored,
    ];
  }

  async delete(sessionId: string): Promise<void> {
    const open = await this.#settled(sessionId);
    await open?.disconnect();
    this.#remembered.delete(sessionId);
    try {
      await this.#store.delete(sessionId);
    } catch (error) {
      // A session that was never stored ends with its disconnection.
      if (open === undefined || !(error instanceof HostError && error.code === "SESSION_NOT_FOUND")) throw error;
    }
  }

  async fork(sessionId: string, { toEventId, sessionId: given }: ForkSessionOptions): Promise<string> {
    const forkId = given ?? randomUUID();
    if (!isSessionId(forkId)) throw new HostError("SESSION_OPTIONS", `${JSON.stringify(forkId)} cannot be the id of a session.`);
    if (toEventId !== undefined && typeof toEventId !== "string")
      throw new HostError("SESSION_OPTIONS", "toEventId must be the id of an event.");
    if (this.#open.has(forkId) || this.#opening.has(forkId)) throw isOpen(forkId);
    const { events, options, remembered } = await this.#recorded(sessionId);
    await this.#store.add(forkId, forkHistory(events, { sessionId: forkId, from: sessionId, options, toEventId }), sessionId);
    this.#keep(forkId, remembered);
    return forkId;
  }

  /** What a session has recorded so far, while it may continue. */
  async #recorded(sessionId: string): Promise<Recorded> {
    const open = await this.#settled(sessionId);
    if (open !== undefined) {
      const { config } = open;
      await open.flush().catch(() => {
        // The events are read from memory, too.
      });
      return { events: await open.getMessages(), options: toRecordedOptions(config), remembered: toRememberedOptions(config) };
    }
    const { records, diagnostics } = await this.#store.read(sessionId);
    for (const diagnostic of diagnostics) this.#report(diagnostic);
    const { events, options } = readRecorded(records);
    refuseNewer(sessionId, events);
    if (options === undefined) throw withoutCreation(sessionId);
    return { events, options: { ...options }, remembered: this.#remembered.get(sessionId) ?? {} };
  }

  async read(sessionId: string): Promise<readonly RecordedEvent[]> {
    const open = await this.#settled(sessionId);
    if (open !== undefined) return open.getMessages();
    const { records, diagnostics } = await this.#store.read(sessionId);
    for (const diagnostic of diagnostics) this.#report(diagnostic);
    return readRecorded(records).events;
  }

  /** The MCP servers that sessions configured themselves. */
  ownServers(): readonly ServerInfo[] {
    const own = [...this.#open.values()].flatMap(({ mcp }) =>
      mcp.list().filter(({ origin: { kind } }) => kind === "session" || kind === "agent"),
    );
    const distinct = new Map(own.map((info) => [JSON.stringify([info.name, info.origin, info.transport, info.status, info.pid]), info]));
    return [...distinct.values()];
  }

  /** Makes every open session use the current plugins of the host. */
  async refresh(): Promise<void> {
    const { log } = this.#parts.options;
    const refreshed = [...this.#open.values()].map(async (session) => {
      try {
        if (session.isOpen) await session.update({});
      } catch (error) {
        // The session stays unchanged: it was just closed, or its options require a plugin that is gone.
        log.warning("A session could not apply changed plugins.", { sessionId: session.id, error: toError(error) });
      }
    });
    await Promise.all(refreshed);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#opening.values());
    await Promise.all([...this.#open.values()].map((session) => session.disconnect()));
  }

  #environment({ awaitsSources = true, storage }: SessionOpening): SessionEnvironment {
    const onRelease = (sessionId: string): void => {
      const session = this.#open.get(sessionId);
      this.#open.delete(sessionId);
      if (session === undefined) return;
      if (this.#stored.has(session)) this.#remember(session);
      this.#options.onClosed(sessionId);
    };
    return new HostSessionEnvironment(this.#parts, { onRelease, loadsLate: !awaitsSources, storage });
  }

  #describe(session: Session): OpenSession {
    return { session, client: this.#clients.get(session) ?? "library" };
  }

  #remember({ id, config }: Session): void {
    this.#keep(id, toRememberedOptions(config));
  }

  #keep(sessionId: string, options: SessionOptions): void {
    this.#remembered.delete(sessionId);
    this.#remembered.set(sessionId, options);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > maxRemembered && oldest !== undefined) this.#remembered.delete(oldest);
  }

  /** Ends an idle session that another process takes over. Returns why it is kept otherwise. */
  #handOver(sessionId: string, claimant: string): string | undefined {
    const session = this.#open.get(sessionId);
    if (session === undefined || this.#opening.has(sessionId)) return "It is being opened there.";
    return session.handOver(claimant);
  }

  /** Ends a session that another owner has: what it does from here on could not be kept. */
  #lost(sessionId: string, error: HostError): void {
    const session = this.#open.get(sessionId);
    this.#report({ severity: "error", code: error.code, message: error.message });
    if (session === undefined) return;
    session.events.append("session.error", { errorType: "session", errorCode: error.code, message: error.message });
    void session.disconnect();
  }

  /** Settles when a session has been opened or closed. Undefined: neither is in progress. */
  #change(sessionId: string): Promise<unknown> | undefined {
    const opening = this.#opening.get(sessionId);
    if (opening !== undefined) return Promise.allSettled([opening]);
    const open = this.#open.get(sessionId);
    return open === undefined || open.isOpen ? undefined : open.disconnect();
  }

  async #settled(sessionId: string): Promise<Session | undefined> {
    for (let change = this.#change(sessionId); change !== undefined; change = this.#change(sessionId)) await change;
    return this.#open.get(sessionId);
  }

  #opened(sessionId: string, open: () => Promise<Session>): Promise<Session> {
    const opening = open().finally(() => this.#opening.delete(sessionId));
    this.#opening.set(sessionId, opening);
    return opening;
  }

  async #reopen(sessionId: string, changes: ResumeOptions, opening: SessionOpening): Promise<Session> {
    const store = opening.storage?.log ?? (await this.#store.open(sessionId, opening.takeoverTimeout));
    try {
      const log = await openSessionLog(sessionId, this.#parts.options.log, store, opening.continuesWork);
      const environment = this.#environment(opening);
      const recorded = withRemembered(log.resumed?.options ?? {}, this.#remembered.get(sessionId) ?? {});
      const options = { ...recorded, ...changes, sessionId };
      assertUsable(options, changes, environment);
      return await this.#start(options, environment, log, opening);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  async #start(
    options: SessionOptions,
    environment: SessionEnvironment,
    log: SessionLog | undefined,
    { awaitsSources = true, client }: SessionOpening,
  ): Promise<Session> {
    const session = createSession(options, environment, log);
    if (log !== undefined) this.#stored.add(session);
    this.#open.set(session.id, session);
    if (client !== undefined) this.#clients.set(session, client);
    this.#options.onOpened(this.#describe(session));
    try {
      if (awaitsSources) await session.loadSources();
      await session.flush().catch((error: unknown) => {
        if (error instanceof HostError && error.code === "SESSION_MOVED") throw error;
        // Reported by a diagnostic. The session works, and its log waits in memory.
      });
      return session;
    } catch (error) {
      await session.disconnect();
      throw error;
    }
  }

  async #newLog(sessionId: string, persist: boolean | undefined): Promise<SessionLog | undefined> {
    const { log, sessionsDirectory, storesSessions } = this.#parts.options;
    if (!(persist ?? (storesSessions || this.#store !== this.#files))) return undefined;
    try {
      return createSessionLog(log, await this.#store.create(sessionId));
    } catch (error) {
      if (persist === true || !(error instanceof HostError && error.code === "SESSION_STORE")) throw error;
      const message = `Sessions are not stored: ${errorMessage(error)}`;
      this.#report({ severity: "warning", code: "SESSION_NOT_PERSISTED", message, file: sessionsDirectory });
      return undefined;
    }
  }

  /** Deletes the log of a session that could not be created. */
  async #discard(sessionId: string, log: SessionLog): Promise<void> {
    try {
      await log.close();
      await this.#store.delete(sessionId);
    } catch {
      // The reason for the failure of the session matters more.
    }
  }
}

/** Drops options that are undefined, so that a filter is not removed by accident. */
function readChanges(changes: ResumeOptions): ResumeOptions {
  if (!isRecord(changes)) throw new HostError("SESSION_OPTIONS", "The changes for resumeSession must be an object of session options.");
  const mentioned = Object.entries(changes).filter(([, value]) => value !== undefined);
  const fixed = mentioned.find(([name]) => name === "sessionId" || name === "persist");
  if (fixed !== undefined) throw new HostError("SESSION_OPTIONS", `${fixed[0]} cannot be changed when a session is resumed.`);
  return Object.fromEntries(mentioned);
}

/** Drops fixed options with the same values as those of the open session. */
function withoutSame(
  { workingDirectory, waitForAttachments, fileChangeTracking, ...rest }: ResumeOptions,
  config: ResolvedSessionConfig,
): ResumeOptions {
  const isElsewhere = workingDirectory !== undefined && resolve(workingDirectory) !== config.workingDirectory;
  return {
    ...rest,
    ...(isElsewhere && { workingDirectory }),
    ...(fileChangeTracking !== undefined && fileChangeTracking !== (config.options.fileChangeTracking ?? false) && { fileChangeTracking }),
    ...(waitForAttachments !== undefined && waitForAttachments !== config.waitForAttachments && { waitForAttachments }),
  };
}

/** Checks recorded options, which may be damaged or outdated. The error names the log and how to continue. */
function assertUsable(options: SessionOptions, changes: ResumeOptions, { defaults }: SessionEnvironment): void {
  resolveSessionConfig(changes, defaults);
  try {
    resolveSessionConfig(options, defaults);
  } catch (cause) {
    const message = `The options in the log of session "${options.sessionId}" are not valid (${errorMessage(cause)}).`;
    throw new HostError("SESSION_LOG_DAMAGED", `${message} Pass that option to resumeSession.`, { cause });
  }
}

function isOpen(sessionId: string): HostError {
  const advice = `Use host.resumeSession("${sessionId}") to get it.`;
  return new HostError("SESSION_EXISTS", `Session "${sessionId}" is already open. ${advice}`);
}

/** A session in the list of a host. */
export interface SessionInfo {
  readonly sessionId: string;
  /** ISO 8601. Absent for a session that is not stored. */
  readonly startTime?: string;
  readonly modifiedTime?: string;
  /** The beginning of its first prompt. */
  readonly summary?: string;
  readonly workingDirectory?: string;
  /** The session whose history it began with, if it is a fork. */
  readonly forkedFrom?: string;
  /** Whether it is open in this host. */
  readonly isOpen: boolean;
  /** Whether any process has it open. Only the host that has it open can resume it then. */
  readonly isInUse: boolean;
}

const summaryLength = 100;

function describeSession({ sessionId, records, modifiedTime, isInUse }: StoredSession, isOpen: boolean): SessionInfo {
  const start = dataOf(records.find(({ type }) => type === "session.start"));
  const options = dataOf({ data: start["options"] });
  const parent = dataOf({ data: start["forkedFrom"] })["sessionId" satisfies keyof ForkOrigin];
  const prompt = dataOf(records.find((record) => record["type"] === "user.message" && dataOf(record)["source"] === undefined))["content"];
  return {
    sessionId,
    ...(typeof start["startTime"] === "string" && { startTime: start["startTime"] }),
    modifiedTime: modifiedTime.toISOString(),
    ...(typeof prompt === "string" && { summary: shorten(prompt) }),
    ...(typeof parent === "string" && { forkedFrom: parent }),
    ...(typeof options["workingDirectory"] === "string" && { workingDirectory: options["workingDirectory"] }),
    isOpen,
    isInUse,
  };
}

function dataOf(record: LogRecord | undefined): LogRecord {
  const data = record?.["data"];
  return typeof data === "object" && data !== null && !Array.isArray(data) ? (data as LogRecord) : {};
}

function shorten(prompt: string): string {
  const text = prompt.trim().replaceAll(/\s+/g, " ");
  return text.length <= summaryLength ? text : `${text.slice(0, summaryLength - 1).trimEnd()}…`;
}
