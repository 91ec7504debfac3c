import type { ServedCall } from "./served-call.ts";

const keptMs = 120_000;
const maxKept = 10_000;

/**
 * The calls that a worker runs, and for two minutes those that may be repeated and are over: a repetition gets the first answer, and the tool
 * does not run again.
 */
export class AnsweredCalls {
  readonly #open = new Map<string, ServedCall>();
  /** The oldest first. */
  readonly #over = new Map<string, { readonly call: ServedCall; readonly since: number }>();

  get running(): number {
    return this.#open.size;
  }

  get(id: string): ServedCall | undefined {
    const open = this.#open.get(id);
    if (open !== undefined || this.#over.size === 0) return open;
    this.#forget();
    return this.#over.get(id)?.call;
  }

  begin(id: string, call: ServedCall): void {
    this.#open.set(id, call);
  }

  end(id: string, isKept: boolean): void {
    const call = this.#open.get(id);
    if (call === undefined) return;
    this.#open.delete(id);
    if (isKept) this.#over.set(id, { call, since: performance.now() });
  }

  open(): Iterable<ServedCall> {
    return this.#open.values();
  }

  #forget(): void {
    const oldest = performance.now() - keptMs;
    for (const [id, { since }] of this.#over) {
      if (since > oldest && this.#over.size <= maxKept) return;
      this.#over.delete(id);
    }
  }
}
