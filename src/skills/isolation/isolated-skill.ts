import { waitFor } from "../../base/wait.ts";
import type { ChildFrame } from "./child-frames.ts";
import type { ChildPlace } from "./child-transport.ts";
import type { ChangeListener } from "./isolated-offers.ts";
import { type ChannelListener, ChildEnded, type ChildRequestOptions, SkillChannel } from "./skill-channel.ts";
import type { SpareChildren } from "./spare-children.ts";

/** A disposer of a module may take this long before its child is ended. */
const disposeMs = 2_000;
const firstPauseMs = 200;
const longestPauseMs = 30_000;

/**
 * The child of one generation of a skill. It starts with the first file, starts again for the next call when it has ended, and ends with the
 * last user. A child that ends again and again is started after growing pauses; calls during a pause fail at once.
 */
export class IsolatedSkill {
  readonly #children: SpareChildren;
  readonly #place: ChildPlace;
  readonly #onEmpty: () => void;
  #channel: Promise<SkillChannel> | undefined;
  #open: SkillChannel | undefined;
  #prepared = new Map<string, Promise<unknown>>();
  readonly #files = new Set<string>();

  #users = 0;
  /** How often a child has ended by itself since the last answer to a call. */
  #ends = 0;
  #pausedUntil = 0;

  readonly #listeners = new Map<number, ChangeListener>();
  #lastListener = 0;
  readonly #reports: ChannelListener = {
    changed: (listener) => this.#listeners.get(listener)?.changed(),
    ended: () => {
      // Not when the skill has ended. Each may start another child.
      if (this.#users > 0) setImmediate(() => [...this.#listeners.values()].forEach((each) => void each.restored()));
    },
  };

  constructor(children: SpareChildren, place: ChildPlace, onEmpty: () => void) {
    this.#children = children;
    this.#place = place;
    this.#onEmpty = onEmpty;
    children.enter(place.folder);
  }

  /** Returns the number with which the child reports changes to the listener. */
  listen(listener: ChangeListener): number {
    this.#listeners.set(++this.#lastListener, listener);
    return this.#lastListener;
  }

  forget(listener: number): void {
    this.#listeners.delete(listener);
  }

  retain(): void {
    this.#users++;
  }

  /** Runs the disposers of a file, and ends the child with its last file. */
  async release(key: string): Promise<void> {
    try {
      await this.#unload(key);
    } finally {
      this.#prepared.delete(key);
      // Only now: files that are released at the same time must all run their disposers.
      this.#users--;
      if (this.#users === 0) await this.#close();
    }
  }

  async #unload(key: string): Promise<void> {
    const channel = this.#open;
    if (channel?.isOpen !== true || !this.#prepared.has(key)) return;
    const expired = (): Error => new Error(`A disposer did not end within ${disposeMs} ms, so its child was ended.`);
    try {
      await waitFor(channel.request("unload", { key }), { milliseconds: disposeMs, expired });
    } catch (error) {
      // A child that ended has nothing to dispose of.
      if (!(error instanceof ChildEnded)) throw error;
    }
  }

  async #close(): Promise<void> {
    this.#onEmpty();
    const channel = await this.#channel?.catch(() => undefined);
    await Promise.all([channel?.kill("its skill was unloaded or reloaded"), this.#children.leave(this.#place.folder)]);
  }

  /** Ends a child that does not answer, for example because its module has an endless loop. */
  async interrupt(reason: string): Promise<void> {
    await this.#open?.kill(reason);
  }

  /** Loads a file into the child, once per child, and settles with what it defines. */
  async prepare(key: string, request: ChildFrame): Promise<unknown> {
    const channel = await this.#opened();
    const known = this.#prepared.get(key);
    if (known !== undefined) return known;
    const loading = channel.request("load", { ...request, key });
    this.#prepared.set(key, loading);
    loading.then(
      () => this.#children.want(this.#place, this.#files),
      () => {
        if (this.#prepared.get(key) === loading) this.#prepared.delete(key);
      },
    );
    return loading;
  }

  /** Names files of the skill's code: the next child will run most of them unchanged. */
  uses(files: readonly string[]): void {
    for (const file of files) this.#files.add(file);
  }

  async request(kind: string, data: ChildFrame, options: ChildRequestOptions): Promise<unknown> {
    const channel = await this.#opened();
    try {
      const value = await channel.request(kind, data, options);
      this.#ends = 0;
      return value;
    } catch (error) {
      if (!(error instanceof ChildEnded)) this.#ends = 0;
      throw error;
    }
  }

  #opened(): Promise<SkillChannel> {
    if (this.#channel !== undefined && this.#open?.isOpen !== false) return this.#channel;
    // A child that starts after the last release would never be ended.
    if (this.#users <= 0) return Promise.reject(new Error("The skill of this tool is no longer loaded."));
    if (this.#open !== undefined) this.#pause();
    const wait = this.#pausedUntil - performance.now();
    if (wait > 0) {
      const text = `The isolated code of this skill ended ${this.#ends} times in a row. It is started again in ${Math.ceil(wait)} ms.`;
      return Promise.reject(new Error(text));
    }
    this.#open = undefined;
    this.#prepared = new Map();
    const opening = SkillChannel.open(this.#children.open, this.#place, this.#reports).then((channel) => {
      this.#open = channel;
      return channel;
    });
    this.#channel = opening;
    opening.catch(() => {
      if (this.#channel === opening) this.#channel = undefined;
    });
    return opening;
  }

  /** The first restart is immediate. */
  #pause(): void {
    this.#open = undefined;
    this.#channel = undefined;
    this.#ends++;
    if (this.#ends > 1) this.#pausedUntil = performance.now() + Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#ends - 2));
  }
}
