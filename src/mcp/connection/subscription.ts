import type { Client, McpSubscription, SubscriptionFilter } from "@modelcontextprotocol/client";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";

export interface SubscriptionOptions {
  readonly serverName: string;
  readonly log: Logger;
  /** Hears that the stream was interrupted and is there again: what happened in between was not told. */
  readonly onResumed: () => void;
}

const shortestPause = 1000;
const longestPause = 30_000;

/**
 * One `subscriptions/listen` stream of the stateless protocol, opened anew when the server ends it, until it is disposed
 * of. A server that refuses the first one is not asked again.
 */
export class Subscription implements AsyncDisposable {
  readonly #client: Client;
  readonly #filter: SubscriptionFilter;
  readonly #options: SubscriptionOptions;
  #stream: McpSubscription | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pause = shortestPause;
  #isOver = false;

  constructor(client: Client, filter: SubscriptionFilter, options: SubscriptionOptions) {
    this.#client = client;
    this.#filter = filter;
    this.#options = options;
  }

  /** Rejects when the server does not take it. */
  async open(): Promise<void> {
    const stream = await this.#client.listen(this.#filter);
    if (this.#isOver) return await stream.close();
    this.#stream = stream;
    void stream.closed.then((cause) => {
      if (cause !== "local") this.#openLater();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#timer);
    await this.#stream?.close();
  }

  #openLater(): void {
    this.#stream = undefined;
    if (this.#isOver || this.#client.transport === undefined) return;
    this.#timer = setTimeout(() => void this.#openAgain(), this.#pause);
    // Nobody waits for it: it does not keep the process alive.
    this.#timer.unref();
    this.#pause = Math.min(this.#pause * 2, longestPause);
  }

  async #openAgain(): Promise<void> {
    try {
      await this.open();
      this.#pause = shortestPause;
      this.#options.onResumed();
    } catch (error) {
      this.#options.log.debug(`The MCP server ${this.#options.serverName} does not report changes at present: ${errorMessage(error)}`);
      this.#openLater();
    }
  }
}
