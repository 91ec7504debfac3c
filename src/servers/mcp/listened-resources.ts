import { isPlainRecord } from "../../base/read-fields.ts";
import type { ResourceWatches } from "./resource-watches.ts";

/**
 * The resources that open `subscriptions/listen` requests name, each told of once however many name it: whom a change is
 * for is sorted out by the SDK, which knows who listens and not what happens to resources.
 */
export class ListenedResources {
  readonly #watches: ResourceWatches;
  readonly #tell: (uri: string) => void;
  readonly #counts = new Map<string, { count: number; readonly listener: () => void }>();

  constructor(watches: ResourceWatches, tell: (uri: string) => void) {
    this.#watches = watches;
    this.#tell = tell;
  }

  /** Watches what a message names, until that is disposed of. Undefined: it names nothing. */
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
      const listener = (): void => this.#tell(uri);
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
  if (!isPlainRecord(message) || message["method"] !== "subscriptions/listen" || !isPlainRecord(message["params"])) return [];
  const filter = message["params"]["notifications"];
  const uris = isPlainRecord(filter) ? filter["resourceSubscriptions"] : undefined;
  return Array.isArray(uris) ? [...new Set(uris.filter((uri): uri is string => typeof uri === "string"))] : [];
}
