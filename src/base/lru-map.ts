/** A map of limited size: an insertion beyond `maxSize` drops the entry that was not used for the longest time. */
export class LruMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    // Maps keep the order of insertion, so the first entry is always the least recently used.
    if (value !== undefined && this.#entries.delete(key)) this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#maxSize && oldest.done !== true) this.#entries.delete(oldest.value);
  }

  /** The value of a key, created when it is missing. */
  getOrCreate(key: K, create: () => V): V {
    const value = this.#entries.get(key) ?? create();
    this.set(key, value);
    return value;
  }

  clear(): void {
    this.#entries.clear();
  }
}
