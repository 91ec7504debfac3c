import { type Clock, endsWithin, systemClock } from "../../base/clock.ts";
import { Emitter } from "../../base/emitter.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import { ListCache } from "./list-cache.ts";
import { IdentityMemories, IdentityMemory, type ServerConnector } from "./server-connector.ts";
import { Lease } from "./server-handle.ts";
import { identityOf, resolveServer } from "./server-identity.ts";
import type { ServerLease } from "./server-lease.ts";
import { PendingShutdowns } from "./server-lifecycle.ts";
import { defaultRespawn, type RespawnPolicy, type SharedServerStatus } from "./server-state.ts";
import { SharedServer } from "./shared-server.ts";
import { StartSlots } from "./start-slots.ts";

export interface SupervisorOptions {
  readonly connect: ServerConnector;
  /** Where relative paths of local servers start, unless a lease says otherwise. */
  readonly workingDirectory: string;
  readonly log: Logger;
  /** Where the lists of servers are kept, so that the next start can offer them at once. The user's own folder. Undefined: nowhere. */
  readonly cacheDirectory?: string | undefined;
  /** Servers that start at a time. Default 16. */
  readonly maxConcurrentStarts?: number | undefined;
  /** Milliseconds that `ready` waits unless told otherwise. Default 5,000. */
  readonly readyWait?: number | undefined;
  /** Milliseconds that a request waits for a server that is coming back. Default 10,000. */
  readonly callWait?: number | undefined;
  /** Milliseconds that a connection is kept after its last user let go of it. Default 5,000. */
  readonly linger?: number | undefined;
  readonly respawn?: Partial<RespawnPolicy> | undefined;
  readonly clock?: Clock | undefined;
  /** For the jitter of pauses: from 0 up to 1. */
  readonly random?: (() => number) | undefined;
}

export interface AcquireOptions {
  /** Where relative paths of local servers start. */
  readonly workingDirectory?: string | undefined;
}

/** A server that takes longer to start gives its place to the next one. */
const slotHold = 3_000;
/** However a server resists, the end of all is not waited for longer. */
const closePatience = 10_000;

/**
 * Keeps the connections to MCP servers for the whole host. Those who use a server by the same configuration share one
 * connection, which is started when the first needs it, started anew when it breaks, and ended a short while after the
 * last let go of it.
 */
export class McpSupervisor implements AsyncDisposable {
  readonly #options: SupervisorOptions;
  readonly #clock: Clock;
  readonly #cache: ListCache | undefined;
  readonly #slots: StartSlots;
  readonly #memories: IdentityMemories;
  readonly #keepers = new Map<string, SharedServer>();
  readonly #leases = new Set<Lease>();
  readonly #changes: Emitter<{ status: SharedServerStatus }>;
  /** Of connections that nobody uses any more, by identity. */
  readonly #closing = new Map<string, Promise<void>>();
  readonly #endings = new PendingShutdowns();
  #disposed: Promise<void> | undefined;

  constructor(options: SupervisorOptions) {
    const { clock = systemClock, cacheDirectory, log, maxConcurrentStarts = 16, random = Math.random } = options;
    this.#options = options;
    this.#clock = clock;
    this.#cache = cacheDirectory === undefined ? undefined : new ListCache(cacheDirectory, log, clock);
    this.#slots = new StartSlots(maxConcurrentStarts, slotHold, clock);
    const respawn = { ...defaultRespawn, ...options.respawn };
    this.#memories = new IdentityMemories(() => new IdentityMemory(respawn, clock, random));
    this.#changes = new Emitter((error) => this.#reportListener(error));
  }

  /**
   * Takes hold of servers; none is started by that.
   * @throws HostError `MCP_SUPERVISOR_CLOSED`
   */
  acquire(servers: readonly (McpServerSpec | UnconfiguredServer)[], options: AcquireOptions = {}): ServerLease {
    if (this.#disposed !== undefined) {
      throw new HostError("MCP_SUPERVISOR_CLOSED", "The host is closed, so MCP servers cannot be used. Create a new host.");
    }
    const workingDirectory = options.workingDirectory ?? this.#options.workingDirectory;
    const lease: Lease = new Lease(servers, {
      clock: this.#clock,
      readyWait: this.#options.readyWait ?? 5_000,
      keeperOf: (spec) => this.#keeperOf(spec, workingDirectory),
      onError: (error) => this.#reportListener(error),
      disposed: () => void this.#leases.delete(lease),
    });
    this.#leases.add(lease);
    return lease;
  }

  /** All connections that are held, whoever holds them, each under the name that its first user has for it. */
  list(): readonly SharedServerStatus[] {
    return [...this.#keepers.values()].map((keeper) => keeper.status(keeper.name));
  }

  /** Hears of each connection whose state or error is another. */
  subscribe(listener: (status: SharedServerStatus) => void): Disposable {
    return this.#changes.on("status", listener);
  }

  /** Ends everything, all at once and in bounded time. Requests under way reject; so do those that come later. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#end();
    return this.#disposed;
  }

  async #end(): Promise<void> {
    const ended = Promise.all([...this.#keepers.values()].map((keeper) => keeper.close()));
    for (const lease of [...this.#leases]) lease[Symbol.dispose]();
    const all = Promise.all([ended, this.#endings.all(), this.#cache?.[Symbol.asyncDispose]()]);
    if (!(await endsWithin(all, closePatience, this.#clock)))
      this.#options.log.error("Not all MCP servers could be stopped in time.", { servers: [...this.#closing.keys()] });
    this.#changes.clear();
  }

  #keeperOf(spec: McpServerSpec, workingDirectory: string): SharedServer {
    const resolved = resolveServer(spec, workingDirectory);
    const id = identityOf(resolved);
    const found = this.#keepers.get(id);
    if (found !== undefined && !found.isClosed) return found;
    const keeper = this.#makeKeeper(id, resolved, workingDirectory);
    this.#keepers.set(id, keeper);
    return keeper;
  }

  #makeKeeper(id: string, spec: McpServerSpec, workingDirectory: string): SharedServer {
    const { connect, log, linger = 5_000, callWait = 10_000 } = this.#options;
    const keeper: SharedServer = new SharedServer({
      id,
      spec,
      workingDirectory,
      connect,
      log,
      linger,
      callWait,
      clock: this.#clock,
      slots: this.#slots,
      cache: this.#cache,
      memory: this.#memories.of(id),
      predecessor: this.#closing.get(id) ?? Promise.resolve(),
      changed: () => this.#changes.emit("status", keeper.status(keeper.name)),
      closed: (ended) => {
        if (this.#keepers.get(keeper.id) === keeper) this.#keepers.delete(keeper.id);
        const closing = ended.finally(() => {
          if (this.#closing.get(keeper.id) === closing) this.#closing.delete(keeper.id);
        });
        this.#closing.set(keeper.id, closing);
        this.#endings.add(closing);
      },
    });
    return keeper;
  }

  #reportListener(error: Error): void {
    this.#options.log.error("An MCP server listener failed.", { error: errorMessage(error) });
  }
}
