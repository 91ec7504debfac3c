import type { McpConnection } from "../connection/connection.ts";

/** Subscriptions to a server's resources that outlive its connections. */
export class LastingSubscriptions {
  readonly #watches = new Set<Watch>();

  /** Rejects when the first subscription fails. */
  async add(uri: string, listener: () => void, connection: McpConnection): Promise<AsyncDisposable> {
    const watch = new Watch(uri, listener);
    await watch.attach(connection);
    this.#watches.add(watch);
    return {
      [Symbol.asyncDispose]: async () => {
        this.#watches.delete(watch);
        await watch.end();
      },
    };
  }

  /** Continues all of them on another connection. Changes in between are unknown, so each listener is called. */
  moveTo(connection: McpConnection): void {
    for (const watch of this.#watches) void watch.move(connection);
  }
}

class Watch {
  readonly #uri: string;
  readonly #listener: () => void;
  #subscription: AsyncDisposable | undefined;
  #connection: McpConnection | undefined;
  #isOver = false;

  constructor(uri: string, listener: () => void) {
    this.#uri = uri;
    this.#listener = listener;
  }

  async attach(connection: McpConnection): Promise<void> {
    this.#connection = connection;
    const subscription = await connection.watchResource(this.#uri, () => {
      if (!this.#isOver && this.#connection === connection) this.#listener();
    });
    if (this.#isOver || this.#connection !== connection) await subscription[Symbol.asyncDispose]();
    else this.#subscription = subscription;
  }

  async move(connection: McpConnection): Promise<void> {
    if (connection === this.#connection) return;
    // The subscription ended with the old connection.
    this.#subscription = undefined;
    try {
      await this.attach(connection);
    } catch {
      // The server may not have the resource any more. The listener is called, and finds out when it reads.
    }
    if (!this.#isOver) this.#listener();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#subscription?.[Symbol.asyncDispose]();
  }
}
