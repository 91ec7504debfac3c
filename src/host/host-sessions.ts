import { resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError, toError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import type { AppendLog, LogRecord } from "../io/log/append-only-log.ts";
import type { SessionEnvironment } from "../session/environment.ts";
import type { SessionEvent } from "../session/history/events.ts";
import {
  createSessionLog,
  openSessionLog,
  type SessionLog,
  toRememberedOptions,
  toSessionEvent,
  withoutTruncated,
  withRemembered,
} from "../session/history/session-log.ts";
import type { ServerInfo } from "../session/mcp/server-connections.ts";
import type { PlanStorage } from "../session/plan-file.ts";
import { createSession, type Session } from "../session/session.ts";
import { type ResolvedSessionConfig, resolveSessionConfig, type SessionOptions } from "../session/session-config.ts";
import { createSessionEnvironment, type EnvironmentParts } from "./session-environment.ts";
import type { SessionStore, StoredSession } from "./session-store.ts";

/** What may be changed when a session is resumed: all but who it is and where it is kept. */
export type ResumeOptions = Omit<SessionOptions, "sessionId" | "persist">;

export interface SessionOpening {
  /**
   * False: the session is given at once. What it needs is loaded meanwhile, and its servers start, at the latest with its
   * first turn or `session.ready()`. Default: true.
   */
  readonly awaitsSources?: boolean | undefined;
  /** False: a session that is open already does not tell that somebody goes on with it. Default: true. */
  readonly tellsResume?: boolean | undefined;
  /** Told with the resume: whoever resumes the session answers what was left open, too. Default: false. */
  readonly continuesWork?: boolean | undefined;
  /** Keeps the session elsewhere than in the host's folder for sessions; whoever gives it lists and deletes what is kept there. */
  readonly storage?: SessionStorage | undefined;
}

/** Where one session is kept. The session closes the log when it ends. */
export interface SessionStorage {
  readonly log: AppendLog;
  readonly plan: PlanStorage;
}

const maxRemembered = 1_000;

/** The sessions of one host: those that are open, and those that are kept. */
export class HostSessions {
  readonly #parts: EnvironmentParts;
  readonly #store: SessionStore;
  readonly #report: (diagnostic: Diagnostic) => void;
  readonly #open = new Map<string, Session>();
  readonly #opening = new Map<string, Promise<Session>>();
  /** What sessions that ended had of options that must not be written down. */
  readonly #remembered = new Map<string, SessionOptions>();

  constructor(parts: EnvironmentParts, store: SessionStore, report: (diagnostic: Diagnostic) => void) {
    this.#parts = parts;
    this.#store = store;
    this.#report = report;
  }

  async create(options: SessionOptions, opening: SessionOpening = {}): Promise<Session> {
    // Before the session's own tools are looked at: they must not have the names of built-in ones.
    await this.#parts.plugins.startLate();
    const environment = this.#environment(opening);
    // Before anything is made: what is wrong with the options leaves nothing behind.
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

  async resume(sessionId: string, changes: ResumeOptions, opening: SessionOpening = {}): Promise<Session> {
    const mentioned = readChanges(changes);
    await this.#parts.plugins.startLate();
    // Nothing is awaited between the last look and the entry in the table: of several who ask at once, one opens it.
    for (let change = this.#change(sessionId); change !== undefined; change = this.#change(sessionId)) await change;
    const open = this.#open.get(sessionId);
    if (open === undefined) return this.#opened(sessionId, () => this.#reopen(sessionId, mentioned, opening));
    await open.join(withoutSame(mentioned, open.config), opening);
    return open;
  }

  async list(): Promise<readonly SessionInfo[]> {
    const stored = (await this.#store.list()).map((session) => describeSession(session, this.#open.has(session.sessionId)));
    const known = new Set(stored.map(({ sessionId }) => sessionId));
    const unkept = [...this.#open.values()].filter(({ id }) => !known.has(id));
    return [
      ...unkept.map(({ id, config }) => ({ sessionId: id, workingDirectory: config.workingDirectory, isOpen: true, isInUse: true })),
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
      // One that was never kept is gone with its disconnection.
      if (open === undefined || !(error instanceof HostError && error.code === "SESSION_NOT_FOUND")) throw error;
    }
  }

  async read(sessionId: string): Promise<readonly SessionEvent[]> {
    const open = await this.#settled(sessionId);
    if (open !== undefined) return open.getMessages();
    const { records, diagnostics } = await this.#store.read(sessionId);
    for (const diagnostic of diagnostics) this.#report(diagnostic);
    return withoutTruncated(records.flatMap((record) => toSessionEvent(record) ?? []));
  }

  /** The MCP servers that sessions brought themselves. */
  ownServers(): readonly ServerInfo[] {
    const own = [...this.#open.values()].flatMap(({ mcp }) =>
      mcp.list().filter(({ origin: { kind } }) => kind === "session" || kind === "agent"),
    );
    const distinct = new Map(own.map((info) => [JSON.stringify([info.name, info.origin, info.transport, info.status, info.pid]), info]));
    return [...distinct.values()];
  }

  /** Has every open session take up what the host has for all of them now. */
  async refresh(): Promise<void> {
    const { log } = this.#parts.options;
    const refreshed = [...this.#open.values()].map(async (session) => {
      try {
        if (session.isOpen) await session.update({});
      } catch (error) {
        // It goes on as it was: closed meanwhile, or with options that need what is gone.
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
      if (session !== undefined) this.#remember(session);
    };
    return createSessionEnvironment(this.#parts, onRelease, { loadsLate: !awaitsSources, plan: storage?.plan });
  }

  #remember({ id, config }: Session): void {
    this.#remembered.delete(id);
    this.#remembered.set(id, toRememberedOptions(config));
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > maxRemembered && oldest !== undefined) this.#remembered.delete(oldest);
  }

  /** Settles when a session that is being opened or closed is; undefined for one that is neither. */
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
    const store = opening.storage?.log ?? (await this.#store.open(sessionId));
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
    { awaitsSources = true }: SessionOpening,
  ): Promise<Session> {
    const session = createSession(options, environment, log);
    this.#open.set(session.id, session);
    try {
      if (awaitsSources) await session.loadSources();
      await flushed(session);
      return session;
    } catch (error) {
      await session.disconnect();
      throw error;
    }
  }

  async #newLog(sessionId: string, persist: boolean | undefined): Promise<SessionLog | undefined> {
    const { log, sessionsDirectory, storesSessions } = this.#parts.options;
    if (!(persist ?? storesSessions)) return undefined;
    try {
      return createSessionLog(log, await this.#store.create(sessionId));
    } catch (error) {
      if (persist === true || !(error instanceof HostError && error.code === "SESSION_STORE")) throw error;
      const message = `Sessions are not stored: ${errorMessage(error)}`;
      this.#report({ severity: "warning", code: "SESSION_NOT_PERSISTED", message, file: sessionsDirectory });
      return undefined;
    }
  }

  /** What was made for a session that did not come about. */
  async #discard(sessionId: string, log: SessionLog): Promise<void> {
    try {
      await log.close();
      await this.#store.delete(sessionId);
    } catch {
      // Nothing was written yet, or it cannot be deleted: why the session failed matters more.
    }
  }
}

/** What is given as undefined is not mentioned: a filter does not get lost by accident. */
function readChanges(changes: ResumeOptions): ResumeOptions {
  if (!isRecord(changes)) throw new HostError("SESSION_OPTIONS", "The changes for resumeSession must be an object of session options.");
  const mentioned = Object.entries(changes).filter(([, value]) => value !== undefined);
  const fixed = mentioned.find(([name]) => name === "sessionId" || name === "persist");
  if (fixed !== undefined) throw new HostError("SESSION_OPTIONS", `${fixed[0]} cannot be changed when a session is resumed.`);
  return Object.fromEntries(mentioned);
}

/** An open session cannot change these, but whoever joins it may well name what it has. */
function withoutSame({ workingDirectory, waitForAttachments, ...rest }: ResumeOptions, config: ResolvedSessionConfig): ResumeOptions {
  const isElsewhere = workingDirectory !== undefined && resolve(workingDirectory) !== config.workingDirectory;
  return {
    ...rest,
    ...(isElsewhere && { workingDirectory }),
    ...(waitForAttachments !== undefined && waitForAttachments !== config.waitForAttachments && { waitForAttachments }),
  };
}

/** The options of a log may be damaged or of another time: then it is the log that is named, and the way out. */
function assertUsable(options: SessionOptions, changes: ResumeOptions, { defaults }: SessionEnvironment): void {
  resolveSessionConfig(changes, defaults);
  try {
    resolveSessionConfig(options, defaults);
  } catch (cause) {
    const message = `The options in the log of session "${options.sessionId}" are not valid (${errorMessage(cause)}).`;
    throw new HostError("SESSION_LOG_DAMAGED", `${message} Pass that option to resumeSession.`, { cause });
  }
}

async function flushed(session: Session): Promise<void> {
  try {
    await session.flush();
  } catch {
    // A diagnostic has told of it. The session works; its log waits in memory for the disk.
  }
}

function isOpen(sessionId: string): HostError {
  const advice = `Use host.resumeSession("${sessionId}") to get it.`;
  return new HostError("SESSION_EXISTS", `Session "${sessionId}" is already open. ${advice}`);
}

/** A session as a host lists it. */
export interface SessionInfo {
  readonly sessionId: string;
  /** ISO 8601; absent for what is not kept. */
  readonly startTime?: string;
  readonly modifiedTime?: string;
  /** How its first prompt begins. */
  readonly summary?: string;
  readonly workingDirectory?: string;
  /** In this host. */
  readonly isOpen: boolean;
  /** By this process or another: then only the host that has it open can resume it. */
  readonly isInUse: boolean;
}

const summaryLength = 100;

function describeSession({ sessionId, records, modifiedTime, isInUse }: StoredSession, isOpen: boolean): SessionInfo {
  const start = dataOf(records.find(({ type }) => type === "session.start"));
  const options = dataOf({ data: start["options"] });
  const prompt = dataOf(records.find((record) => record["type"] === "user.message" && dataOf(record)["source"] === undefined))["content"];
  return {
    sessionId,
    ...(typeof start["startTime"] === "string" && { startTime: start["startTime"] }),
    modifiedTime: modifiedTime.toISOString(),
    ...(typeof prompt === "string" && { summary: shorten(prompt) }),
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
