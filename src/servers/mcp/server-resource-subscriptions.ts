import { toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import type { Session } from "../../session/session.ts";

/**
 * The resources that open `subscriptions/listen` requests name. Each change is passed on once, even when several requests name
 * the resource: the SDK knows the listeners and sends it to them.
 */
export class ListenedResourceSubscriptions {
  readonly #watches: ServerResourceSubscriptions;
  readonly #notify: (uri: string) => void;
  readonly #counts = new Map<string, { count: number; readonly listener: () => void }>();

  constructor(watches: ServerResourceSubscriptions, notify: (uri: string) => void) {
    this.#watches = watches;
    this.#notify = notify;
  }

  /** Subscribes to the resources that a message names, until the result is disposed of. Undefined: it names none. */
  add(message: unknown): Disposable | undefined {
    const uris = namedIn(message).filter((uri) => this.#addOne(uri));
    if (uris.length === 0) return undefined;
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (!isOver) for (const uri of uris) this.#removeOne(uri);
        isOver = true;
      },
    };
  }

  #addOne(uri: string): boolean {
    const known = this.#counts.get(uri);
    if (known !== undefined) known.count++;
    else {
      const listener = (): void => this.#notify(uri);
      if (!this.#watches.add(uri, listener)) return false;
      this.#counts.set(uri, { count: 1, listener });
    }
    return true;
  }

  #removeOne(uri: string): void {
    const known = this.#counts.get(uri);
    if (known === undefined || --known.count > 0) return;
    this.#counts.delete(uri);
    this.#watches.remove(uri, known.listener);
  }
}

function namedIn(message: unknown): readonly string[] {
  if (!isRecord(message) || message["method"] !== "subscriptions/listen" || !isRecord(message["params"])) return [];
  const filter = message["params"]["notifications"];
  const uris = isRecord(filter) ? filter["resourceSubscriptions"] : undefined;
  return Array.isArray(uris) ? [...new Set(uris.filter((uri): uri is string => typeof uri === "string"))] : [];
}

/** The limit of watched resources. */
const maxWatches = 1_000;

/** The resources to which clients have subscribed. Each is watched once, even for several clients. */
export class ServerResourceSubscriptions implements AsyncDisposable {
  readonly #session: Session;
  readonly #log: Logger;
  readonly #watches = new Map<string, { readonly listeners: Set<() => void>; readonly watch: Promise<AsyncDisposable | undefined> }>();

  constructor(session: Session, log: Logger) {
    this.#session = session;
    this.#log = log;
  }

  /** Calls the listener when the content of a resource may have changed. False: there are too many watches. */
  add(uri: string, listener: () => void): boolean {
    const known = this.#watches.get(uri);
    if (known !== undefined) known.listeners.add(listener);
    else if (this.#watches.size >= maxWatches) return false;
    else {
      const listeners = new Set([listener]);
      const watch = this.#watch(uri, () => {
        for (const each of [...listeners]) each();
      });
      this.#watches.set(uri, { listeners, watch });
    }
    return true;
  }

  remove(uri: string, listener: () => void): void {
    const known = this.#watches.get(uri);
    if (known === undefined || !known.listeners.delete(listener) || known.listeners.size > 0) return;
    this.#watches.delete(uri);
    void this.#end(known.watch);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#watches.values()];
    this.#watches.clear();
    await Promise.all(all.map(({ watch }) => this.#end(watch)));
  }

  async #watch(uri: string, changed: () => void): Promise<AsyncDisposable | undefined> {
    try {
      return await this.#session.watchResource(uri, changed);
    } catch (error) {
      // The client's subscription stays valid, and never gets an update.
      this.#log.warning("A resource could not be subscribed to.", { uri, error: toError(error) });
      return undefined;
    }
  }

  async #end(watch: Promise<AsyncDisposable | undefined>): Promise<void> {
    try {
      await (await watch)?.[Symbol.asyncDispose]();
    } catch (error) {
      this.#log.warning("A resource subscription could not be ended properly.", { error: toError(error) });
    }
  }
}
