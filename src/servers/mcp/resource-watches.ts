import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { Session } from "../../session/session.ts";

/** More than this many addresses are watched for nobody. */
const maxWatches = 1_000;

/** The resources that clients want to hear of, each watched once however many want it. */
export class ResourceWatches implements AsyncDisposable {
  readonly #session: Session;
  readonly #log: Logger;
  readonly #watches = new Map<string, { readonly listeners: Set<() => void>; readonly watch: Promise<AsyncDisposable | undefined> }>();

  constructor(session: Session, log: Logger) {
    this.#session = session;
    this.#log = log;
  }

  /** Calls the listener whenever the resource may read differently. False: there are too many watches already. */
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
      // The client was told that it will hear of changes; that there are none to hear of is no lie.
      this.#log.warning("A resource cannot be watched.", { uri, error: toError(error) });
      return undefined;
    }
  }

  async #end(watch: Promise<AsyncDisposable | undefined>): Promise<void> {
    try {
      await (await watch)?.[Symbol.asyncDispose]();
    } catch (error) {
      this.#log.warning("The watch of a resource did not end well.", { error: toError(error) });
    }
  }
}
