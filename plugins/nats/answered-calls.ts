import type { ServedCall } from "./served-call.ts";

const keptMs = 120_000;
const maxKept = 10_000;

/**
 * The calls that a worker runs, and for two minutes those that may be repeated and are over: a repetition gets the first answer, and the tool
 * does not run again.
 */
export class AnsweredCalls {
  readonly #calls = new Map<string, { readonly call: ServedCall; over?: number }>();
  #running = 0;

  get running(): number {
    return this.#running;
  }

  get(id: string): ServedCall | undefined {
    this.#forget();
    return this.#calls.get(id)?.call;
  }

  begin(id: string, call: ServedCall): void {
    this.#calls.set(id, { call });
    this.#running++;
  }

  end(id: string, isKept: boolean): void {
    const entry = this.#calls.get(id);
    if (entry === undefined) return;
    this.#running--;
    this.#calls.delete(id);
    // Again at the end, so that the oldest is first.
    if (isKept) this.#calls.set(id, { call: entry.call, over: performance.now() });
  }

  *open(): Iterable<ServedCall> {
    for (const { call, over } of this.#calls.values()) if (over === undefined) yield call;
  }

  #forget(): void {
    const oldest = performance.now() - keptMs;
    let surplus = this.#calls.size - this.#running - maxKept;
    for (const [id, { over }] of this.#calls) {
      if (over === undefined) continue;
      if (over > oldest && surplus <= 0) return;
      surplus--;
      this.#calls.delete(id);
    }
  }
}
