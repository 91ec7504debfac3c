import { canonicalJson } from "../../base/canonical-json.ts";
import { Emitter } from "../../base/emitter.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import { type Clock, endsWithin } from "./clock.ts";
import type { ReadyOptions, ServerChange, ServerLease, SupervisedServer } from "./lease.ts";
import { isStartable, LeasedServer } from "./leased-server.ts";
import type { ServerKeeper } from "./server-keeper.ts";

type Spec = McpServerSpec | UnconfiguredServer;

export interface LeaseParts {
  readonly clock: Clock;
  /** Milliseconds that `ready` waits unless told otherwise. */
  readonly readyWait: number;
  keeperOf(spec: McpServerSpec): ServerKeeper;
  onError(error: Error): void;
  disposed(): void;
}

export class Lease implements ServerLease {
  readonly #parts: LeaseParts;
  readonly #changes: Emitter<{ change: ServerChange }>;
  #servers: readonly LeasedServer[] = [];
  #isStarted = false;
  #isDisposed = false;

  constructor(specs: readonly Spec[], parts: LeaseParts) {
    this.#parts = parts;
    this.#changes = new Emitter(parts.onError);
    this.update(specs);
  }

  get servers(): readonly SupervisedServer[] {
    return this.#servers;
  }

  start(): void {
    this.#isStarted = true;
    for (const server of this.#servers) server.startIfIdle();
  }

  async ready(signal: AbortSignal, { waitMs = this.#parts.readyWait, fresh = false }: ReadyOptions = {}): Promise<void> {
    signal.throwIfAborted();
    this.start();
    const awaited = this.#servers.filter((server) => (fresh ? server.lists?.from !== "server" : server.lists === undefined));
    if (awaited.length === 0) return;
    await endsWithin(Promise.all(awaited.map((server) => server.decided())), waitMs, this.#parts.clock, signal);
  }

  update(specs: readonly Spec[]): void {
    if (this.#isDisposed) return;
    const before = new Map(this.#servers.map((server) => [canonicalJson(server.spec), server]));
    const next = specs.map((spec) => take(before, canonicalJson(spec)) ?? this.#make(spec));
    this.#servers = Object.freeze(next);
    // Only now: a connection that is still used must not be without users in between.
    for (const server of before.values()) server.release();
    if (this.#isStarted) this.start();
  }

  subscribe(listener: (change: ServerChange) => void): Disposable {
    return this.#changes.on("change", listener);
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const server of this.#servers) server.release();
    this.#changes.clear();
    this.#parts.disposed();
  }

  #make(spec: Spec): LeasedServer {
    const keeper = isStartable(spec) ? this.#parts.keeperOf(spec) : undefined;
    return new LeasedServer(spec, keeper, this.#parts.clock.now(), (change) => this.#changes.emit("change", change));
  }
}

function take<T>(from: Map<string, T>, key: string): T | undefined {
  const found = from.get(key);
  from.delete(key);
  return found;
}
