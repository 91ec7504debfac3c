import { type Signal, signal } from "@preact/signals";

/**
 * The newest entries of a stream. The array is the same while it grows, since a copy of 100,000 entries for each message would cost
 * more than all the rest: `version` is what changes, and what a view has to read.
 */
export class BoundedList<Entry> {
  readonly version: Signal<number> = signal(0);
  readonly #limit: number;
  #entries: Entry[] = [];
  #dropped = 0;
  #isChanged = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** How many were dropped since the list was made or replaced. */
  get dropped(): number {
    return this.#dropped;
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
    this.#isChanged = true;
    // A tenth at once, so that a full list does not move all its entries for each new one.
    if (this.#entries.length <= this.#limit * 1.1) return;
    const surplus = this.#entries.length - this.#limit;
    this.#entries.splice(0, surplus);
    this.#dropped += surplus;
  }

  replace(entries: readonly Entry[]): void {
    this.#entries = entries.slice(-this.#limit);
    this.#dropped = entries.length - this.#entries.length;
    this.#isChanged = true;
    this.publish();
  }

  /** Lets views know of what was added since the last time. */
  publish(): void {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    this.version.value++;
  }
}
