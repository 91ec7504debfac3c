import { Emitter } from "../base/emitter.ts";
import { SnapshotStore } from "../base/snapshot-store.ts";
import { type FolderNews, toSkillsChange } from "./folder-news.ts";
import type { SkillsChange, SkillsSnapshot } from "./skill.ts";

/** Holds the snapshot that everybody reads, and tells what became different. */
export class Publisher {
  readonly #store: SnapshotStore<SkillsSnapshot>;
  readonly #events: Emitter<{ change: SkillsChange }>;
  readonly #take: () => SkillsSnapshot;
  #isDirty = false;

  /** `take` makes a snapshot of what is now. */
  constructor(take: () => SkillsSnapshot, onError: (error: Error) => void) {
    this.#take = take;
    this.#store = new SnapshotStore<SkillsSnapshot>({ roots: new Map(), folders: new Map() }, onError);
    this.#events = new Emitter(onError);
  }

  get snapshot(): SkillsSnapshot {
    return this.#store.current;
  }

  subscribe(listener: (snapshot: SkillsSnapshot) => void): Disposable {
    return this.#store.subscribe(listener);
  }

  onChange(listener: (change: SkillsChange) => void): Disposable {
    return this.#events.on("change", listener);
  }

  /** Something is different from what was published. */
  touch(): void {
    this.#isDirty = true;
  }

  publish(): void {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#store.publish(this.#take());
  }

  /** Publishes, then tells. */
  announce(news: readonly FolderNews[]): void {
    this.publish();
    const change = toSkillsChange(news);
    if (change !== undefined) this.#events.emit("change", change);
  }

  close(): void {
    this.#events.clear();
  }
}
