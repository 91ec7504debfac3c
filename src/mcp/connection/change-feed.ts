import type { Client, SubscriptionFilter } from "@modelcontextprotocol/client";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import type { ProtocolEra, ServerList } from "./connection.ts";
import { toConnectionError } from "./connection-errors.ts";
import { ListChanges } from "./list-changes.ts";
import { ResourceWatches } from "./resource-watches.ts";
import type { Sdk } from "./sdk.ts";
import { Subscription } from "./subscription.ts";

type Json = Readonly<Record<string, unknown>>;

export interface ChangeFeedParts {
  readonly sdk: Sdk;
  readonly serverName: string;
  readonly client: Client;
  readonly era: ProtocolEra;
  readonly capabilities: Json;
  readonly log: Logger;
  readonly request: (method: string, params: Json) => Promise<Json>;
}

const lists = ["tools", "prompts", "resources"] as const;

/** What a server tells of its changes, in either era: unasked in the old one, on streams that are asked for in the new. */
export class ChangeFeed implements AsyncDisposable {
  readonly #parts: ChangeFeedParts;
  readonly #changes = new ListChanges();
  readonly #watches: ResourceWatches;
  #subscription: Subscription | undefined;
  #isOver = false;

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts;
    this.#watches = new ResourceWatches((uri) => this.#subscribe(uri));
    for (const list of lists) parts.client.setNotificationHandler(`notifications/${list}/list_changed`, () => this.#changes.announce(list));
    parts.client.setNotificationHandler("notifications/resources/updated", ({ params }) => this.#watches.announce(params.uri));
  }

  onListChanged(listener: (list: ServerList) => void): Disposable {
    if (this.#parts.era === "modern" && this.#subscription === undefined && !this.#isOver) this.#subscribeToLists();
    return this.#changes.add(listener);
  }

  watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    return this.#watches.add(uri, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#changes[Symbol.dispose]();
    await this.#watches.close();
    await this.#subscription?.[Symbol.asyncDispose]();
  }

  #subscribeToLists(): void {
    const offered = lists.filter((list) => {
      const capability = this.#parts.capabilities[list];
      return isPlainRecord(capability) && capability["listChanged"] === true;
    });
    if (offered.length === 0) return;
    const filter: SubscriptionFilter = Object.fromEntries(offered.map((list) => [`${list}ListChanged`, true]));
    this.#subscription = this.#create(filter, () => {
      for (const list of offered) this.#changes.announce(list);
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
