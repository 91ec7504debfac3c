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
import { onAbort, waitFor } from "../../../base/wait.ts";
import { type FrameLimits, FrameWriter, type WireOutput } from "./frames.ts";
import { WireReader, WireWriter } from "./wire-streams.ts";

export interface WireStreams {
  readonly input: Readable;
  readonly output: WireOutput;
}

/** Answers a request. An exception becomes the error response. The signal fires when the client cancels the request or disconnects. */
export type AnswerRequest = (method: string, params: unknown, signal: () => AbortSignal) => unknown;

/**
 * The connection to one client: JSON-RPC 2.0 in frames, with requests in both directions. Whatever a client sends, it can end
 * only its own connection.
 */
export class Wire {
  /** Settles when either side has closed the connection. */
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
    // Unknown notifications are ignored.
    this.#connection.onUnhandledNotification(() => {});
    this.#connection.onError(([error]) => log.warning("A connection reported an error.", { error }));
    this.#connection.listen();
  }

  get isOpen(): boolean {
    return !this.#closing.signal.aborted;
  }

  /** Whether the client reads so slowly that transient events should be left out. */
  get isCrowded(): boolean {
    return this.#frames.isCrowded;
  }

  /** Limits what the client may send. Undefined: the limits of an admitted client. */
  limitInput(limits?: FrameLimits): void {
    this.#reader.limit(limits);
  }

  /** Sends a request. Rejects with the client's error, when the signal fires, and when the connection is closed. */
  async request(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    if (!this.isOpen) throw new Error(`The client has disconnected; ${method} was not sent.`);
    signal?.throwIfAborted();
    const cancelling = new CancellationTokenSource();
    const listening = signal && onAbort(signal, () => cancelling.cancel());
    try {
      // A client may never answer a cancelled request.
      return await waitFor(this.#connection.sendRequest(method, params, cancelling.token), { signal });
    } finally {
      listening?.[Symbol.dispose]();
      cancelling.dispose();
    }
  }

  /** Sends a notification. `params`: JSON text. */
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
    // Created on demand: few requests take so long that a client cancels them.
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
