import { isDeepStrictEqual } from "node:util";
import { HostError, toError } from "../../base/errors.ts";
import type { Clock } from "./clock.ts";

type Json = Readonly<Record<string, unknown>>;

export interface LaneParts {
  readonly clock: Clock;
  fetch(): Promise<readonly Json[]>;
  /** After each fetch; the error of one that failed. */
  fetched(error: Error | undefined): void;
  /** What follows a fetch failed. */
  onError(error: Error): void;
}

/** Announcements that come closer to each other than this are one. */
const coalesceMs = 50;
/** A server that keeps announcing changes that are none is asked less and less often, down to this. */
const slowestMs = 5_000;
const retryMs: readonly number[] = [1_000, 4_000, 15_000];
/** More than any model or person can use. */
const maxItems = 10_000;

/**
 * One list of a server, kept up to date: fetched once at a time, and once more when a change was announced meanwhile. A
 * fetch that fails leaves the list as it was and is tried again a few times.
 */
export class ListLane implements Disposable {
  readonly #parts: LaneParts;
  #items: readonly Json[];
  #state: "idle" | "waiting" | "fetching" | "over" = "idle";
  #isStale = false;
  #timer: Disposable | undefined;
  #retries = 0;
  #pause = coalesceMs;
  #hasAnswered = false;

  constructor(items: readonly Json[], parts: LaneParts) {
    this.#items = items;
    this.#parts = parts;
  }

  /** The same array until its content changes. */
  get items(): readonly Json[] {
    return this.#items;
  }

  /** Whether the first fetch is over, however it went. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  get isFetching(): boolean {
    return this.#state === "fetching";
  }

  /** Now. */
  fetch(): void {
    this.#timer?.[Symbol.dispose]();
    this.#isStale = false;
    this.#state = "fetching";
    this.#run().catch((error: unknown) => this.#parts.onError(toError(error)));
  }

  /** The server says that it changed. */
  announce(): void {
    this.#retries = 0;
    if (this.#state === "fetching") this.#isStale = true;
    else if (this.#state === "idle") this.#fetchIn(this.#pause);
  }

  [Symbol.dispose](): void {
    this.#state = "over";
    this.#timer?.[Symbol.dispose]();
  }

  #fetchIn(milliseconds: number): void {
    this.#state = "waiting";
    this.#timer = this.#parts.clock.after(milliseconds, () => this.fetch());
  }

  async #run(): Promise<void> {
    const error = await this.#attempt();
    if (this.#isOver()) return;
    this.#hasAnswered = true;
    this.#state = "idle";
    this.#planNext(error);
    this.#parts.fetched(error);
  }

  async #attempt(): Promise<Error | undefined> {
    try {
      const found = await this.#parts.fetch();
      if (!this.#isOver()) this.#take(found);
      return found.length > maxItems
        ? new HostError("MCP_LIST_TOO_LONG", `Only the first ${maxItems} of ${found.length} are used.`)
        : undefined;
    } catch (error) {
      return toError(error);
    }
  }

  #take(found: readonly Json[]): void {
    const items = found.slice(0, maxItems);
    const isSame = isDeepStrictEqual(items, this.#items);
    // Asked for because of an announcement, and nothing had changed.
    this.#pause = isSame && this.#hasAnswered ? Math.min(this.#pause * 2, slowestMs) : coalesceMs;
    if (!isSame) this.#items = Object.freeze(items);
  }

  #planNext(error: Error | undefined): void {
    const retry = error === undefined || isFinal(error) ? undefined : retryMs[this.#retries];
    if (error === undefined) this.#retries = 0;
    if (this.#isStale) this.#fetchIn(this.#pause);
    else if (retry !== undefined) {
      this.#retries += 1;
      this.#fetchIn(retry);
    }
  }

  /** Asked through a method: the state changes while something is awaited, which the compiler cannot know. */
  #isOver(): boolean {
    return this.#state === "over";
  }
}

// Asking again gives the same; and of a connection that is over, or not allowed, others take care.
function isFinal(error: Error): boolean {
  return error instanceof HostError && ["MCP_LIST_TOO_LONG", "MCP_CLOSED", "MCP_NOT_RUN", "MCP_UNAUTHORIZED"].includes(error.code);
}
