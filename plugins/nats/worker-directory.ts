import { createHash } from "node:crypto";
import type { Msg, Subscription } from "@nats-io/transport-node";
import type { Logger } from "skillhost";
import { maxToolList, type OfferedTool, type PresenceMessage, protocolVersion, readOffers, readPresence } from "./call-messages.ts";
import type { FleetConnection, FleetSubjects } from "./fleet-connection.ts";
import { FrameReader, isObject } from "./frames.ts";

export interface WorkerDirectoryOptions {
  readonly fleet: FleetConnection;
  readonly subjects: FleetSubjects;
  readonly log: Logger;
  /** Something may be different. */
  readonly onChange: () => void;
}

/** A worker that was heard of lately. */
interface KnownWorker {
  digest: string;
  heard: number;
}

// Three announcements may be lost.
const forgottenAfterMs = 16_000;
const listTimeoutMs = 5_000;
const maxWorkers = 10_000;

class ListTooLarge extends Error {
  constructor() {
    super(`its list of tools is larger than ${maxToolList} bytes; let it serve fewer of them (--available), and others the rest`);
  }
}

/** Which workers there are, and what each of them offers. */
export class WorkerDirectory implements Disposable {
  readonly #options: WorkerDirectoryOptions;
  readonly #workers = new Map<string, KnownWorker>();
  /** Lists by digest: workers with the same tools have the same. */
  readonly #lists = new Map<string, readonly OfferedTool[] | Promise<void>>();
  readonly #problems = new Map<string, string>();
  readonly #subscription: Subscription;
  readonly #timer: NodeJS.Timeout;
  #checked = performance.now();

  constructor(options: WorkerDirectoryOptions) {
    this.#options = options;
    const { fleet, subjects } = options;
    this.#subscription = fleet.connection.subscribe(subjects.presence, {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
    this.#timer = setInterval(() => this.#forget(), 1_000);
    this.#timer.unref();
  }

  /** The lists of the workers that are there. */
  get offers(): readonly (readonly OfferedTool[])[] {
    return Array.from(this.#workers.values(), ({ digest }) => this.#lists.get(digest)).filter((list) => Array.isArray(list));
  }

  /** What is wrong with workers, by worker. */
  get problems(): ReadonlyMap<string, string> {
    return this.#problems;
  }

  /** Has every worker say that it is there. */
  callRoll(): void {
    const { fleet, subjects } = this.#options;
    if (!fleet.connection.isClosed()) fleet.connection.publish(subjects.rollCall);
  }

  /** Settles when the lists that are being fetched are there. */
  async settled(): Promise<void> {
    await Promise.all(Array.from(this.#lists.values(), (list) => (Array.isArray(list) ? undefined : list)));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#subscription.unsubscribe();
  }

  #receive(message: Msg): void {
    const frame = new FrameReader(4_096).read(message);
    const presence = frame.kind === "whole" ? readPresence(frame.value) : undefined;
    if (presence === undefined) this.#options.log.warning("An announcement of a worker is not valid, and is ignored.");
    else if (presence.v !== protocolVersion)
      this.#report(presence.worker, `it speaks version ${presence.v} of the protocol, not ${protocolVersion}`);
    else if (presence.type === "gone") this.#drop(presence.worker);
    else this.#hear(presence);
  }

  #hear({ worker, tools: digest }: PresenceMessage): void {
    const known = this.#workers.get(worker);
    if (known === undefined && this.#workers.size >= maxWorkers) return;
    this.#workers.set(worker, { digest, heard: performance.now() });
    if (known?.digest === digest && this.#lists.has(digest)) return;
    if (!this.#lists.has(digest)) this.#lists.set(digest, this.#fetch(worker, digest));
    else this.#changed();
  }

  async #fetch(worker: string, digest: string): Promise<void> {
    try {
      this.#lists.set(digest, await this.#list(worker, digest));
      this.#problems.delete(worker);
    } catch (error) {
      // It stays too large. Otherwise the next announcement tries again.
      if (error instanceof ListTooLarge) this.#lists.set(digest, []);
      else this.#lists.delete(digest);
      this.#report(worker, error instanceof Error ? error.message : String(error));
    }
    this.#changed();
  }

  #list(worker: string, digest: string): Promise<readonly OfferedTool[]> {
    const { connection } = this.#options.fleet;
    const inbox = this.#options.subjects.host(worker, `list-${digest.slice(0, 16)}-${Math.random().toString(36).slice(2)}`);
    const reader = new FrameReader(maxToolList);
    let size = 0;
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        subscription.unsubscribe();
        settle();
      };
      const timer = setTimeout(() => end(() => reject(new Error("it does not say which tools it has"))), listTimeoutMs);
      const subscription = connection.subscribe(inbox, {
        callback: (error, message) => {
          if (error !== null) return end(() => reject(error));
          if (message.headers?.code === 503) return end(() => reject(new Error("it has left")));
          const frame = reader.read(message);
          size += message.data.length;
          if (size > maxToolList) return end(() => reject(new ListTooLarge()));
          if (frame.kind === "part") return;
          if (frame.kind === "faulty") return end(() => reject(new Error(`of its list, ${frame.message}`)));
          // Another worker with the same id would answer with another list.
          const tools = frame.value["tools"];
          const own = createHash("sha256")
            .update(JSON.stringify(tools) ?? "")
            .digest("hex");
          if (own !== digest) return end(() => reject(new Error("its list is not the one that it announced")));
          const offers = readOffers(frame.value);
          end(() => resolve(offers.filter(({ definition }) => isObject(definition))));
        },
      });
      connection.publish(this.#options.subjects.worker(worker, "tools"), undefined, { reply: inbox });
    });
  }

  #drop(worker: string): void {
    this.#problems.delete(worker);
    if (this.#workers.delete(worker)) this.#changed();
  }

  #report(worker: string, problem: string): void {
    if (this.#problems.get(worker) === problem) return;
    this.#problems.set(worker, problem);
    this.#options.onChange();
  }

  #changed(): void {
    const used = new Set(Array.from(this.#workers.values(), ({ digest }) => digest));
    for (const [digest, list] of this.#lists) if (Array.isArray(list) && !used.has(digest)) this.#lists.delete(digest);
    this.#options.onChange();
  }

  /** Time during which this process did not run, or had no connection, is not the workers' silence. */
  #forget(): void {
    const now = performance.now();
    const missed = now - this.#checked - 1_000;
    this.#checked = now;
    for (const worker of this.#workers.values()) if (missed > 1_000 || !this.isConnected) worker.heard += missed + 1_000;
    for (const [id, { heard }] of this.#workers) if (now - heard > forgottenAfterMs) this.#drop(id);
  }

  /** False while the servers are away: then what was there last is kept. */
  isConnected: boolean = true;
}
