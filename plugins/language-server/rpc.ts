import { Writable } from "node:stream";
import { HostError, type Logger, type ManagedProcess } from "skillhost";
import {
  CancellationTokenSource,
  createMessageConnection,
  ErrorCodes,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node.js";

/** Answers a request of the server. `signal` aborts when the server cancels it. */
export type RequestHandler = (params: unknown, signal: AbortSignal) => unknown;

export interface RpcHandlers {
  /** By method. Any other method is answered with "method not found". */
  readonly requests: Readonly<Record<string, RequestHandler>>;
  notified(method: string, params: unknown): void;
  progressed(token: string | number, value: unknown): void;
}

export interface RequestOptions {
  /** Milliseconds. Default: unlimited. */
  readonly timeout?: number | undefined;
}

/** JSON-RPC with a language server over its pipes. When the server ends, pending requests are rejected. */
export class Rpc implements Disposable {
  readonly #connection: MessageConnection;
  readonly #log: Logger;
  #ended: HostError | undefined;

  constructor({ stdin, stdout }: Pick<ManagedProcess, "stdin" | "stdout">, handlers: RpcHandlers, log: Logger) {
    this.#log = log;
    const connection = createMessageConnection(new StreamMessageReader(stdout), new StreamMessageWriter(unfailing(stdin)));
    this.#connection = connection;
    connection.onError(([error]) => log.warning("The language server sent an invalid message.", { error }));
    connection.onRequest((method, params, token) => {
      const handler = Object.hasOwn(handlers.requests, method) ? handlers.requests[method] : undefined;
      if (handler === undefined) return notFound(method);
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort());
      return handler(params, stop.signal);
    });
    connection.onNotification((method, params) => handlers.notified(method, params));
    connection.onUnhandledProgress(({ token, value }) => handlers.progressed(token, value));
    connection.listen();
  }

  /**
   * @throws HostError `LANGUAGE_SERVER_REFUSED` with the server's message, `LANGUAGE_SERVER_TIMEOUT`, and the error given
   * to `end` when the server has ended.
   */
  async request(method: string, params: unknown, { timeout }: RequestOptions = {}): Promise<unknown> {
    if (this.#ended !== undefined) throw this.#ended;
    const cancel = new CancellationTokenSource();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      if (timeout === undefined) return;
      timer = setTimeout(() => {
        cancel.cancel();
        reject(new HostError("LANGUAGE_SERVER_TIMEOUT", `The language server did not answer ${method} within ${timeout / 1000} seconds.`));
      }, timeout);
    });
    try {
      return await Promise.race([this.#connection.sendRequest(method, params, cancel.token), late]);
    } catch (error) {
      throw this.#ended ?? toRefusal(method, error);
    } finally {
      clearTimeout(timer);
      cancel.dispose();
    }
  }

  notify(method: string, params: unknown): void {
    if (this.#ended !== undefined) return;
    this.#connection.sendNotification(method, params).catch((error: unknown) => {
      if (this.#ended === undefined) this.#log.warning(`The language server could not be notified of ${method}.`, { error });
    });
  }

  /** Rejects pending and later requests with this error. */
  end(reason: HostError): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#connection.dispose();
  }

  [Symbol.dispose](): void {
    this.end(new HostError("LANGUAGE_SERVER_CLOSED", "The connection to the language server is closed."));
  }
}

function notFound(method: string): ResponseError<void> {
  return new ResponseError(ErrorCodes.MethodNotFound, `skillhost does not answer ${method}.`);
}

function toRefusal(method: string, error: unknown): unknown {
  if (!(error instanceof ResponseError)) return error;
  return new HostError("LANGUAGE_SERVER_REFUSED", `The language server refused ${method}: ${error.message}`, { cause: error });
}

/**
 * Accepts every write. When the server has ended, `end` rejects pending requests. Otherwise the connection would create an
 * unhandled rejection for each message that cannot be written.
 */
function unfailing(stdin: Writable): Writable {
  return new Writable({
    write(bytes, _encoding, done) {
      stdin.write(bytes, () => done());
    },
  });
}
