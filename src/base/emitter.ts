import { toError } from "./errors.ts";

export type Listener<T> = (value: T) => void;

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
