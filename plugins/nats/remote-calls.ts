import { randomBytes, randomFillSync } from "node:crypto";
import type { Msg, Subscription } from "@nats-io/transport-node";
import { type CallResult, type Logger, type ToolContext, type ToolResult, toCallResult } from "skillhost";
import { type ControlMessage, protocolVersion, readWorkerMessage, type WorkerMessage } from "./call-messages.ts";

import type { FleetConnection, FleetSubjects } from "./fleet-connection.ts";
import { FrameReader, FrameWriter } from "./frames.ts";

/** A tool that workers have. */
export interface RemoteTarget {
  readonly name: string;
  readonly signature: string;
  /** Whether it does no harm to run a call twice: the tool says that it only reads, or that a repetition changes nothing. */
  readonly isRepeatable: boolean;
}

export interface RemoteCallsOptions {
  readonly fleet: FleetConnection;
  readonly subjects: FleetSubjects;
  readonly log: Logger;
  /** Bytes of a result. */
  readonly maxResult: number;
  /** Milliseconds without a sign of the worker until a call counts as lost. */
  readonly silence: number;
  /** Without a connection a call would wait for it, and run long after it has failed. */
  readonly isConnected: () => boolean;
  /** A worker was not there, or is lost. */
  readonly onMissing: () => void;
}

type Ending =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: Error }
  | { readonly kind: "lost" }
  | { readonly kind: "absent" }
  | { readonly kind: "disconnected" }
  | { readonly kind: "invalid"; readonly message: string }
  | { readonly kind: "refused"; readonly reason: string; readonly message: string };

interface OpenCall {
  readonly id: string;
  readonly target: RemoteTarget;
  readonly context: ToolContext;
  readonly reader: FrameReader;
  /** Arguments that are too large for the call itself. */
  readonly largeArgs: { readonly args: unknown } | undefined;
  worker: string | undefined;
  heard: number;
  settle: ((ending: Ending) => void) | undefined;
}

const tickMs = 100;
const maxAttempts = 3;

const idBytes = 16;
/** Random bytes for many ids: asking the system for those of one takes longer than the rest of a message. */
const pool = Buffer.alloc(idBytes * 256);
let used = pool.length;

function newCallId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += idBytes;
  return pool.toString("hex", used - idBytes, used);
}

/** The calls that a host has made of workers. */
export class RemoteCalls implements AsyncDisposable {
  readonly #options: RemoteCallsOptions;
  readonly #id = randomBytes(12).toString("hex");
  readonly #open = new Map<string, OpenCall>();
  readonly #writer: FrameWriter;
  readonly #subscription: Subscription;
  #timer: NodeJS.Timeout | undefined;
  #ticked = 0;

  constructor(options: RemoteCallsOptions) {
    this.#options = options;
    this.#writer = new FrameWriter(options.fleet);
    this.#subscription = options.fleet.connection.subscribe(options.subjects.host(this.#id, "*"), {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
  }

  /** What the tool returned. Rejects with what it threw, or with the signal's reason. What goes wrong on the way is a failed result. */
  async run(target: RemoteTarget, args: unknown, context: ToolContext): Promise<unknown> {
    const { signal } = context.invocation;
    const id = newCallId();
    for (let attempt = 1, pause = 10; ; pause = Math.min(pause * 2, 1_000)) {
      signal.throwIfAborted();
      const ending = await this.#attempt(id, target, args, context);
      if (ending.kind === "value") return ending.value;
      if (ending.kind === "threw") throw ending.error;
      if (ending.kind === "lost" || ending.kind === "absent") this.#options.onMissing();
      const isBusy = ending.kind === "refused" && ending.reason === "busy";
      if (!isBusy && (!this.#mayRepeat(ending, target) || attempt++ >= maxAttempts)) return failureOf(ending, target.name);
      await pauseFor(pause, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#subscription.unsubscribe();
    for (const call of this.#open.values()) {
      this.#inform(call, { call: call.id, type: "cancel", reason: "The host is closing." });
      call.settle?.({ kind: "lost" });
    }
    this.#open.clear();
  }

  /** A call that no worker received has not run. */
  #mayRepeat({ kind }: Ending, { isRepeatable }: RemoteTarget): boolean {
    return kind === "absent" || (kind === "lost" && isRepeatable);
  }

  #attempt(id: string, target: RemoteTarget, args: unknown, context: ToolContext): Promise<Ending> {
    if (!this.#options.isConnected()) return Promise.resolve({ kind: "disconnected" });
    const { invocation } = context;
    const { signal, sessionId, toolCallId, traceparent, tracestate } = invocation;
    const message = { v: protocolVersion, call: id, session: sessionId, toolCall: toolCallId, traceparent, tracestate };
    const whole = this.#writer.encode({ ...message, args });
    return new Promise((resolve, reject) => {
      const call: OpenCall = {
        id,
        target,
        context,
        reader: new FrameReader(this.#options.maxResult),
        largeArgs: whole === undefined ? { args } : undefined,
        worker: undefined,
        heard: performance.now(),
        settle: undefined,
      };
      const cancel = (): void => {
        call.settle = undefined;
        reject(signal.reason as Error);
        // A worker that accepts it later hears of it then.
        if (call.worker === undefined) return;
        this.#inform(call, { call: id, type: "cancel", reason: "The call was cancelled." });
        this.#close(call);
      };
      call.settle = (ending) => {
        call.settle = undefined;
        signal.removeEventListener("abort", cancel);
        this.#close(call);
        resolve(ending);
      };
      this.#open.set(id, call);
      this.#watch();
      signal.addEventListener("abort", cancel, { once: true });
      const { tool, host } = this.#options.subjects;
      const [subject, reply] = [tool(target.signature, target.name), host(this.#id, id)];
      if (whole === undefined) this.#writer.send(subject, { ...message, large: true }, reply);
      else this.#writer.sendEncoded(subject, whole, reply);
    });
  }

  #close(call: OpenCall): void {
    if (this.#open.get(call.id) === call) this.#open.delete(call.id);
  }

  /** One timer for all calls, also for those that come soon: most of them end long before it matters. */
  #watch(): void {
    if (this.#timer !== undefined) return;
    this.#ticked = performance.now();
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  #tick(): void {
    const now = performance.now();
    const own = now - this.#ticked - tickMs;
    this.#ticked = now;
    if (this.#open.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    for (const call of this.#open.values()) {
      // While this process itself did not run, it could not hear either.
      if (own > tickMs) call.heard += own;
      if (now - call.heard < this.#options.silence) continue;
      if (call.settle === undefined) this.#close(call);
      else call.settle({ kind: "lost" });
    }
  }

  #receive(message: Msg): void {
    const call = this.#open.get(message.subject.slice(message.subject.lastIndexOf(".") + 1));
    // It is over: a second answer, or one that is too late.
    if (call === undefined) return;
    if (message.data.length === 0 && message.headers?.code === 503) {
      if (call.worker === undefined) this.#end(call, { kind: "absent" });
      return;
    }
    const frame = call.reader.read(message);
    if (frame.kind === "part") call.heard = performance.now();
    if (frame.kind === "part") return;
    const read = frame.kind === "whole" ? readWorkerMessage(frame.value) : undefined;
    if (read !== undefined && call.worker !== undefined && read.worker !== call.worker) {
      this.#options.log.warning("A worker answered a call of another worker; its answer is ignored.", { worker: read.worker });
    } else if (read === undefined) {
      const message = frame.kind === "faulty" ? frame.message : "a message has an unknown form";
      this.#inform(call, { call: call.id, type: "cancel", reason: "The answer is not valid." });
      this.#end(call, { kind: "invalid", message });
    } else this.#hear(call, read);
  }

  #end(call: OpenCall, ending: Ending): void {
    if (call.settle === undefined) this.#close(call);
    else call.settle(ending);
  }

  #hear(call: OpenCall, message: WorkerMessage): void {
    call.heard = performance.now();
    const isNew = call.worker === undefined;
    call.worker = message.worker;
    if (call.settle === undefined) {
      if (isNew) this.#inform(call, { call: call.id, type: "cancel", reason: "The call was cancelled." });
      this.#close(call);
      return;
    }
    const { context } = call;
    switch (message.type) {
      case "accepted":
        if (isNew && call.largeArgs !== undefined) this.#inform(call, { call: call.id, type: "args", args: call.largeArgs.args });
        return;
      case "alive":
        return;
      case "progress":
        context.progress(message.update);
        return;
      case "file":
        context.fileChanged(
          message.path,
          message.content,
          typeof message.languageId === "string" ? { languageId: message.languageId } : {},
        );
        return;
      case "ask": {
        const options = typeof message.key === "string" ? { key: message.key } : undefined;
        void this.#answer(call, message.id, () => context.ask(message.kind as "userInput", message.data as never, options));
        return;
      }
      case "call":
        void this.#answer(call, message.id, () => context.callTool(message.name, message.args));
        return;
      case "result":
        this.#end(call, { kind: "value", value: message.value });
        return;
      case "error":
        this.#end(call, { kind: "threw", error: errorOf(message) });
        return;
      case "refused":
        this.#end(call, { kind: "refused", reason: message.reason, message: message.message });
    }
  }

  async #answer(call: OpenCall, id: number, find: () => Promise<unknown>): Promise<void> {
    try {
      this.#inform(call, { call: call.id, type: "answer", id, value: await find() });
    } catch (error) {
      this.#inform(call, { call: call.id, type: "answer", id, problem: error instanceof Error ? error.message : String(error) });
    }
  }

  #inform({ worker }: OpenCall, message: ControlMessage): void {
    if (worker !== undefined) this.#writer.send(this.#options.subjects.worker(worker, "control"), message);
  }
}

function errorOf({ message, stack }: { readonly message: string; readonly stack?: unknown }): Error {
  const error = new Error(message);
  if (typeof stack === "string") error.stack = stack;
  return error;
}

function failureOf(ending: Exclude<Ending, { kind: "value" | "threw" }>, name: string): CallResult | ToolResult {
  const notRun = `The tool "${name}" was not called`;
  if (ending.kind === "absent") return failed(`${notRun}: no worker serves it at the moment.`, "FLEET_NO_WORKER");
  if (ending.kind === "disconnected") return failed(`${notRun}: the connection to the workers is lost.`, "FLEET_DISCONNECTED");
  if (ending.kind === "refused") return failed(`${notRun}: the worker refused the call.`, `FLEET_REFUSED_CALL: ${ending.message}`);
  const unknown = "The outcome is unknown: it may or may not have taken effect.";
  if (ending.kind === "lost") return failed(`The worker that ran "${name}" is lost. ${unknown}`, "FLEET_WORKER_LOST: outcome unknown");
  return failed(`The answer of the worker that ran "${name}" cannot be used. ${unknown}`, `FLEET_ANSWER: ${ending.message}`);
}

function failed(text: string, error: string): CallResult {
  return toCallResult({ resultType: "failure", textResultForLlm: text, error });
}

function pauseFor(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", end);
      resolve();
    }, milliseconds);
    const end = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
