import { onTestFinished } from "vitest";
import type { Clock } from "../../src/base/wait.ts";
import type { ModelFetch } from "../../src/models/http.ts";
import type { ChatModel, ModelDelta, ModelReply, ModelRequest, ModelRetry } from "../../src/models/model.ts";
import { ModelError } from "../../src/models/model-error.ts";
import { createModel, type ModelOptions } from "../../src/models/provider.ts";
import { type ModelScript, type ScriptedModel, startScriptedModel } from "../doubles/scripted-model.ts";

export const hello: ModelRequest = { messages: [{ role: "user", content: "Hello" }] };

export async function endpoint(script?: ModelScript): Promise<ScriptedModel> {
  const scripted = await startScriptedModel(script);
  onTestFinished(() => scripted.close());
  return scripted;
}

/** A model at an endpoint, without waits between retries. */
export function modelAt(url: string, more: Partial<ModelOptions> = {}): ChatModel {
  return createModel({ baseUrl: `${url}/v1`, model: "test-model", clock: hurriedClock(), random: () => 0, ...more });
}

/** A model that answers with these pieces of bytes, without a network. */
export function modelSaying(pieces: readonly (string | Uint8Array)[], more: Partial<ModelOptions> = {}): ChatModel {
  return modelAt("http://model.test", { fetch: fetchSaying(pieces), ...more });
}

export function fetchSaying(pieces: readonly (string | Uint8Array)[], contentType = "text/event-stream"): ModelFetch {
  return async () => ({
    status: 200,
    headers: { get: (name) => (name === "content-type" ? contentType : null) },
    body: (async function* () {
      for (const piece of pieces) yield typeof piece === "string" ? new TextEncoder().encode(piece) : piece;
    })(),
  });
}

export interface Heard {
  readonly reply?: ModelReply;
  readonly error?: ModelError;
  readonly deltas: readonly ModelDelta[];
  readonly retries: readonly ModelRetry[];
}

/** Outcome of a request: the reply or the ModelError, with all emitted deltas and retries. Other errors are thrown. */
export async function listen(model: ChatModel, request: ModelRequest = hello, signal: AbortSignal = never): Promise<Heard> {
  const deltas: ModelDelta[] = [];
  const retries: ModelRetry[] = [];
  const options = { signal, onDelta: (delta: ModelDelta) => deltas.push(delta), onRetry: (retry: ModelRetry) => retries.push(retry) };
  try {
    return { reply: await model.complete(request, options), deltas, retries };
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return { error, deltas, retries };
  }
}

/** The reply to a request without a listener. */
export function ask(model: ChatModel, request: ModelRequest = hello): Promise<ModelReply> {
  return model.complete(request, { signal: never });
}

/** The error that a request ends with. */
export async function failure(reply: Promise<unknown>): Promise<ModelError> {
  const error = await reply.then(
    () => new Error("There was a reply."),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ModelError) return error;
  throw error;
}

const never = new AbortController().signal;

/** Timers of up to a minute fire on the next turn of the event loop. Longer ones are time limits and never fire. */
export function hurriedClock(): Clock {
  return {
    now: () => 1_000_000,
    after: (milliseconds, run) => {
      const timer = milliseconds <= 60_000 ? setImmediate(run) : undefined;
      return { restart() {}, [Symbol.dispose]: () => clearImmediate(timer) };
    },
  };
}

export interface HandClock extends Clock {
  /** Fires the timers with this delay; resolves when there was one. */
  elapse(milliseconds: number): Promise<void>;
  /** How often timers with this delay were started. */
  restarts(milliseconds: number): number;
}

/** A clock whose timers only fire on demand. */
export function handClock(): HandClock {
  const timers = new Map<() => void, number>();
  const restarted: number[] = [];
  const wanted = new Map<number, () => void>();
  const fire = (milliseconds: number): boolean => {
    const due = [...timers].filter(([, length]) => length === milliseconds);
    for (const [run] of due) {
      timers.delete(run);
      run();
    }
    return due.length > 0;
  };
  return {
    now: () => 1_000_000,
    after: (milliseconds, run) => {
      const once = (): void => run();
      timers.set(once, milliseconds);
      wanted.get(milliseconds)?.();
      return { restart: () => void restarted.push(milliseconds), [Symbol.dispose]: () => void timers.delete(once) };
    },
    elapse: async (milliseconds) => {
      while (!fire(milliseconds)) await new Promise<void>((resolve) => wanted.set(milliseconds, resolve));
    },
    restarts: (milliseconds) => restarted.filter((length) => length === milliseconds).length,
  };
}
