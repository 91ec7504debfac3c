import type { JetStreamClient, JetStreamManager, MsgRequest, StoredMsg } from "@nats-io/jetstream";
import { HostError, type LogContents, type LogRecord } from "skillhost";
import type { FleetConnection } from "./fleet-connection.ts";
import { isObject } from "./frames.ts";

/** A message begins the time of an owner: what is incomplete before it is void. */
const ownerHeader = "Skillhost-Owner";
/** More of the same session follows; without that, it does not exist. */
const draftHeader = "Skillhost-Draft";
const idHeader = "Nats-Msg-Id";
/** The code of a wrong last sequence. */
const wrongSequence: ReadonlySet<unknown> = new Set([10_071, 10_164]);
const streamNotFound = 10_059;
const silenceMs = 10_000;

export type MessageKind = "records" | "draft" | "owner";

interface Appended {
  readonly kind: "stored";
  readonly sequence: number;
}

/** What another owner stored came first, or the session was deleted. */
interface Refused {
  readonly kind: "refused";
  readonly isDeleted: boolean;
}

/**
 * The logs of sessions in one stream, each under a subject of its own. The messages of a subject joined are JSON lines: a message holds several, or
 * part of one.
 */
export class SessionStream {
  readonly #name: string;
  readonly #subjects: string;
  readonly #fleet: FleetConnection;
  readonly #client: JetStreamClient;
  readonly #manager: JetStreamManager;

  constructor(fleet: FleetConnection, client: JetStreamClient, manager: JetStreamManager, prefix: string) {
    this.#fleet = fleet;
    this.#client = client;
    this.#manager = manager;
    this.#name = `${prefix}-sessions`;
    this.#subjects = `${prefix}.sessions`;
  }

  /** Makes the stream if there is none. */
  async prepare({ streams }: JetStreamManager, replicas: number): Promise<void> {
    try {
      await streams.info(this.#name);
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== streamNotFound) throw error;
      await streams.add({ name: this.#name, subjects: [`${this.#subjects}.>`], num_replicas: replicas });
    }
  }

  /** When the stream was made, by the clock of its server. Another time is that of another stream: the servers have lost the one before. */
  async created(): Promise<string> {
    return (await this.#manager.streams.info(this.#name)).created;
  }

  /** The bytes that fit into one message, with its headers. */
  get maxBytes(): number {
    return Math.max(1_024, Math.min(256 * 1_024, (this.#fleet.connection.info?.max_payload ?? 1_048_576) - 4_096));
  }

  /**
   * Stores a message if `after` is the last sequence of the session. With the same `id` it can be tried again: it is stored once.
   * Rejects when it is not known whether it was stored.
   */
  async append(sessionId: string, data: Uint8Array | string, after: number, id: string, kind: MessageKind): Promise<Appended | Refused> {
    const headers = this.#fleet.createHeaders();
    if (kind !== "records") headers.set(kind === "owner" ? ownerHeader : draftHeader, "1");
    try {
      const { seq } = await this.#client.publish(this.#subjectOf(sessionId), data, {
        msgID: id,
        expect: { lastSubjectSequence: after },
        headers,
      });
      return { kind: "stored", sequence: seq };
    } catch (error) {
      if (!isWrongSequence(error)) throw error;
      const last = await this.last(sessionId);
      // An attempt before this one was stored, and its acknowledgement lost.
      if (last?.header.get(idHeader) === id) return { kind: "stored", sequence: last.seq };
      return { kind: "refused", isDeleted: last === undefined };
    }
  }

  async last(sessionId: string): Promise<StoredMsg | undefined> {
    return (await this.#manager.streams.getMessage(this.#name, { last_by_subj: this.#subjectOf(sessionId) })) ?? undefined;
  }

  /** Whether a session has messages, of which no further one is missing. Its log may still be empty. */
  async isComplete(sessionId: string): Promise<boolean> {
    const last = await this.last(sessionId);
    return last !== undefined && last.header.get(draftHeader) === "";
  }

  /** The records of a session; undefined when it does not exist. */
  async read(sessionId: string): Promise<LogContents | undefined> {
    const last = await this.last(sessionId);
    if (last === undefined || last.header.get(draftHeader) !== "") return undefined;
    const consumer = await this.#client.consumers.get(this.#name, { filter_subjects: this.#subjectOf(sessionId) });
    const messages = await consumer.consume({ max_messages: 200 });
    const silence = setTimeout(() => messages.stop(new Error(`The servers are silent for ${silenceMs} ms.`)), silenceMs);
    const lines = new LineJoiner();
    try {
      let end = 0;
      for await (const message of messages) {
        silence.refresh();
        lines.add(message.data, (message.headers?.get(ownerHeader) ?? "") !== "");
        end = message.seq;
        if (end >= last.seq) break;
      }
      if (end < last.seq) throw new Error("The reading of the stream ended early.");
    } finally {
      clearTimeout(silence);
      await messages.close();
    }
    return lines.isEmpty ? undefined : lines.contents(sessionId);
  }

  /** The ids of what has messages. */
  async list(): Promise<readonly string[]> {
    const { state } = await this.#manager.streams.info(this.#name, { subjects_filter: `${this.#subjects}.>` });
    return Object.keys(state.subjects ?? {}).flatMap((subject) => fromToken(subject.slice(this.#subjects.length + 1)) ?? []);
  }

  /** The first records of a session, and the time of its last message; undefined when it does not exist. */
  async head(sessionId: string): Promise<{ readonly records: readonly LogRecord[]; readonly modifiedTime: Date } | undefined> {
    const last = await this.last(sessionId);
    if (last === undefined || last.header.get(draftHeader) !== "") return undefined;
    const lines = new LineJoiner();
    for (let [sequence, count] = [1, 0]; sequence <= last.seq && count < headMessages; count++) {
      const found = await this.#manager.streams.getMessage(this.#name, nextOf(this.#subjectOf(sessionId), sequence));
      if (found === null) break;
      lines.add(found.data, found.header.get(ownerHeader) !== "");
      sequence = found.seq + 1;
      if (lines.contents(sessionId).records.some(({ type }) => type === "user.message")) break;
    }
    if (lines.isEmpty) return undefined;
    return { records: lines.contents(sessionId).records, modifiedTime: last.time };
  }

  async remove(sessionId: string): Promise<void> {
    await this.#manager.streams.purge(this.#name, { filter: this.#subjectOf(sessionId) });
  }

  #subjectOf(sessionId: string): string {
    return `${this.#subjects}.${toToken(sessionId)}`;
  }
}

/** The types of the package do not know what the servers do since 2.9. */
function nextOf(subject: string, sequence: number): MsgRequest {
  return { seq: sequence, next_by_subj: subject } as MsgRequest;
}

/** Enough for the options and, as a rule, the first prompt. */
const headMessages = 6;

/** An id as a token of a subject and as a key. */
export function toToken(sessionId: string): string {
  return /^[A-Za-z0-9_-]+$/.test(sessionId) ? sessionId : `=${Buffer.from(sessionId).toString("base64url")}`;
}

function fromToken(token: string): string | undefined {
  return token.startsWith("=") ? Buffer.from(token.slice(1), "base64url").toString("utf8") : token;
}

/** Nothing takes messages of the stream, or it is not found: the servers may have lost their disks. */
export function isStreamMissing(error: unknown): boolean {
  const { name, code } = (error ?? {}) as { readonly name?: unknown; readonly code?: unknown };
  return name === "JetStreamNotEnabled" || code === streamNotFound;
}

export function isWrongSequence(error: unknown): boolean {
  return wrongSequence.has((error as { readonly code?: unknown } | null)?.code);
}

/** Joins the messages of a session to lines. */
class LineJoiner {
  #text: Uint8Array[] = [];
  #rest: Uint8Array[] = [];

  get isEmpty(): boolean {
    return this.#text.length === 0;
  }

  add(data: Uint8Array, isOwner: boolean): void {
    // The owner before this one ended within a line.
    if (isOwner) this.#rest = [];
    const end = data.lastIndexOf(0x0a) + 1;
    if (end > 0) {
      this.#text.push(...this.#rest, data.subarray(0, end));
      this.#rest = [];
    }
    if (end < data.length) this.#rest.push(data.subarray(end));
  }

  contents(sessionId: string): LogContents {
    const lines = Buffer.concat(this.#text).toString("utf8").split("\n");
    const records: LogRecord[] = [];
    let damaged = 0;
    for (const line of lines) {
      if (line === "") continue;
      const record = parse(line);
      if (record === undefined) damaged++;
      else records.push(record);
    }
    const message = `${damaged} records of session "${sessionId}" in the stream are damaged and were skipped.`;
    return { records, diagnostics: damaged === 0 ? [] : [{ severity: "warning", code: "LOG_DAMAGED", message, source: "nats" }] };
  }
}

function parse(line: string): LogRecord | undefined {
  try {
    const record: unknown = JSON.parse(line);
    return isObject(record) ? record : undefined;
  } catch {
    // Another program wrote it.
    return undefined;
  }
}

/** One record as a line. @throws HostError `RECORD_INVALID`, `RECORD_TOO_LARGE`. */
export function toRecordLine(record: object): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(record);
  } catch (cause) {
    throw new HostError("RECORD_INVALID", "A log record could not be converted to JSON.", { cause });
  }
  if (!text?.startsWith("{")) throw new HostError("RECORD_INVALID", "A log record must be an object that can be represented in JSON.");
  if (Buffer.byteLength(text) >= maxLineBytes)
    throw new HostError("RECORD_TOO_LARGE", `A log record is longer than the limit of ${maxLineBytes} bytes. Shorten it.`);
  return `${text}\n`;
}

const maxLineBytes = 32 * 1_024 * 1_024;
