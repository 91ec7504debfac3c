import type { Deadlines, Timed } from "../../base/deadlines.ts";
import type { Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { ReachFound } from "../permissions/permission-reach.ts";
import type { TracedStep } from "../telemetry.ts";
import type { AgentScope, OutcomeCode, PreparedCall, ToolCall } from "./tool-call.ts";

export type InterruptReason = "timeout" | "closed" | "cancelled";

/** What a wait comes to when the call is ended from outside: by its deadline, its caller or its session. */
export class Interruption {
  readonly reason: InterruptReason;

  constructor(reason: InterruptReason) {
    this.reason = reason;
  }
}

/** What the calls of one session share. */
export interface CallRegistry {
  readonly deadlines: Deadlines;
  /** The calls that wait for something. */
  readonly waiting: Set<RunningCall>;
}

/** The result of a call, before it was announced. */
export interface SettledCall {
  readonly code: OutcomeCode;
  readonly result: ToolResult;
}

/**
 * One call on its way through the pipeline: what is known of it so far, its clock, and the one wait that it is in.
 * Where nothing is asynchronous, neither a promise nor a signal nor a timer is made for it.
 */
export class RunningCall implements PreparedCall, Timed {
  readonly call: ToolCall;
  readonly agent: AgentScope;
  /** The catalog that this message's calls see, whatever is published meanwhile. */
  readonly catalog: ToolCatalog;
  readonly parent: RunningCall | undefined;
  readonly depth: number;

  kind: PreparedCall["kind"] = "run";
  isTaken = false;
  /** Its handler has answered, or the call was ended from outside. */
  isOver = false;
  tool: Tool | undefined = undefined;
  /** Keeps the tool's generation while the call waits to run. */
  held: Disposable | undefined = undefined;
  context: ToolContext | undefined = undefined;
  /** As the model gave them, or a hook rewrote them. */
  args: unknown;
  /** As the handler gets them: checked, with defaults. */
  value: unknown = undefined;
  /** What rules know the call to reach, and what its program runs with; undefined: none is about that. */
  reach: ReachFound | undefined = undefined;
  /** What a hook decided about permission, where one did. */
  hookDecision: "allow" | "ask" | undefined = undefined;
  hookReason: string | undefined = undefined;
  /** What hooks want the model to read after the result. */
  messages: string[] | undefined = undefined;
  /** What hooks want the model to read at the end of the result. */
  guidance: string[] | undefined = undefined;
  /** Set when it ended without running. */
  settlement: SettledCall | undefined = undefined;
  /** Settles when it is decided whether the call runs; never rejects. */
  decided: Promise<void> | undefined = undefined;
  /** Its span, while tracing is on. */
  trace: TracedStep | undefined = undefined;

  readonly #given: unknown;
  readonly #life: CallRegistry;
  #children: Set<RunningCall> | undefined;
  #controller: AbortController | undefined;
  #interruption: Interruption | undefined;
  #onInterrupt: ((interruption: Interruption) => void) | undefined;

  #timeout = Number.POSITIVE_INFINITY;
  #left = Number.POSITIVE_INFINITY;
  #since = 0;
  #pauses = 0;
  #isTicking = false;

  constructor(call: ToolCall, agent: AgentScope, catalog: ToolCatalog, parent: RunningCall | undefined, life: CallRegistry) {
    this.call = call;
    this.agent = agent;
    this.catalog = catalog;
    this.parent = parent;
    this.depth = parent === undefined ? 0 : parent.depth + 1;
    this.#given = call.arguments ?? {};
    this.args = this.#given;
    this.#life = life;
  }

  /** Whether a hook gave it other arguments than the model. */
  get isRewritten(): boolean {
    return this.args !== this.#given;
  }

  get timeout(): number {
    return this.#timeout;
  }

  /** Fires when the deadline passes, the call is cancelled or the session ends; not when the call is over. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#interruption !== undefined) this.#abort(this.#interruption);
    return this.#controller.signal;
  }

  /** Why the call was ended from outside; undefined while it was not. */
  get interrupted(): InterruptReason | undefined {
    return this.#interruption?.reason;
  }

  /** Ends the wait that the call is in, and all later ones unless it is the deadline: what follows one is still done. */
  interrupt(reason: InterruptReason): void {
    if (this.#interruption !== undefined && (reason === "timeout" || this.#interruption.reason !== "timeout")) return;
    const interruption = new Interruption(reason);
    this.#interruption = interruption;
    for (const child of this.#children ?? []) child.interrupt(reason === "closed" ? "closed" : "cancelled");
    if (this.#controller !== undefined) this.#abort(interruption);
    this.#onInterrupt?.(interruption);
  }

  /** Waits for a promise, or until the call is ended from outside: then whatever the promise comes to is dropped. */
  wait<T>(promise: PromiseLike<T>): Promise<T | Interruption> {
    return new Promise((resolve, reject) => {
      const end = this.#beginWait(resolve);
      promise.then(
        (value) => {
          end();
          resolve(value);
        },
        (error) => {
          end();
          reject(error);
        },
      );
    });
  }

  #beginWait(resolve: (interruption: Interruption) => void): () => void {
    const { signal } = this.agent;
    const onAbort = (): void => this.interrupt("cancelled");
    const end = (): void => {
      signal?.removeEventListener("abort", onAbort);
      if (this.#onInterrupt !== interrupted) return;
      this.#onInterrupt = undefined;
      this.#life.waiting.delete(this);
      if (this.parent !== undefined) this.parent.#children?.delete(this);
    };
    const interrupted = (interruption: Interruption): void => {
      end();
      resolve(interruption);
    };
    this.#onInterrupt = interrupted;
    this.#life.waiting.add(this);
    if (this.parent !== undefined) this.parent.#adopt(this);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) this.interrupt("cancelled");
    const over = this.#interruption;
    if (over !== undefined && over.reason !== "timeout") interrupted(over);
    return end;
  }

  #adopt(child: RunningCall): void {
    this.#children ??= new Set();
    this.#children.add(child);
  }

  /** When the deadline is, while the clock runs. */
  get dueAt(): number {
    return this.#since + this.#left;
  }

  expire(): void {
    this.interrupt("timeout");
  }

  /** Starts the clock. Nothing watches it before `watchClock`: a handler that answers at once needs no watching. */
  startClock(timeout: number): void {
    this.#timeout = timeout;
    this.#left = timeout;
    this.#isTicking = timeout !== Number.POSITIVE_INFINITY;
    if (this.#isTicking) this.#since = performance.now();
  }

  watchClock(): void {
    if (this.#isTicking && this.#pauses === 0) this.#life.deadlines.add(this);
  }

  stopClock(): void {
    this.#isTicking = false;
    this.#life.deadlines.delete(this);
  }

  /** A question is open: the clock of this call stops, and so do those of the calls that wait for it. */
  pause(): void {
    this.parent?.pause();
    if (this.#pauses++ > 0 || !this.#isTicking) return;
    this.#left -= performance.now() - this.#since;
    this.#life.deadlines.delete(this);
  }

  resume(): void {
    this.parent?.resume();
    if (--this.#pauses > 0 || !this.#isTicking) return;
    this.#since = performance.now();
    this.watchClock();
  }

  /** Progress: the deadline starts again, also for a call that waits for this one. */
  restartClock(): void {
    this.parent?.restartClock();
    if (!this.#isTicking) return;
    this.#left = this.#timeout;
    this.#since = performance.now();
  }

  addMessage(text: string): void {
    this.messages ??= [];
    this.messages.push(text);
  }

  addGuidance(text: string): void {
    this.guidance ??= [];
    this.guidance.push(text);
  }

  #abort({ reason }: Interruption): void {
    if (this.#controller === undefined || this.#controller.signal.aborted) return;
    const name = reason === "timeout" ? "TimeoutError" : "AbortError";
    this.#controller.abort(new DOMException(`The call of tool '${this.call.name}' was ended: ${reason}.`, name));
  }
}
