import type { ServerList } from "./connection.ts";

// A server that changes ten tools says so ten times.
const together = 50;

/** Tells listeners that lists changed: what is announced close together, once. */
export class ListChanges implements Disposable {
  readonly #listeners = new Set<(list: ServerList) => void>();
  readonly #timers = new Map<ServerList, NodeJS.Timeout>();

  add(listener: (list: ServerList) => void): Disposable {
    // A wrapper of our own, so that adding one function twice gives two listeners with a life each.
    const own = (list: ServerList): void => listener(list);
    this.#listeners.add(own);
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }

  announce(list: ServerList): void {
    if (this.#timers.has(list)) return;
    this.#timers.set(
      list,
      setTimeout(() => {
        this.#timers.delete(list);
        for (const listener of [...this.#listeners]) listener(list);
      }, together),
    );
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#listeners.clear();
  }
}
