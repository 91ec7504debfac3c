import { randomBytes } from "node:crypto";
import type { KV } from "@nats-io/kv";
import { type AppendLog, HostError, type LogContents, type LogRecord, type SessionOwner } from "skillhost";
import { isStreamMissing, isWrongSequence, type SessionStream, toRecordLine, toToken } from "./session-stream.ts";

const retryMs = 250;
const closeMs = 5_000;
const maxPendingBytes = 64 * 1_024 * 1_024;

/** A lease in the bucket: the key of a session, as long as its owner renews it. */
export interface SessionLease {
  readonly value: string;
  revision: number;
}

interface OpenedLog {
  readonly sessionId: string;
  readonly stream: SessionStream;
  readonly owners: KV;
  readonly lease: SessionLease;
  /** Milliseconds after which a lease that is not renewed runs out. */
  readonly leaseMs: number;
  /** The last sequence of the session: that of the message with which this owner began. */
  readonly sequence: number;
  /** When its stream was made. */
  readonly created: string;
  readonly records: readonly LogRecord[];
  /** Makes what the servers have lost: the stream and the bucket of owners. */
  readonly restore: () => Promise<void>;
  readonly owner: () => SessionOwner | undefined;
  readonly onClosed: () => void;
}

interface Waiter {
  readonly count: number;
  resolve(): void;
  reject(error: Error): void;
}

/** The log of a session that this process owns. Each message expects the sequence of the one before, so that a former owner's are refused. */
export class FleetSessionLog implements AppendLog {
  readonly #opened: OpenedLog;
  readonly #token: string = randomBytes(12).toString("hex");
  /** All lines, also those of former owners: without the servers they are read from here. */
  readonly #lines: string[];
  #stored: number;
  #pendingBytes = 0;
  #sequence: number;
  #created: string;
  #messages = 0;
  /** The rest of the lines that are being stored, in parts. */
  #parts: { readonly id: string; readonly data: Uint8Array }[] = [];
  #partLines = 0;
  #waiters: Waiter[] = [];
  #isSending = false;
  #failure: unknown;
  #dropped = 0;
  #moved: HostError | undefined;
  #closed: Promise<void> | undefined;
  #hasEnded = false;
  readonly #renewal: NodeJS.Timeout;

  constructor(opened: OpenedLog) {
    this.#opened = opened;
    this.#sequence = opened.sequence;
    this.#created = opened.created;
    this.#lines = opened.records.map((record) => toRecordLine(record));
    this.#stored = this.#lines.length;
    this.#renewal = setInterval(() => void this.#renew(), opened.leaseMs / 3).unref();
  }

  append(record: object): void {
    if (this.#closed !== undefined) throw new HostError("LOG_CLOSED", "This log is closed and accepts no more records.");
    const line = toRecordLine(record);
    // The host knows it, and ends the session.
    if (this.#moved !== undefined) return;
    if (this.#failure !== undefined && this.#pendingBytes + line.length > maxPendingBytes) {
      const message = `This log cannot be written, and ${maxPendingBytes} bytes are already waiting: further records are lost.`;
      if (this.#dropped++ === 0) this.#report("error", "LOG_RECORDS_LOST", message);
      return;
    }
    this.#lines.push(line);
    this.#pendingBytes += line.length;
    this.#startSending();
  }

  async read(): Promise<LogContents> {
    return { records: this.#lines.map((line) => JSON.parse(line) as LogRecord), diagnostics: [] };
  }

  flush(): Promise<void> {
    if (this.#moved !== undefined) return Promise.reject(this.#moved);
    const count = this.#lines.length;
    if (this.#stored >= count) return Promise.resolve();
    if (this.#failure !== undefined) return Promise.reject(this.#notWritten());
    return new Promise((resolve, reject) => void this.#waiters.push({ count, resolve, reject }));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const until = performance.now() + closeMs;
    while (this.#stored < this.#lines.length && this.#moved === undefined && performance.now() < until)
      await this.flush().catch(() => pause(20));
    this.#hasEnded = true;
    clearInterval(this.#renewal);
    this.#settleWaiters(this.#notWritten());
    const { owners, lease, sessionId, onClosed } = this.#opened;
    try {
      if (this.#moved !== undefined) throw this.#moved;
      if (this.#stored < this.#lines.length) throw this.#notWritten();
    } finally {
      onClosed();
      if (this.#moved === undefined)
        await owners.delete(toToken(sessionId), { previousSeq: lease.revision }).catch(() => {
          // It runs out.
        });
    }
  }

  #startSending(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    setImmediate(() => void this.#send());
  }

  /** Stores what waits, one message after another, until nothing does. Only one such loop runs. */
  async #send(): Promise<void> {
    while (!this.#hasEnded && this.#moved === undefined && this.#stored < this.#lines.length) {
      if (this.#parts.length === 0) this.#takeLines();
      const [part] = this.#parts as [{ readonly id: string; readonly data: Uint8Array }];
      try {
        const { sessionId, stream } = this.#opened;
        const outcome = await stream.append(sessionId, part.data, this.#sequence, part.id, "records");
        if (outcome.kind === "refused") {
          await this.#missing(outcome.isDeleted);
          continue;
        }
        this.#sequence = outcome.sequence;
        this.#parts.shift();
        if (this.#parts.length === 0) this.#linesStored();
      } catch (error) {
        this.#failed(error);
        await this.#restoreAfter(error);
        await pause(retryMs);
      }
    }
    this.#isSending = false;
  }

  /** The session is another owner's, or was deleted. In a stream that is a new one, the servers have lost it, and all of it is here. */
  async #missing(isDeleted: boolean): Promise<void> {
    const created = isDeleted ? await this.#opened.stream.created() : this.#created;
    if (created === this.#created) return this.#lose(isDeleted);
    this.#created = created;
    this.#sequence = 0;
    this.#stored = 0;
    this.#parts = [];
    this.#pendingBytes = this.#lines.reduce((sum, { length }) => sum + length, 0);
    const count = this.#lines.length;
    const message = `The servers have lost the log of session "${this.#opened.sessionId}". Its ${count} records are stored again.`;
    this.#report("warning", "LOG_STORED_AGAIN", message);
  }

  /** As a refused message: while one is on its way, it notices by itself. */
  async #missingWhileIdle(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      await this.#missing(true);
    } finally {
      this.#isSending = false;
      if (this.#stored < this.#lines.length) this.#startSending();
    }
  }

  async #restoreAfter(error: unknown): Promise<void> {
    if (!isStreamMissing(error)) return;
    await this.#opened.restore().catch(() => {
      // Tried again with what failed.
    });
  }

  #takeLines(): void {
    const { maxBytes } = this.#opened.stream;
    let text = "";
    let count = 0;
    for (let at = this.#stored; at < this.#lines.length && (count === 0 || text.length < maxBytes / 4); at++, count++)
      text += this.#lines[at];
    const bytes = Buffer.from(text);
    this.#partLines = count;
    for (let from = 0; from < bytes.length; from += maxBytes)
      this.#parts.push({ id: `${this.#token}:${this.#messages++}`, data: bytes.subarray(from, from + maxBytes) });
  }

  #linesStored(): void {
    for (let at = this.#stored; at < this.#stored + this.#partLines; at++) this.#pendingBytes -= (this.#lines[at] as string).length;
    this.#stored += this.#partLines;
    if (this.#failure !== undefined) {
      this.#failure = undefined;
      const lost = this.#dropped === 0 ? "No records were lost." : `${this.#dropped} records were lost in the meantime.`;
      this.#dropped = 0;
      this.#report("info", "LOG_WRITTEN_AGAIN", `The log of session "${this.#opened.sessionId}" is writable again. ${lost}`);
    }
    const ready = this.#waiters.filter(({ count }) => count <= this.#stored);
    this.#waiters = this.#waiters.filter(({ count }) => count > this.#stored);
    for (const { resolve } of ready) resolve();
  }

  #failed(error: unknown): void {
    const isFirst = this.#failure === undefined;
    this.#failure = error ?? new Error("unknown");
    if (isFirst) {
      const kept = "Its new records are kept in memory and stored when the servers answer. Until then no other host can have them.";
      const what = `The log of session "${this.#opened.sessionId}" cannot be written (${messageOf(error)}).`;
      this.#report("error", "LOG_NOT_WRITTEN", `${what} ${kept}`);
    }
    this.#settleWaiters(this.#notWritten());
  }

  #lose(isDeleted: boolean): void {
    if (this.#moved !== undefined || this.#hasEnded) return;
    const { sessionId, owner } = this.#opened;
    const count = this.#lines.length - this.#stored;
    const why = isDeleted ? "was deleted" : "is owned by another host now";
    const lost = count === 0 ? "All of its records here are stored." : `${count} records from here came too late and are not stored.`;
    this.#moved = new HostError("SESSION_MOVED", `Session "${sessionId}" ${why}, so it ends here. ${lost}`);
    clearInterval(this.#renewal);
    this.#settleWaiters(this.#moved);
    owner()?.lost(sessionId, this.#moved);
  }

  /** Who does not renew in time may lose the session, and must not lose it otherwise: the stream decides. */
  async #renew(): Promise<void> {
    const { owners, lease, sessionId } = this.#opened;
    const key = toToken(sessionId);
    try {
      lease.revision = await owners.update(key, lease.value, lease.revision);
    } catch (error) {
      if (isWrongSequence(error)) await this.#renewAgain(key);
      else await this.#restoreAfter(error);
    }
  }

  /** The lease ran out, for example while the servers were away, or an answer was lost. */
  async #renewAgain(key: string): Promise<void> {
    const { owners, lease } = this.#opened;
    try {
      const entry = await owners.get(key);
      if (this.#hasEnded) return;
      if (entry === null || entry.operation !== "PUT") lease.revision = await owners.create(key, lease.value);
      else if (entry.string() === lease.value) lease.revision = entry.revision;
      else return this.#lose(false);
      // A lease that was free may have been another's in the meantime.
      const last = await this.#opened.stream.last(this.#opened.sessionId);
      if (last === undefined) await this.#missingWhileIdle();
      else if (last.seq > this.#sequence && !(last.header.get("Nats-Msg-Id") ?? "").startsWith(`${this.#token}:`)) this.#lose(false);
    } catch {
      // Tried again with the next renewal.
    }
  }

  #settleWaiters(error: Error): void {
    for (const { reject } of this.#waiters.splice(0)) reject(error);
  }

  #notWritten(): HostError {
    const count = this.#lines.length - this.#stored;
    const message = `The log of session "${this.#opened.sessionId}" cannot be written (${messageOf(this.#failure)}): ${count} records wait in memory.`;
    return new HostError("LOG_NOT_WRITTEN", message, { cause: this.#failure });
  }

  #report(severity: "error" | "warning" | "info", code: string, message: string): void {
    this.#opened.owner()?.report({ severity, code, message, source: "nats", file: `nats:${this.#opened.sessionId}` });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "the servers have not answered in time";
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
