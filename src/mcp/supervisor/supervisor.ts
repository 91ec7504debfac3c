import { Emitter } from "../../base/emitter.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { type Clock, endsWithin, systemClock } from "../../base/wait.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import { defaultRespawn, type RespawnPolicy } from "./circuit-breaker.ts";
import { ListCache } from "./list-cache.ts";
import { type ServerConnector, ServerHistories, ServerHistory } from "./server-connector.ts";
import { Lease } from "./server-handle.ts";
import { identityOf, resolveServer } from "./server-identity.ts";
import type { ServerLease } from "./server-lease.ts";
import { PendingShutdowns } from "./server-lifecycle.ts";
import type { SharedServerStatus } from "./server-state.ts";
import { SharedServer } from "./shared-server.ts";
import { StartSlots } from "./start-slots.ts";

export interface SupervisorOptions {
  readonly connect: ServerConnector;
  /** Base of relative paths of local servers, unless a lease has its own. */
  readonly workingDirectory: string;
  readonly log: Logger;
  /** The user's own folder where lists are cached for the next start. Undefined: not cached. */
  readonly cacheDirectory?: string | undefined;
  /** Servers that start at a time. Default 16. */
  readonly maxConcurrentStarts?: number | undefined;
  /** Default for how many milliseconds `ready` waits. Default 5,000. */
  readonly readyWait?: number | undefined;
  /** Milliseconds that a request waits for a server that is restarting. Default 10,000. */
  readonly callWait?: number | undefined;
  /** Milliseconds that a connection is kept after its last user has released it. Default 5,000. */
  readonly linger?: number | undefined;
  readonly respawn?: Partial<RespawnPolicy> | undefined;
  readonly clock?: Clock | undefined;
  /** For the jitter of pauses: from 0 up to 1. */
  readonly random?: (() => number) | undefined;
}

export interface AcquireOptions {
  /** Base of relative paths of local servers. */
  readonly workingDirectory?: string | undefined;
}

/** A server that takes longer to start releases its slot. */
const slotHold = 3_000;
/** Disposing does not wait longer than this for servers to end. */
const closeTimeout = 10_000;

/**
 * All connections to MCP servers of a host. Users with the same configuration share one connection. It starts with its
 * first user, restarts when it breaks, and ends soon after its last user has released it.
 */
export class McpSupervisor implements AsyncDisposable {
  readonly #options: SupervisorOptions;
  readonly #clock: Clock;
  readonly #cache: ListCache | undefined;
  readonly #slots: StartSlots;
  readonly #histories: ServerHistories;
  readonly #servers = new Map<string, SharedServer>();
  readonly #leases = new Set<Lease>();
  readonly #changes: Emitter<{ status: SharedServerStatus }>;
  /** Ending connections without users, by identity. */
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
    this.#histories = new ServerHistories(() => new ServerHistory(respawn, clock, random));
    this.#changes = new Emitter((error) => this.#reportListener(error));
  }

  /**
   * Creates a lease. This starts no server.
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
      sharedServerOf: (spec) => this.#serverOf(spec, workingDirectory),
      onError: (error) => this.#reportListener(error),
      disposed: () => void this.#leases.delete(lease),
    });
    this.#leases.add(lease);
    return lease;
  }

  /** All connections with a user, each under the name that its first user gave it. */
  list(): readonly SharedServerStatus[] {
    return [...this.#servers.values()].map((server) => server.status(server.name));
  }

  /** Calls the listener when the state or the error of a connection changes. */
  subscribe(listener: (status: SharedServerStatus) => void): Disposable {
    return this.#changes.on("status", listener);
  }

  /** Ends everything at once, in bounded time. Pending requests reject, and so do later ones. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#end();
    return this.#disposed;
  }

  async #end(): Promise<void> {
    const ended = Promise.all([...this.#servers.values()].map((server) => server.close()));
    for (const lease of [...this.#leases]) lease[Symbol.dispose]();
    const all = Promise.all([ended, this.#endings.all(), this.#cache?.[Symbol.asyncDispose]()]);
    if (!(await endsWithin(all, closeTimeout, this.#clock)))
      this.#options.log.error("Not all MCP servers could be stopped in time.", { servers: [...this.#closing.keys()] });
    this.#changes.clear();
  }

  #serverOf(spec: McpServerSpec, workingDirectory: string): SharedServer {
    const resolved = resolveServer(spec, workingDirectory);
    const id = identityOf(resolved);
    const found = this.#servers.get(id);
    if (found !== undefined && !found.isClosed) return found;
    const server = this.#createServer(id, resolved, workingDirectory);
    this.#servers.set(id, server);
    return server;
  }

  #createServer(id: string, spec: McpServerSpec, workingDirectory: string): SharedServer {
    const { connect, log, linger = 5_000, callWait = 10_000 } = this.#options;
    const server: SharedServer = new SharedServer({
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
      history: this.#histories.of(id),
      predecessor: this.#closing.get(id) ?? Promise.resolve(),
      changed: () => this.#changes.emit("status", server.status(server.name)),
      closed: (ended) => {
        if (this.#servers.get(server.id) === server) this.#servers.delete(server.id);
        const closing = ended.finally(() => {
          if (this.#closing.get(server.id) === closing) this.#closing.delete(server.id);
        });
        this.#closing.set(server.id, closing);
        this.#endings.add(closing);
      },
    });
    return server;
  }

  #reportListener(error: Error): void {
    this.#options.log.error("An MCP server listener failed.", { error: errorMessage(error) });
  }
}
