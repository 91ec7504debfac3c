import type { Readable } from "node:stream";
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Message,
  type MessageWriter,
  type Disposable as RpcDisposable,
} from "vscode-jsonrpc/node.js";
import { toError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import type { Logger } from "../../../base/logger.ts";
import { type FrameLimits, FrameReader, type FrameWriter } from "./frames.ts";

interface WireReaderHandlers {
  /** Sends the error response to an invalid message. */
  refuse(answer: { readonly id: string | number | null; readonly error: { readonly code: number; readonly message: string } }): void;
  onProblem(problem: string): void;
}

/** Reads frames, and passes on valid JSON-RPC messages. */
export class WireReader extends AbstractMessageReader {
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
export class WireWriter extends AbstractMessageWriter implements MessageWriter {
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
