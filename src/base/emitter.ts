import { toError } from "./errors.ts";

type Listener<T> = (value: T) => void;

/**
 * Typed events. Listeners run synchronously in the order they were added. An error of a listener is passed to `onError` and
 * does not affect the others.
 */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>();
  readonly #onError: (error: Error, type: keyof Events) => void;

  constructor(onError: (error: Error, type: keyof Events) => void) {
    this.#onError = onError;
  }

  on<K extends keyof Events>(type: K, listener: Listener<Events[K]>): Disposable {
    // A wrapper, so that adding a function twice creates two independent listeners.
    const own: Listener<Events[K]> = (value) => listener(value);
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(own as Listener<never>));
    return { [Symbol.dispose]: () => void listeners.delete(own as Listener<never>) };
  }

  has(type: keyof Events): boolean {
    return (this.#listeners.get(type)?.size ?? 0) > 0;
  }

  emit<K extends keyof Events>(type: K, value: Events[K]): void {
    for (const listener of [...(this.#listeners.get(type) ?? [])] as Listener<Events[K]>[]) {
      try {
        listener(value);
      } catch (error) {
        this.#onError(toError(error), type);
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}

/** Emits `changed` once for all changes before the next microtask. */
export class CoalescedEmitter extends Emitter<{ changed: undefined }> {
  #isDue = false;

  touch(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.emit("changed", undefined);
    });
  }
}

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
