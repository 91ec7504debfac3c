import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { KV, KvEntry } from "@nats-io/kv";
import {
  type AppendLog,
  HostError,
  type LogContents,
  type LogRecord,
  type SessionOwner,
  type SessionStore,
  type StoredSession,
} from "skillhost";
import { connectFleet, type FleetConnection, type FleetConnectionOptions, fleetSubjects } from "./fleet-connection.ts";
import { FleetSessionLog, type SessionLease } from "./fleet-session-log.ts";
import { isObject } from "./frames.ts";
import { isStreamMissing, isWrongSequence, SessionStream, toRecordLine, toToken } from "./session-stream.ts";

/**
 * Where the sessions of a fleet are stored.
 *
 * @example
 * ```ts
 * const options: FleetSessionOptions = { servers: ["nats://a:4222", "nats://b:4222", "nats://c:4222"], replicas: 3 };
 * ```
 */
export interface FleetSessionOptions extends FleetConnectionOptions {
  /** On how many servers each log is, decided when the first host makes the stream: 1, 3 or 5. Default: 1. */
  readonly replicas?: number | undefined;
  /**
   * Milliseconds after which the sessions of a host that has died are free, decided when the first host makes the bucket. Default: 3,000.
   */
  readonly lease?: number | undefined;
}

/** The sessions of a fleet. Disposing closes the connection; the host that uses it is closed first. */
export interface FleetSessionStore extends SessionStore, AsyncDisposable {}

/**
 * Keeps sessions in a stream of NATS, where every host of the fleet can resume them. Nothing is connected until the first use.
 * @throws HostError `FLEET_OPTIONS`.
 */
export function createSessionStore(options: FleetSessionOptions): FleetSessionStore {
  fleetSubjects(options.prefix);
  return new StreamSessionStore(options);
}

interface Opened {
  readonly connection: FleetConnection["connection"];
  readonly stream: SessionStream;
  readonly owners: KV;
  readonly leaseMs: number;
  /** Makes what the servers have lost. */
  readonly restore: () => Promise<void>;
}

interface Begun {
  readonly sequence: number;
}

const attempts = 20;
const pollMs = 50;
const answerMs = 2_000;
const listedAtOnce = 16;

class StreamSessionStore implements FleetSessionStore {
  readonly #options: FleetSessionOptions;
  readonly #logs = new Set<FleetSessionLog>();
  #opened: Promise<Opened> | undefined;
  #owner: SessionOwner | undefined;

  constructor(options: FleetSessionOptions) {
    this.#options = options;
  }

  attach(owner: SessionOwner): void {
    this.#owner = owner;
  }

  create(sessionId: string): Promise<AppendLog> {
    return this.#use(async (opened) => this.#own(opened, sessionId, false));
  }

  open(sessionId: string): Promise<AppendLog> {
    return this.#use(async (opened) => {
      // First, so that resuming what does not exist leaves nothing behind.
      if (!(await opened.stream.isComplete(sessionId))) throw notFound(sessionId);
      return this.#own(opened, sessionId, true);
    });
  }

  read(sessionId: string): Promise<LogContents> {
    return this.#use(async ({ stream }) => {
      const contents = await stream.read(sessionId);
      if (contents === undefined) throw notFound(sessionId);
      return contents;
    });
  }

  /** Marked as incomplete up to the last message. */
  add(sessionId: string, events: readonly object[]): Promise<void> {
    return this.#use(async (opened) => {
      const lease = await takeLease(opened, sessionId);
      try {
        await this.#absent(opened, sessionId);
        const bytes = Buffer.from(events.map((event) => toRecordLine(event)).join(""));
        const { maxBytes } = opened.stream;
        let sequence = 0;
        for (let from = 0; from < bytes.length; from += maxBytes) {
          const kind = from + maxBytes < bytes.length ? "draft" : "records";
          const part = bytes.subarray(from, from + maxBytes);
          const stored = await opened.stream.append(sessionId, part, sequence, randomUUID(), kind);
          if (stored.kind === "refused") throw exists(sessionId);
          sequence = stored.sequence;
        }
      } finally {
        await release(opened, sessionId, lease);
      }
    });
  }

  list(): Promise<readonly StoredSession[]> {
    return this.#use(async ({ stream, owners }) => {
      const ids = [...(await stream.list())];
      const owned = new Set<string>();
      for await (const key of await owners.keys()) owned.add(key);
      const sessions: StoredSession[] = [];
      while (ids.length > 0) {
        const some = ids.splice(0, listedAtOnce).map(async (sessionId): Promise<void> => {
          const head = await stream.head(sessionId);
          if (head !== undefined) sessions.push({ sessionId, ...head, isInUse: owned.has(toToken(sessionId)) });
        });
        await Promise.all(some);
      }
      return sessions.sort((a, b) => b.modifiedTime.getTime() - a.modifiedTime.getTime());
    });
  }

  delete(sessionId: string): Promise<void> {
    return this.#use(async (opened) => {
      if ((await opened.stream.last(sessionId)) === undefined) throw notFound(sessionId);
      const lease = await takeLease(opened, sessionId);
      await opened.stream.remove(sessionId).finally(() => release(opened, sessionId, lease));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(Array.from(this.#logs, (log) => log.close()));
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.connection.close();
  }

  async #own(opened: Opened, sessionId: string, mayExist: boolean): Promise<AppendLog> {
    const lease = await takeLease(opened, sessionId);
    try {
      const created = await opened.stream.created();
      const { sequence } = await this.#begin(opened, sessionId, mayExist);
      const contents = await opened.stream.read(sessionId);
      // Its creator was killed before its first record was stored.
      if (mayExist && contents === undefined) throw notFound(sessionId);
      for (const diagnostic of contents?.diagnostics ?? []) this.#owner?.report(diagnostic);
      const { stream, owners, leaseMs, restore } = opened;
      const records = contents?.records ?? [];
      const log: FleetSessionLog = new FleetSessionLog({
        ...{ sessionId, stream, owners, lease, leaseMs, restore, sequence, created, records },
        owner: () => this.#owner,
        onClosed: () => void this.#logs.delete(log),
      });
      this.#logs.add(log);
      return log;
    } catch (error) {
      await release(opened, sessionId, lease);
      throw error;
    }
  }

  /** Stores the message after which no former owner can store any. */
  async #begin(opened: Opened, sessionId: string, mayExist: boolean): Promise<Begun> {
    const { stream } = opened;
    if (!mayExist) await this.#absent(opened, sessionId);
    const id = randomUUID();
    for (let attempt = 0; attempt < attempts; attempt++) {
      const last = await stream.last(sessionId);
      // It was deleted in the meantime.
      if (mayExist && last === undefined) throw notFound(sessionId);
      const begun = await stream.append(sessionId, "", last?.seq ?? 0, `${id}:${attempt}`, "owner");
      if (begun.kind === "stored") return begun;
    }
    throw inUse(sessionId, undefined);
  }

  /** Removes the rest of one that was never complete. @throws HostError `SESSION_EXISTS`. */
  async #absent({ stream }: Opened, sessionId: string): Promise<void> {
    if ((await stream.last(sessionId)) === undefined) return;
    if ((await stream.read(sessionId)) !== undefined) throw exists(sessionId);
    await stream.remove(sessionId);
  }

  async #use<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    try {
      this.#opened ??= openStream(this.#options);
      this.#opened.catch(() => {
        this.#opened = undefined;
      });
      const opened = await this.#opened;
      return await work(opened).catch(async (error: unknown) => {
        if (!isStreamMissing(error)) throw error;
        await opened.restore();
        return work(opened);
      });
    } catch (cause) {
      if (cause instanceof HostError && !cause.code.startsWith("FLEET_")) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      const advice = "Sessions need JetStream (nats-server -js), and a majority of the servers.";
      throw new HostError("SESSION_STORE", `The sessions of the fleet are out of reach: ${why}. ${advice}`, { cause });
    }
  }
}

async function openStream(options: FleetSessionOptions): Promise<Opened> {
  const { prefix = "skillhost", replicas = 1, lease = 3_000 } = options;
  const fleet = await connectFleet(options, "skillhost-sessions");
  try {
    const [{ jetstream, jetstreamManager }, { Kvm }] = await importStreams();
    // What is lost with a connection is tried again sooner than the library would. Making streams may take longer.
    const [client, maker] = [jetstream(fleet.connection, { timeout: answerMs }), await jetstreamManager(fleet.connection)];
    const stream = new SessionStream(fleet, client, await client.jetstreamManager(), prefix);
    const name = `${prefix}-owners`;
    // Answers of replicas may be old: ownership is asked of the leader.
    const makeOwners = (): Promise<KV> => new Kvm(fleet.connection).create(name, { replicas, ttl: lease, allow_direct: false });
    await stream.prepare(maker, replicas);
    // A bucket that another host has made keeps its own time.
    const { ttl } = await (await makeOwners()).status();
    const owners = await new Kvm(client).open(name, { allow_direct: false });
    const restore = async (): Promise<void> => {
      await stream.prepare(maker, replicas);
      await makeOwners();
    };
    return {
      connection: fleet.connection,
      stream,
      owners,
      leaseMs: ttl > 0 ? ttl : lease,
      restore,
    };
  } catch (error) {
    await fleet.connection.close();
    throw error;
  }
}

async function importStreams(): Promise<[typeof import("@nats-io/jetstream"), typeof import("@nats-io/kv")]> {
  try {
    return [await import("@nats-io/jetstream"), await import("@nats-io/kv")];
  } catch (cause) {
    if ((cause as { readonly code?: unknown } | null)?.code !== "ERR_MODULE_NOT_FOUND") throw cause;
    const install = "npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv";
    throw new HostError("FLEET_PACKAGES", `The packages of NATS are not installed. Install them beside skillhost: ${install}`, { cause });
  }
}

/**
 * Takes the lease of a session. One that another process has is waited for until it runs out, or is renewed.
 * @throws HostError `SESSION_IN_USE`.
 */
async function takeLease({ owners, leaseMs }: Opened, sessionId: string): Promise<SessionLease> {
  const key = toToken(sessionId);
  const value = JSON.stringify({ owner: randomUUID(), host: hostname(), pid: process.pid });
  const until = performance.now() + leaseMs * 2;
  for (let seen: number | undefined; ; ) {
    try {
      return { value, revision: await owners.create(key, value) };
    } catch (error) {
      if (!isWrongSequence(error)) throw error;
    }
    const entry = await owners.get(key);
    if (entry?.operation === "PUT") {
      if ((seen !== undefined && entry.revision !== seen) || performance.now() > until) throw inUse(sessionId, entry);
      seen = entry.revision;
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

async function release({ owners }: Opened, sessionId: string, { revision }: SessionLease): Promise<void> {
  await owners.delete(toToken(sessionId), { previousSeq: revision }).catch(() => {
    // It runs out.
  });
}

function inUse(sessionId: string, entry: KvEntry | undefined): HostError {
  const advice = "Disconnect it there: it moves when its host has ended, or has closed it.";
  return new HostError("SESSION_IN_USE", `Session "${sessionId}" is in use by ${holderOf(entry)}. ${advice}`);
}

function holderOf(entry: KvEntry | undefined): string {
  try {
    const holder: LogRecord | unknown = JSON.parse(entry?.string() ?? "");
    if (isObject(holder)) return `process ${String(holder["pid"])} on ${String(holder["host"])}`;
  } catch {
    // Another program wrote it.
  }
  return "another host";
}

function exists(sessionId: string): HostError {
  const advice = `Resume it with host.resumeSession("${sessionId}"), or delete it with host.deleteSession.`;
  return new HostError("SESSION_EXISTS", `Session "${sessionId}" already exists in the fleet. ${advice}`);
}

function notFound(sessionId: string): HostError {
  const advice = "host.listSessions() lists the stored ones.";
  return new HostError("SESSION_NOT_FOUND", `Session "${sessionId}" does not exist in the fleet. ${advice}`);
}
