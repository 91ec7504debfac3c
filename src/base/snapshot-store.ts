import { Emitter } from "./emitter.ts";

/** Holds one immutable value and notifies subscribers when it is replaced. A snapshot that a reader holds never changes. */
export class SnapshotStore<T> {
  #current: T;
  readonly #changed: Emitter<{ changed: T }>;

  constructor(initial: T, onError: (error: Error) => void) {
    this.#current = initial;
    this.#changed = new Emitter(onError);
  }

  get current(): T {
    return this.#current;
  }

  publish(next: T): void {
    if (Object.is(next, this.#current)) return;
    this.#current = next;
    this.#changed.emit("changed", next);
  }

  subscribe(listener: (snapshot: T) => void): Disposable {
    return this.#changed.on("changed", listener);
  }
}
