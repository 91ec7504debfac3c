import { randomUUID } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { copyFile, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { textOf } from "../base/json.ts";
import { type FileLock, type LockHolder, lockHolder, takeFileLock } from "../io/file-lock.ts";
import { type AppendLog, openFileLog } from "../io/log/append-log.ts";
import { type LogContents, type LogRecord, readLogLines, toRecord } from "../io/log/read-log.ts";
import { outputsFolder } from "../session/calls/finalize-call.ts";
import type { RecordedEvent } from "../session/history/events.ts";
import { isSessionId } from "../session/session-config.ts";
import type { SessionOwner, SessionStore, StoredSession } from "../session/session-store.ts";
import { type Takeover, TakeoverListener, takeOver } from "./session-takeover.ts";

const logName = "events.jsonl";

// Enough for the options and the first prompt.
const headBytes = 64 * 1024;

interface SessionStoreOptions {
  readonly sessionsDirectory: string;
  /** False: nothing is stored. */
  readonly storesSessions: boolean;
}

/** The logs of sessions, each in a folder of its own. Several hosts and processes may share the directory. */
export class FileSessionStore implements SessionStore {
  readonly #directory: string;
  readonly #isUsed: boolean;
  readonly #onDiagnostic: (diagnostic: Diagnostic) => void;
  readonly #takeovers = new TakeoverListener((sessionId, claimant) => this.#handOver(sessionId, processOf(claimant)));
  #handOver: SessionOwner["handOver"] = () => "This host does not hand over sessions.";

  constructor({ sessionsDirectory, storesSessions }: SessionStoreOptions, onDiagnostic: (diagnostic: Diagnostic) => void) {
    this.#directory = sessionsDirectory;
    this.#isUsed = storesSessions;
    this.#onDiagnostic = onDiagnostic;
  }

  attach(owner: SessionOwner): void {
    this.#handOver = (sessionId, claimant) => owner.handOver(sessionId, claimant);
  }

  /** @throws HostError `SESSION_EXISTS`, `SESSION_IN_USE`, `SESSION_STORE` when the directory is not writable. */
  async create(sessionId: string): Promise<AppendLog> {
    if (!this.#isUsed) throw new HostError("SESSION_STORE", `This host does not store sessions. ${storingAdvice}`);
    const paths = this.#pathsOf(sessionId);
    return inStore(this.#directory, async () => {
      // Only the user may read conversations.
      await mkdir(paths.folder, { recursive: true, mode: 0o700 });
      return this.#openLog(sessionId, paths, false);
    });
  }

  /**
   * With `takeOver`, a process that has the session open and idle is asked to hand it over, and has so many milliseconds to answer.
   * @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE`, `SESSION_STORE`.
   */
  async open(sessionId: string, takeOver?: number): Promise<AppendLog> {
    const paths = await this.#find(sessionId);
    return inStore(this.#directory, () => this.#openLog(sessionId, paths, true, takeOver));
  }

  /** Reads a log, even while it is in use. @throws HostError `SESSION_NOT_FOUND`. */
  async read(sessionId: string): Promise<LogContents> {
    return readLogLines((await this.#find(sessionId)).log);
  }

  /**
   * Stores a new session with these events, and with copies of the files of another session if that is stored. The session appears
   * complete or not at all.
   * @throws HostError `SESSION_EXISTS`, `SESSION_STORE`.
   */
  async add(sessionId: string, events: readonly object[], filesOf: string): Promise<void> {
    if (!this.#isUsed) throw new HostError("SESSION_STORE", `This host does not store sessions. ${storingAdvice}`);
    const { folder } = this.#pathsOf(sessionId);
    await inStore(this.#directory, async () => {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      const draft = join(this.#directory, `.forked-${randomUUID()}`);
      try {
        await mkdir(draft, { mode: 0o700 });
        await copyFiles(this.#pathsOf(filesOf).folder, draft, isCopied);
        const log = openFileLog(join(draft, logName), { onDiagnostic: this.#onDiagnostic });
        for (const event of events) log.append(event);
        await log.close();
        // Also of an empty folder, which some systems would replace.
        if ((await sizeOf(folder)) >= 0) throw exists(sessionId);
        await rename(draft, folder);
      } catch (error) {
        await rm(draft, { recursive: true, force: true });
        // Another one with this id was stored at the same time.
        throw !(error instanceof HostError) && (await sizeOf(folder)) >= 0 ? exists(sessionId) : error;
      }
    });
  }

  /** The stored sessions, the most recently changed first. */
  async list(): Promise<readonly StoredSession[]> {
    const sessions: StoredSession[] = [];
    for (const sessionId of (await namesIn(this.#directory)).filter(isSessionId)) {
      const session = await readStored(sessionId, this.#pathsOf(sessionId));
      if (session !== undefined) sessions.push(session);
    }
    return sessions.sort((a, b) => b.modifiedTime.getTime() - a.modifiedTime.getTime());
  }

  /** Deletes a session with its large results. @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE`. */
  async delete(sessionId: string): Promise<void> {
    const paths = await this.#find(sessionId, 0);
    const grave = join(this.#directory, `.deleted-${randomUUID()}`);
    await locked(sessionId, paths.lock, async (held) => {
      // Renamed first, under the lock, so that no process can open a half-deleted session.
      await rename(paths.folder, grave);
      held.release();
    });
    await rm(grave, { recursive: true, force: true });
  }

  #pathsOf(sessionId: string): Paths {
    const folder = join(this.#directory, sessionId);
    return { folder, log: join(folder, logName), lock: join(folder, `${logName}.lock`) };
  }

  async #find(sessionId: string, minBytes = 1): Promise<Paths> {
    const paths = this.#pathsOf(sessionId);
    if (isSessionId(sessionId) && (await sizeOf(paths.log)) >= minBytes) return paths;
    throw this.#isUsed ? notFound(sessionId, this.#directory) : notStored(sessionId);
  }

  #openLog(sessionId: string, { log, lock }: Paths, mayHaveRecords: boolean, takeOver?: number): Promise<AppendLog> {
    const use = async (held: FileLock): Promise<AppendLog> => {
      if (!mayHaveRecords && (await sizeOf(log)) > 0) throw exists(sessionId);
      // A takeover may have taken so long that the session was deleted.
      if (mayHaveRecords && (await sizeOf(log)) < 1) throw notFound(sessionId, this.#directory);
      const file = openFileLog(log, { onDiagnostic: this.#onDiagnostic });
      return endingWith(file, held, this.#takeovers.own(sessionId, lock));
    };
    return locked(sessionId, lock, use, takeOver);
  }
}

/** The log, its lock and large results belong to the session itself. */
function isCopied(name: string): boolean {
  return !name.startsWith(logName) && name !== outputsFolder;
}

/** Copies files and folders, but no links. What disappears meanwhile is left out. */
async function copyFiles(from: string, to: string, isCopied: (name: string) => boolean = () => true): Promise<void> {
  for (const entry of await entriesOf(from)) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (!isCopied(entry.name)) continue;
    if (entry.isDirectory()) {
      await mkdir(target, { mode: 0o700 });
      await copyFiles(source, target);
    } else if (entry.isFile()) {
      await copyFile(source, target, constants.COPYFILE_FICLONE).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
      });
    }
  }
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

interface Paths {
  readonly folder: string;
  readonly log: string;
  readonly lock: string;
}

async function locked<T>(sessionId: string, path: string, use: (lock: FileLock) => Promise<T>, takeOver?: number): Promise<T> {
  const taken = await takeLock(path, takeOver);
  if (taken.kind !== "held") throw inUse(sessionId, taken.holder, path, taken.kind === "refused" ? taken.reason : undefined);
  try {
    return await use(taken.lock);
  } catch (error) {
    taken.lock.release();
    throw error;
  }
}

async function takeLock(path: string, timeout: number | undefined): Promise<Awaited<ReturnType<typeof takeFileLock>> | Takeover> {
  const taken = await takeFileLock(path);
  if (taken.kind === "held" || timeout === undefined || taken.holder === undefined) return taken;
  return takeOver(path, taken.holder, timeout);
}

/** Releases the lock when the log is closed. */
function endingWith(log: AppendLog, lock: FileLock, ownership: Disposable): AppendLog {
  return {
    append: log.append.bind(log),
    read: log.read.bind(log),
    flush: log.flush.bind(log),
    close: () =>
      log.close().finally(() => {
        ownership[Symbol.dispose]();
        lock.release();
      }),
  };
}

async function inStore<T>(directory: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof HostError) throw cause;
    const advice = "Make it writable, choose another sessionsDirectory, or create sessions with persist: false.";
    throw new HostError("SESSION_STORE", `Sessions cannot be stored in ${directory} (${errorMessage(cause)}). ${advice}`, { cause });
  }
}

async function readStored(sessionId: string, { log, lock }: Paths): Promise<StoredSession | undefined> {
  try {
    const file = await open(log, "r");
    try {
      const { mtime, size } = await file.stat();
      const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(headBytes, size)), 0, Math.min(headBytes, size), 0);
      if (size === 0) return undefined;
      return { sessionId, records: recordsIn(buffer.subarray(0, bytesRead)), modifiedTime: mtime, isInUse: lockHolder(lock) !== undefined };
    } finally {
      await file.close();
    }
  } catch {
    // The session was just deleted, or the folder is not a session.
    return undefined;
  }
}

function recordsIn(head: Buffer): LogRecord[] {
  const end = head.lastIndexOf("\n");
  const lines = end === -1 ? [] : head.toString("utf8", 0, end).split("\n");
  return lines.map((line) => toRecord(Buffer.from(line))).filter((record) => record !== undefined);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw new HostError("SESSION_STORE", `The sessions in ${directory} cannot be listed (${errorMessage(error)}).`, { cause: error });
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch {
    // The file does not exist or cannot be accessed.
    return -1;
  }
}

const storingAdvice = 'To store them, set a directory: createHost({ sessionsDirectory: "./sessions" }).';

function notStored(sessionId: string): HostError {
  const message = `No session "${sessionId}" is open in this host, and it does not store sessions. ${storingAdvice}`;
  return new HostError("SESSION_NOT_FOUND", message);
}

function notFound(sessionId: string, directory: string): HostError {
  const advice = "host.listSessions() lists the stored ones. A session created with persist: false cannot be resumed.";
  return new HostError("SESSION_NOT_FOUND", `Session "${sessionId}" does not exist in ${directory}. ${advice}`);
}

function exists(sessionId: string): HostError {
  const advice = `Resume it with host.resumeSession("${sessionId}"), or delete it with host.deleteSession.`;
  return new HostError("SESSION_EXISTS", `Session "${sessionId}" already exists. ${advice}`);
}

function inUse(sessionId: string, holder: LockHolder | undefined, lock: string, reason: string | undefined): HostError {
  const who = holder === undefined ? "another process" : `${processOf(holder)} since ${holder.since}`;
  if (reason !== undefined) return new HostError("SESSION_IN_USE", `Session "${sessionId}" is in use by ${who}. ${reason}`);
  const advice = `Disconnect it there. If that process is no longer running, delete ${lock}.`;
  return new HostError("SESSION_IN_USE", `Session "${sessionId}" is in use by ${who}. ${advice}`);
}

function processOf({ pid, host }: LockHolder): string {
  return pid === process.pid ? `this process (${pid}), by another host object,` : `process ${pid} on ${host}`;
}

/** The form of an exported session: Markdown to read, or JSON lines with every event. */
export type ExportFormat = "jsonl" | "markdown";

/**
 * Formats a session's events as JSON lines or as Markdown.
 * @throws HostError `EXPORT_FORMAT` for another format, `EXPORT_TOO_LARGE` when the result exceeds the length of a string.
 */
export function exportEvents(sessionId: string, events: readonly RecordedEvent[], format: ExportFormat): string {
  if (format !== "jsonl" && format !== "markdown")
    throw new HostError("EXPORT_FORMAT", `Sessions are exported as "jsonl" or "markdown", not as ${JSON.stringify(format)}.`);
  try {
    return format === "jsonl" ? toLines(events) : toPage(sessionId, events);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const message = `Session "${sessionId}" is too large to export as one string. Read its events.jsonl in the sessions directory line by line.`;
    throw new HostError("EXPORT_TOO_LARGE", message, { cause });
  }
}

function toLines(events: readonly RecordedEvent[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join("");
}

function toPage(sessionId: string, events: readonly RecordedEvent[]): string {
  const parts = events.flatMap((event) => sections.get(event.type)?.(event.data, titleOf(event)) ?? []);
  return `${[`# Session ${sessionId}`, ...parts].join("\n\n")}\n`;
}

type Data = Readonly<Record<string, unknown>>;
type Section = (data: Data, title: string) => readonly string[];

/** The Markdown of each type of event. Other types are left out. */
const sections: ReadonlyMap<string, Section> = new Map(
  Object.entries<Section>({
    "session.start": ({ startTime, options }, title) => [`Started ${textOf(startTime) || title}.`, fenced(json(options), "json")],
    "session.resume": ({ resumeTime }, title) => [`*Resumed ${textOf(resumeTime) || title}.*`],
    "user.message": ({ content, source }, title) => [
      `## ${source === undefined ? "User" : `Context (${textOf(source)})`}${title}`,
      textOf(content),
    ],
    "assistant.message": ({ content }, title) => [`## Assistant${title}`, ...(textOf(content) === "" ? [] : [textOf(content)])],
    "tool.execution_start": ({ toolName, arguments: args }, title) => [
      `### Call of ${code(textOf(toolName))}${title}`,
      fenced(json(args), "json"),
    ],
    "tool.execution_complete": ({ success, result }) => [
      success === true ? "Result:" : "Failed:",
      fenced(textOf((result as Data | undefined)?.["content"]), ""),
    ],
    "session.error": ({ message }, title) => [`## Error${title}`, textOf(message)],
  }),
);

function titleOf({ timestamp, agentId }: RecordedEvent): string {
  return `${agentId === undefined ? "" : ` (agent ${agentId})`} · ${timestamp}`;
}

/** Uses a fence that is longer than any in the text, so that the text cannot end it. */
function fenced(text: string, language: string): string {
  let fence = "```";
  for (const [run] of text.matchAll(/`{3,}/g)) if (run.length >= fence.length) fence = `${run}\``;
  return `${fence}${language}\n${text}\n${fence}`;
}

function code(text: string): string {
  return text.includes("`") ? text : `\`${text}\``;
}

function json(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "";
}
