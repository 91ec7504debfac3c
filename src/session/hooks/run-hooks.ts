import { randomUUID } from "node:crypto";
import { Deadlines, type Timed } from "../../base/deadlines.ts";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { isThenable } from "../../base/wait.ts";
import type { SessionEventData } from "../history/event-types.ts";
import type { SessionContext } from "../session-context.ts";
import { gateKinds, type Hook, type HookFacts, type HookInput, type HookKind, type HookKinds } from "./hook-kinds.ts";
import { type Fold, type FoldedKind, folds, type HookResults, readHookOutput } from "./hook-results.ts";

/** What running one hook came to. */
export type HookRun<K extends HookKind> =
  | { readonly kind: "answered"; readonly output: HookKinds[K]["output"] }
  | { readonly kind: "failed" };

export interface HookOptions {
  /** The sub-agent on whose behalf it runs; the hook then receives it as its session. */
  readonly agentId?: string | undefined;
  /** Ends the wait for a hook, as if it had failed, and runs none after it. Nothing is logged about that. */
  readonly signal?: AbortSignal | undefined;
}

const failed = Object.freeze({ kind: "failed" as const });

/** One run of a hook. */
interface Invocation<K extends HookKind> {
  readonly kind: K;
  /** Empty: there is no listener. */
  readonly id: string;
  readonly agentId: string | undefined;
}

/**
 * Runs a session's hooks. A hook that throws, that does not answer within the session's `hookTimeout`, or whose answer
 * cannot be understood has failed: a gate then blocks what it guards, an observer is ignored; both are reported by
 * `session.warning` and the log. Every run of a hook emits `hook.start` and `hook.end` while there are listeners.
 */
export class HookRunner {
  readonly #host: SessionContext;
  readonly #deadlines = new Deadlines();
  readonly #waiting = new Set<() => void>();
  readonly #about: { readonly sessionId: string };
  #isClosed = false;

  constructor(host: SessionContext) {
    this.#host = host;
    this.#about = Object.freeze({ sessionId: host.sessionId });
  }

  /**
   * Runs the hooks of a kind, one after the other, each with what the ones before made of it. Never throws or rejects;
   * a promise only if a hook returned one.
   */
  run<K extends FoldedKind>(kind: K, facts: HookFacts<K>, options: HookOptions = {}): HookResults[K] | Promise<HookResults[K]> {
    const fold = folds[kind] as unknown as Fold<K>;
    const hooks = this.#host.config.hooks[kind] as unknown as readonly Hook<K>[];
    return this.#runFrom({ kind, facts, fold, hooks, options }, 0, fold.begin(facts));
  }

  #runFrom<K extends FoldedKind>(all: Folding<K>, from: number, begun: HookResults[K]): HookResults[K] | Promise<HookResults[K]> {
    const { kind, facts, fold, hooks, options } = all;
    let result = begun;
    for (let index = from; index < hooks.length; index++) {
      const input = this.#inputOf<K>(fold.inputFor === undefined ? facts : fold.inputFor(facts, result), options.agentId);
      const ran = this.invoke(kind, hooks[index]!, input, options);
      if (ran instanceof Promise) {
        const before = result;
        return ran.then((settled) => this.#continue(all, index, before, settled));
      }
      if (ran.kind === "failed" && fold.fail !== undefined) return fold.fail(result);
      if (ran.kind === "answered") result = fold.add(result, ran.output);
    }
    return result;
  }

  #continue<K extends FoldedKind>(
    all: Folding<K>,
    index: number,
    before: HookResults[K],
    ran: HookRun<K>,
  ): HookResults[K] | Promise<HookResults[K]> {
    const { fold, options } = all;
    if (ran.kind === "failed" && fold.fail !== undefined) return fold.fail(before);
    const result = ran.kind === "answered" ? fold.add(before, ran.output) : before;
    return this.#isClosed || options.signal?.aborted ? result : this.#runFrom(all, index + 1, result);
  }

  #inputOf<K extends HookKind>(facts: HookFacts<K>, agentId: string | undefined): HookKinds[K]["input"] {
    const { sessionId, config } = this.#host;
    const input: HookInput = { sessionId: agentId ?? sessionId, timestamp: Date.now(), cwd: config.workingDirectory };
    return { ...input, ...facts } as unknown as HookKinds[K]["input"];
  }

  /** Runs one hook with the whole of its input. Never throws or rejects; a promise only if the hook returned one. */
  invoke<K extends HookKind>(
    kind: K,
    hook: Hook<K>,
    input: HookKinds[K]["input"],
    options: HookOptions = {},
  ): HookRun<K> | Promise<HookRun<K>> {
    const { agentId, signal } = options;
    if (this.#isClosed || signal?.aborted) return failed;
    const { events } = this.#host;
    const isObserved = events.wants("hook.start") || events.wants("hook.end");
    const invocation = { kind, id: isObserved ? randomUUID() : "", agentId };
    if (isObserved) events.append("hook.start", { hookInvocationId: invocation.id, hookType: kind, input }, agentId);
    try {
      const returned = hook(input, this.#about);
      return isThenable(returned) ? this.#await(invocation, returned, signal) : this.#read(invocation, returned);
    } catch (error) {
      return this.#fail(invocation, toError(error));
    }
  }

  #await<K extends HookKind>(
    invocation: Invocation<K>,
    returned: PromiseLike<unknown>,
    signal: AbortSignal | undefined,
  ): Promise<HookRun<K>> {
    const { hookTimeout } = this.#host.config;
    return new Promise((resolve) => {
      const deadline: Timed = {
        dueAt: performance.now() + hookTimeout,
        expire: () => end(() => this.#fail(invocation, late(hookTimeout))),
      };
      const drop = (): void => end(() => this.#drop(invocation));
      let isOver = false;
      const end = (outcome: () => HookRun<K>): void => {
        if (isOver) return;
        isOver = true;
        this.#deadlines.delete(deadline);
        this.#waiting.delete(drop);
        signal?.removeEventListener("abort", drop);
        resolve(outcome());
      };
      this.#waiting.add(drop);
      if (hookTimeout !== Number.POSITIVE_INFINITY) this.#deadlines.add(deadline);
      signal?.addEventListener("abort", drop, { once: true });
      // Through a promise of our own: a foreign one may throw, or answer twice.
      Promise.resolve(returned).then(
        (output) => end(() => this.#read(invocation, output)),
        (error) => end(() => this.#fail(invocation, toError(error))),
      );
    });
  }

  #read<K extends HookKind>(invocation: Invocation<K>, returned: unknown): HookRun<K> {
    const read = readHookOutput(invocation.kind, returned);
    if (!read.ok) return this.#fail(invocation, new HostError("HOOK_OUTPUT", `The hook returned an invalid output: ${read.problem}.`));
    const { output } = read;
    this.#emitEnd(invocation, { success: true, output });
    return { kind: "answered", output };
  }

  #fail<K extends HookKind>(invocation: Invocation<K>, error: Error): HookRun<K> {
    const { events, log, sessionId } = this.#host;
    const { kind, agentId } = invocation;
    const effect = gateKinds.has(kind) ? "so the action that it guards was blocked" : "so it was ignored";
    const message = `A ${kind} hook failed, ${effect}.`;
    log.error(message, { sessionId, hook: kind, error });
    this.#emitEnd(invocation, { success: false, error: { message: errorMessage(error) } });
    events.append("session.warning", { warningType: "hook", message }, agentId);
    return failed;
  }

  /** The run is not awaited any more, which is not a failure of the hook. */
  #drop<K extends HookKind>(invocation: Invocation<K>): HookRun<K> {
    this.#emitEnd(invocation, { success: false, error: { message: "Nothing waits for this hook any more." } });
    return failed;
  }

  #emitEnd({ kind, id, agentId }: Invocation<HookKind>, outcome: Pick<SessionEventData["hook.end"], "success" | "output" | "error">): void {
    const { events } = this.#host;
    if (!events.wants("hook.end")) return;
    events.append("hook.end", { hookInvocationId: id || randomUUID(), hookType: kind, ...outcome }, agentId);
  }

  /** Waits for no hook any more; later ones fail at once. */
  close(): void {
    this.#isClosed = true;
    for (const drop of [...this.#waiting]) drop();
  }
}

/** The run of a kind's hooks. */
interface Folding<K extends FoldedKind> {
  readonly kind: K;
  readonly facts: HookFacts<K>;
  readonly fold: Fold<K>;
  readonly hooks: readonly Hook<K>[];
  readonly options: HookOptions;
}

function late(timeout: number): HostError {
  return new HostError(
    "HOOK_TIMEOUT",
    `The hook did not answer within ${timeout / 1000} seconds. Raise hookTimeout if it may take longer.`,
  );
}
