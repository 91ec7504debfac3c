import type { JSONRPCMessage, JSONRPCResultResponse, RequestId } from "@modelcontextprotocol/client";
import { isPlainRecord } from "../../base/read-fields.ts";
import { onAbort } from "../../base/wait-for.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { standInFor } from "./answer-shape.ts";
import type { CallRequestOptions } from "./connection.ts";
import { HeldTimer } from "./held-timer.ts";

/** Why a request of ours ended without an answer. */
export type RequestStop = "timeout" | "cancelled" | "broken" | "unreadable";

export interface StoppedRequest {
  readonly why: RequestStop;
  readonly message: string;
}

/** One request of ours, from its sending to its answer; more than one message where the server asks for input in between. */
export class PendingRequest implements Disposable {
  readonly method: string;
  readonly token: number;
  readonly context: ToolContext | undefined;
  /** Of the message that it waits for an answer to. */
  id: RequestId | undefined;
  /** Why it was given up. */
  stop: StoppedRequest | undefined;
  /** The result as it came. */
  answer: unknown;
  /** Whether the server has answered anything, such as that it wants input first. */
  wasHeard = false;
  readonly #controller = new AbortController();
  readonly #timer: HeldTimer | undefined;
  readonly #onProgress: CallRequestOptions["onProgress"];
  readonly #waiting: Disposable | undefined;

  constructor(method: string, token: number, options: CallRequestOptions, timeout: number | undefined) {
    this.method = method;
    this.token = token;
    this.context = options.context;
    this.#onProgress = options.onProgress;
    if (timeout !== undefined) {
      this.#timer = new HeldTimer(timeout, () => this.giveUp("timeout", `no answer and no progress for ${timeout} ms`));
    }
    if (options.signal !== undefined) this.#waiting = onAbort(options.signal, () => this.giveUp("cancelled", "the request was cancelled"));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Its clock stands still while somebody is asked for the server. */
  hold(): Disposable {
    return this.#timer?.hold() ?? { [Symbol.dispose]() {} };
  }

  /** Ends it without an answer; the server is told. */
  giveUp(why: RequestStop, message: string): void {
    if (this.stop !== undefined) return;
    this.stop = { why, message };
    this.#controller.abort(message);
  }

  hearProgress(params: Readonly<Record<string, unknown>>): void {
    if (this.signal.aborted) return;
    this.#timer?.restart();
    const { progress, total, message } = params;
    if (typeof progress !== "number") return;
    this.#onProgress?.({
      progress,
      ...(typeof total === "number" && { total }),
      ...(typeof message === "string" && { message }),
    });
  }

  /** Keeps the answer, and says what the SDK is told of it. */
  take(message: JSONRPCMessage): JSONRPCMessage {
    this.wasHeard = true;
    if (!("result" in message)) return message;
    const result: unknown = message.result;
    if (!isPlainRecord(result) || result["resultType"] === "input_required") return message;
    this.answer = result;
    const standIn = standInFor(this.method, result);
    return standIn === undefined ? message : ({ ...message, result: standIn } as JSONRPCResultResponse);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#waiting?.[Symbol.dispose]();
  }
}
