import type { Readable } from "node:stream";
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type CancellationToken,
  CancellationTokenSource,
  createMessageConnection,
  type DataCallback,
  type Message,
  type MessageConnection,
  type MessageWriter,
  type Disposable as RpcDisposable,
} from "vscode-jsonrpc/node.js";
import { toError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import type { Logger } from "../../../base/logger.ts";
import { onAbort, waitFor } from "../../../base/wait.ts";
import { type FrameLimits, FrameReader, FrameWriter, type WireOutput } from "./frames.ts";

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

interface WireReaderHandlers {
  /** Sends the error response to an invalid message. */
  refuse(answer: { readonly id: string | number | null; readonly error: { readonly code: number; readonly message: string } }): void;
  onProblem(problem: string): void;
}

/** Reads frames, and passes on valid JSON-RPC messages. */
class WireReader extends AbstractMessageReader {
  readonly #input: Readable;
  readonly #handlers: WireReaderHandlers;
  readonly #frames: FrameReader;
  #callback: DataCallback = () => {};
  #hasEnded = false;

  constructor(input: Readable, handlers: WireReaderHandlers) {
    super();
    this.#input = input;
    this.#handlers = handlers;
    this.#frames = new FrameReader({
      message: (value) => this.#take(value),
      unreadable: (problem) => this.#refuse(null, -32700, problem),
      lost: (problem) => {
        this.#refuse(null, -32700, `${problem} The connection is closed.`);
        this.#onEnd();
      },
    });
  }

  /** Undefined: the limits of an admitted client. */
  limit(limits?: FrameLimits): void {
    this.#frames.limit(limits);
  }

  override listen(callback: DataCallback): RpcDisposable {
    this.#callback = callback;
    this.#input.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onEnd).on("error", this.#onEnd);
    if (this.#input.readableEnded || this.#input.destroyed) setImmediate(this.#onEnd);
    return { dispose: () => this.end() };
  }

  end(): void {
    this.#hasEnded = true;
    this.#frames.clear();
    this.#input.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onEnd);
    this.#input.pause();
  }

  readonly #onData = (chunk: Buffer | string): void => {
    if (!this.#hasEnded) this.#frames.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  };

  readonly #onEnd = (): void => {
    if (this.#hasEnded) return;
    this.end();
    this.fireClose();
  };

  #take(value: unknown): void {
    const problem = problemOf(value);
    if (problem === undefined) {
      this.#callback(value as Message);
      return;
    }
    const id = isRecord(value) && typeof value["method"] === "string" ? value["id"] : null;
    this.#refuse(isId(id) ? id : null, -32600, problem);
  }

  #refuse(id: string | number | null, code: number, message: string): void {
    this.#handlers.onProblem(message);
    this.#handlers.refuse({ id, error: { code, message } });
  }
}

/** Writes messages of JSON-RPC. */
class WireWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #frames: FrameWriter;
  readonly #log: Logger;

  constructor(frames: FrameWriter, log: Logger) {
    super();
    this.#frames = frames;
    this.#log = log;
  }

  async write(message: Message): Promise<void> {
    this.#frames.write(this.#toJson(message));
  }

  end(): void {}

  /** A result that JSON cannot represent is an error in code of skillhost or a plugin. The client must still get an answer. */
  #toJson(message: Message): string {
    try {
      return JSON.stringify(message);
    } catch (error) {
      this.#log.error("An answer cannot be represented in JSON.", { error: toError(error) });
      const { id, method } = message as { readonly id?: unknown; readonly method?: string };
      if (method !== undefined) throw error;
      return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32603, message: "The answer cannot be represented in JSON." } });
    }
  }
}

/** The problem of a message. Undefined: it is valid. */
function problemOf(value: unknown): string | undefined {
  if (!isRecord(value)) return "A message must be an object; batches are not supported.";
  const { id, method, params } = value;
  if (method === undefined) return isAnswer(value) ? undefined : "A message has neither a method nor a result.";
  if (typeof method !== "string") return "method must be a string.";
  if (id !== undefined && !isId(id)) return "id must be a string or a number.";
  if (params !== undefined && (typeof params !== "object" || params === null)) return "params must be an object.";
  if (method === "$/cancelRequest" && !(isRecord(params) && isId(params["id"]))) return "$/cancelRequest has no request id.";
  return undefined;
}

function isAnswer({ id, result, error }: Readonly<Record<string, unknown>>): boolean {
  if (id === null) return error !== undefined;
  if (!isId(id)) return false;
  return result !== undefined || (isRecord(error) && typeof error["message"] === "string");
}

function isId(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}
