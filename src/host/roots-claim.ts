import type { RootsLease, SkillStore } from "../skills/store/skill-store.ts";

/** How long a claim that may be late waits, so that whoever made the session is answered first. */
const latestMs = 20;

/** Keeps the skill folders that one session names loaded. */
export class RootsClaim implements Disposable {
  readonly #store: SkillStore;
  #isLate: boolean;
  #lease: RootsLease | undefined;
  #waiting: readonly string[] | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `isLate`: nothing is loaded before it is needed, or a moment has passed. */
  constructor(store: SkillStore, isLate: boolean) {
    this.#store = store;
    this.#isLate = isLate;
  }

  /** Claims these folders in the place of those before. */
  change(roots: readonly string[]): void {
    this.#waiting = roots;
    if (!this.#isLate || roots.length === 0) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), latestMs).unref();
  }

  /** Settles when they are loaded. */
  get ready(): Promise<void> | undefined {
    this.#begin();
    return this.#lease?.ready;
  }

  [Symbol.dispose](): void {
    this.#waiting = undefined;
    clearTimeout(this.#timer);
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
  }

  #begin(): void {
    const roots = this.#waiting;
    if (roots === undefined) return;
    if (roots.length > 0) this.#isLate = false;
    this.#waiting = undefined;
    clearTimeout(this.#timer);
    const before = this.#lease;
    // Before the others are let go: what both name stays loaded.
    this.#lease = this.#store.acquire(roots);
    before?.[Symbol.dispose]();
  }
}
