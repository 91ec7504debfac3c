import type { Resource, ResourceTemplate } from "../../tools/resource.ts";

export interface ResourceWatchOptions {
  readonly uri: string;
  /** What is at the address now. */
  readonly find: () => Resource | ResourceTemplate | undefined;
  /** Hears that a read may give something else: because of the resource, or because another one or none is there now. */
  readonly listener: () => void;
  readonly onError: (error: unknown) => void;
}

/** A watch on an address, whatever stands there: it goes over to what takes the place of a resource. */
export class ResourceWatch implements AsyncDisposable {
  readonly #options: ResourceWatchOptions;
  #source: Resource | ResourceTemplate | undefined;
  #end: (() => Promise<void>) | undefined;
  #isDue = false;
  #isOver = false;
  /** Counts the subscriptions that were begun: only the latest is kept. */
  #turn = 0;

  constructor(options: ResourceWatchOptions) {
    this.#options = options;
  }

  /** Settles when changes are heard from now on. */
  async start(): Promise<void> {
    this.#source = this.#options.find();
    await this.#begin();
  }

  /** Looks whether something else is there now. */
  check(): void {
    if (this.#isOver) return;
    const before = this.#source;
    this.#source = this.#options.find();
    if (this.#source === before) return;
    if (this.#source?.revision !== before?.revision) this.#notify();
    this.#begin().catch((error) => this.#options.onError(error));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#stop();
  }

  async #begin(): Promise<void> {
    const source = this.#source;
    const turn = ++this.#turn;
    await this.#stop();
    // A resource knows itself by one spelling of its address.
    const uri = source !== undefined && "uri" in source.definition ? source.definition.uri : this.#options.uri;
    const watch = await source?.watch?.(uri, () => {
      if (this.#source === source) this.#notify();
    });
    if (watch === undefined) return;
    const end = async (): Promise<void> =>
      void (await (Symbol.asyncDispose in watch ? watch[Symbol.asyncDispose]() : watch[Symbol.dispose]()));
    // Meanwhile the watch may have ended, or moved to another resource, even there and back.
    if (this.#isOver || turn !== this.#turn) await end();
    else this.#end = end;
  }

  async #stop(): Promise<void> {
    const end = this.#end;
    this.#end = undefined;
    try {
      await end?.();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  /** Once for all that happens at the same time: a file changes, and with it what is listed. */
  #notify(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (!this.#isOver) this.#options.listener();
    });
  }
}
