import type { Client, McpSubscription, SubscriptionFilter } from "@modelcontextprotocol/client";
import { Emitter } from "../../base/emitter.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { Lifetime } from "../../base/lifetime.ts";
import type { Logger } from "../../base/logger.ts";
import type { ProtocolEra, ServerList } from "./connection.ts";
import { toConnectionError } from "./connection-errors.ts";
import type { Sdk } from "./server-link.ts";

interface ChangeFeedParts {
  readonly sdk: Sdk;
  readonly serverName: string;
  readonly client: Client;
  readonly era: ProtocolEra;
  readonly capabilities: Json;
  readonly log: Logger;
  readonly request: (method: string, params: Json) => Promise<Json>;
}

const lists = ["tools", "prompts", "resources"] as const;

/** Changes that a server announces, in either era: unsolicited in the older one, on subscription streams in the newer one. */
export class ChangeFeed implements AsyncDisposable {
  readonly #parts: ChangeFeedParts;
  readonly #changes: Emitter<{ changed: ServerList }>;
  readonly #watches: ClientResourceSubscriptions;
  #subscription: Subscription | undefined;
  #isOver = false;

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts;
    this.#changes = new Emitter((error) => this.#note("announced a change, which a listener failed on", error));
    this.#watches = new ClientResourceSubscriptions((uri) => this.#subscribe(uri));
    for (const list of lists)
      parts.client.setNotificationHandler(`notifications/${list}/list_changed`, () => this.#changes.emit("changed", list));
    parts.client.setNotificationHandler("notifications/resources/updated", ({ params }) => this.#watches.announce(params.uri));
  }

  onListChanged(listener: (list: ServerList) => void): Disposable {
    if (this.#parts.era === "modern" && this.#subscription === undefined && !this.#isOver) this.#subscribeToLists();
    return this.#changes.on("changed", listener);
  }

  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    return this.#watches.add(uri, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#changes.clear();
    await this.#watches.close();
    await this.#subscription?.[Symbol.asyncDispose]();
  }

  #subscribeToLists(): void {
    const offered = lists.filter((list) => {
      const capability = this.#parts.capabilities[list];
      return isRecord(capability) && capability["listChanged"] === true;
    });
    if (offered.length === 0) return;
    const filter: SubscriptionFilter = Object.fromEntries(offered.map((list) => [`${list}ListChanged`, true]));
    this.#subscription = this.#create(filter, () => {
      for (const list of offered) this.#changes.emit("changed", list);
    });
    this.#subscription.open().catch((error: unknown) => this.#note("does not report changes", error));
  }

  async #subscribe(uri: string): Promise<AsyncDisposable> {
    const { era, sdk, serverName, request } = this.#parts;
    if (era === "legacy") {
      await request("resources/subscribe", { uri });
      return { [Symbol.asyncDispose]: () => this.#unsubscribe(uri) };
    }
    const subscription = this.#create({ resourceSubscriptions: [uri] }, () => this.#watches.announce(uri));
    try {
      await subscription.open();
      return subscription;
    } catch (error) {
      throw toConnectionError(error, sdk, serverName);
    }
  }

  async #unsubscribe(uri: string): Promise<void> {
    if (this.#isOver) return;
    try {
      await this.#parts.request("resources/unsubscribe", { uri });
    } catch (error) {
      this.#note("did not end a subscription", error);
    }
  }

  #create(filter: SubscriptionFilter, onResumed: () => void): Subscription {
    const { client, serverName, log } = this.#parts;
    return new Subscription(client, filter, { serverName, log, onResumed });
  }

  #note(what: string, error: unknown): void {
    this.#parts.log.debug(`The MCP server ${this.#parts.serverName} ${what}: ${errorMessage(error)}`);
  }
}

interface SubscriptionOptions {
  readonly serverName: string;
  readonly log: Logger;
  /** Called when the stream was interrupted and is open again: changes in between were not announced. */
  readonly onResumed: () => void;
}

const shortestPause = 1000;
const longestPause = 30_000;

/**
 * One `subscriptions/listen` stream of the stateless protocol. It is reopened when the server ends it, until it is
 * disposed of. A server that refuses the first one is not asked again.
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

  /** Rejects when the server refuses it. */
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
    this.#timer.unref();
    this.#pause = Math.min(this.#pause * 2, longestPause);
  }

  async #openAgain(): Promise<void> {
    try {
      await this.open();
      this.#pause = shortestPause;
      this.#options.onResumed();
    } catch (error) {
      this.#options.log.debug(`The MCP server ${this.#options.serverName} does not currently report changes: ${errorMessage(error)}`);
      this.#openLater();
    }
  }
}

/** Opens the one subscription that all listeners of a resource share. */
type OpenWatch = (uri: string) => Promise<AsyncDisposable>;

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
