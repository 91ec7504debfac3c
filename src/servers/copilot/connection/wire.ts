import type { Readable } from "node:stream";
import {
  type CancellationToken,
  CancellationTokenSource,
  createMessageConnection,
  type MessageConnection,
  type Disposable as RpcDisposable,
} from "vscode-jsonrpc/node.js";
import { toError } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import { onAbort, waitFor } from "../../../base/wait-for.ts";
import { type FrameLimits, FrameWriter, type WireOutput } from "./frames.ts";
import { WireReader, WireWriter } from "./wire-streams.ts";

export interface WireStreams {
  readonly input: Readable;
  readonly output: WireOutput;
}

/** Answers a request; what it throws is the answer, too. The signal fires when the client cancels the request or has gone. */
export type AnswerRequest = (method: string, params: unknown, signal: () => AbortSignal) => unknown;

/**
 * One client at the other end of a line: JSON-RPC 2.0 in frames, requests in both directions. Nothing that a client sends
 * ends more than its own connection.
 */
export class Wire {
  /** Settles when the line is closed, by whichever side. */
  readonly closed: Promise<void>;
  readonly #connection: MessageConnection;
  readonly #reader: WireReader;
  readonly #frames: FrameWriter;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  #settleClosed: () => void = () => {};

  constructor({ input, output }: WireStreams, answer: AnswerRequest, log: Logger) {
    this.#log = log;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
    this.#frames = new FrameWriter(output, () => {
      log.warning("A client does not read its messages, so its connection is closed.");
      this.close();
    });
    this.#reader = new WireReader(input, {
      refuse: (error) => this.#frames.write(JSON.stringify({ jsonrpc: "2.0", ...error })),
      onProblem: (problem) => log.warning(`A client sent an invalid message: ${problem}`),
    });
    this.#connection = createMessageConnection(this.#reader, new WireWriter(this.#frames, log), quietLogger);
    this.#connection.onRequest((method: string, params: unknown, token: CancellationToken) => this.#answer(answer, method, params, token));
    this.#connection.onClose(() => this.close());
    // A client that sends what nobody waits for is not worth more than silence.
    this.#connection.onUnhandledNotification(() => {});
    this.#connection.onError(([error]) => log.warning("A connection reported an error.", { error }));
    this.#connection.listen();
  }

  get isOpen(): boolean {
    return !this.#closing.signal.aborted;
  }

  /** Whether the client is so far behind that it is better spared what it can do without. */
  get isCrowded(): boolean {
    return this.#frames.isCrowded;
  }

  /** What the client may send. Undefined: as much as any. */
  limitInput(limits?: FrameLimits): void {
    this.#reader.limit(limits);
  }

  /** Asks the client. Rejects with its error, when the signal fires, and when the connection is closed. */
  async request(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    if (!this.isOpen) throw new Error(`The client has disconnected; ${method} was not sent.`);
    signal?.throwIfAborted();
    const cancelling = new CancellationTokenSource();
    const listening = signal && onAbort(signal, () => cancelling.cancel());
    try {
      // A client may never answer what was cancelled.
      return await waitFor(this.#connection.sendRequest(method, params, cancelling.token), { signal });
    } finally {
      listening?.[Symbol.dispose]();
      cancelling.dispose();
    }
  }

  /** Tells the client. `params` are JSON already. */
  notify(method: string, params: string): void {
    this.#frames.write(`{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${params}}`);
  }

  close(): void {
    if (!this.isOpen) return;
    this.#closing.abort(new Error("The client has disconnected."));
    this.#frames.close();
    this.#reader.end();
    this.#connection.dispose();
    this.#settleClosed();
  }

  async #answer(answer: AnswerRequest, method: string, params: unknown, token: CancellationToken): Promise<unknown> {
    let listening: RpcDisposable | undefined;
    // Made for those who ask for it: few requests take so long that somebody would cancel them.
    const signal = (): AbortSignal => {
      const cancelled = new AbortController();
      listening = token.onCancellationRequested(() => cancelled.abort(new Error("The request was cancelled.")));
      return AbortSignal.any([cancelled.signal, this.#closing.signal]);
    };
    try {
      return (await answer(method, params, signal)) ?? null;
    } catch (error) {
      this.#log.debug("A request failed.", { method, error: toError(error) });
      throw error;
    } finally {
      listening?.dispose();
    }
  }
}

const quietLogger = { error() {}, warn() {}, info() {}, log() {} };
