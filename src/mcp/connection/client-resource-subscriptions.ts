import { HostError } from "../../base/errors.ts";
import { Lifetime } from "../../base/lifetime.ts";

/** Opens the one subscription that all listeners of a resource share. */
export type OpenWatch = (uri: string) => Promise<AsyncDisposable>;

interface Watch {
  readonly listeners: Set<() => void>;
  readonly opened: Promise<AsyncDisposable>;
}

/** Listeners of a server's resources. A resource is subscribed to once, for as long as it has listeners. */
export class ClientResourceSubscriptions {
  readonly #open: OpenWatch;
  readonly #watches = new Map<string, Watch>();
  readonly #life = new Lifetime(() => new HostError("MCP_CLOSED", "The connection to the MCP server is closed."));

  constructor(open: OpenWatch) {
    this.#open = open;
  }

  async add(uri: string, listener: () => void): Promise<AsyncDisposable> {
    const watch = this.#watches.get(uri) ?? this.#create(uri);
    const own = (): void => listener();
    watch.listeners.add(own);
    try {
      await watch.opened;
    } catch (error) {
      // The next listener subscribes again.
      this.#forget(uri, watch);
      throw error;
    }
    return { [Symbol.asyncDispose]: () => this.#remove(uri, watch, own) };
  }

  announce(uri: string): void {
    for (const listener of [...(this.#watches.get(uri)?.listeners ?? [])]) listener();
  }

  /** Ends all subscriptions with the connection; one that is still being opened is ended as soon as it is open. */
  async close(): Promise<void> {
    this.#watches.clear();
    await this.#life.end();
  }

  #create(uri: string): Watch {
    const watch: Watch = { listeners: new Set(), opened: this.#life.open(() => this.#open(uri), endWatch) };
    this.#watches.set(uri, watch);
    return watch;
  }

  async #remove(uri: string, watch: Watch, listener: () => void): Promise<void> {
    watch.listeners.delete(listener);
    if (watch.listeners.size > 0 || this.#watches.get(uri) !== watch) return;
    this.#forget(uri, watch);
    await endWatch(await watch.opened);
  }

  #forget(uri: string, watch: Watch): void {
    if (this.#watches.get(uri) === watch) this.#watches.delete(uri);
  }
}

async function endWatch(subscription: AsyncDisposable): Promise<void> {
  await subscription[Symbol.asyncDispose]();
}
