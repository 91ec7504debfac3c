import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { McpConnection } from "../connection/connection.ts";
import { type Clock, endsWithin } from "./clock.ts";
import { ListKeeper, type ListKeeperParts } from "./list-keeper.ts";

/** A connection in use, and its lists, which are kept up to date while it is. */
export class LiveConnection {
  readonly connection: McpConnection;
  readonly #lists: ListKeeper;
  readonly #clock: Clock;
  readonly #since: number;
  readonly #inFlight = new Set<Promise<unknown>>();

  constructor(connection: McpConnection, parts: ListKeeperParts) {
    this.connection = connection;
    this.#lists = new ListKeeper(connection, parts);
    this.#clock = parts.clock;
    this.#since = parts.clock.now();
  }

  /** Milliseconds that it has been used. */
  get age(): number {
    return this.#clock.now() - this.#since;
  }

  async run<T>(request: (connection: McpConnection) => Promise<T>): Promise<T> {
    const running = request(this.connection);
    this.#inFlight.add(running);
    try {
      return await running;
    } finally {
      this.#inFlight.delete(running);
    }
  }

  async end(log: Logger): Promise<void> {
    this.#lists[Symbol.dispose]();
    await endConnection(this.connection, log);
  }

  /** Ends it when each request under way has had an outcome of its own, as far as that comes soon. */
  async retire(log: Logger): Promise<void> {
    this.#lists[Symbol.dispose]();
    await endsWithin(Promise.allSettled(this.#inFlight), retirement, this.#clock);
    await endConnection(this.connection, log);
  }
}

const retirement = 2_000;

/** Never rejects. */
export async function endConnection(connection: McpConnection, log: Logger): Promise<void> {
  try {
    await connection[Symbol.asyncDispose]();
  } catch (error) {
    log.warning("The connection to an MCP server could not be ended properly.", { pid: connection.pid, error: errorMessage(error) });
  }
}
