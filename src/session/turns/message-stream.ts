import { errorMessage, HostError } from "../../base/errors.ts";
import type { SessionEvent } from "../history/event-types.ts";
import type { SessionEvents } from "../history/events.ts";
import type { AssistantReply } from "./turn-types.ts";

/** A part of the answer to one message, in the order in which it happened. Agents that the model starts have none. */
export type StreamPart =
  | { readonly type: "text-delta"; readonly text: string }
  | { readonly type: "reasoning-delta"; readonly text: string }
  | { readonly type: "tool-call"; readonly toolCallId: string; readonly toolName: string; readonly input: unknown }
  | { readonly type: "tool-progress"; readonly toolCallId: string; readonly message: string }
  /** `output` is what the model reads. */
  | {
      readonly type: "tool-result";
      readonly toolCallId: string;
      readonly toolName: string;
      readonly success: boolean;
      readonly output: string;
    }
  /** The last part. */
  | { readonly type: "finish"; readonly reply: AssistantReply };

/**
 * Options of the `Response` of a stream.
 *
 * @example
 * ```ts
 * const options: StreamResponseOptions = { format: "text", headers: { "cache-control": "no-store" } };
 * ```
 */
export interface StreamResponseOptions {
  /** `events`, the default: server-sent events, one JSON object of a part each. `text`: the text of the answer alone. */
  readonly format?: "events" | "text" | undefined;
  /** Headers beside those of the format. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A message that was taken, and its answer. */
export interface DeliveredMessage {
  readonly id: string;
  readonly reply: Promise<AssistantReply>;
}

/** The way of a stream into its session. */
interface StreamHost {
  readonly events: SessionEvents;
  deliver(): DeliveredMessage;
  /** Takes the message back, or stops the turn that answers it. */
  cancel(messageId: string): void;
}

/**
 * The answer to one message while it is produced: `for await (const part of stream)`, or `stream.textStream`, or `stream.toResponse()`.
 * It can be read once, at any time after the message was sent; until then parts wait, adjacent text joined. Reading rejects with
 * the error that `reply` rejects with. Leaving the loop stops the answer, unless the turn has ended.
 */
export class MessageStream implements AsyncIterable<StreamPart> {
  readonly messageId: string;
  /** As `sendAndWait` settles. */
  readonly reply: Promise<AssistantReply>;
  readonly #host: StreamHost;
  readonly #waiting: StreamPart[] = [];
  readonly #listening: Disposable;
  readonly #toolNames = new Map<string, string>();
  /** The messages of the model whose text came in parts. */
  readonly #streamed = new Set<string>();
  #wake: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;
  #answers = false;
  #isTaken = false;

  /** @throws HostError as `deliver` does. */
  constructor(host: StreamHost, signal: AbortSignal | undefined) {
    signal?.throwIfAborted();
    this.#host = host;
    this.#listening = host.events.addSink((event) => this.#take(event));
    try {
      const { id, reply } = host.deliver();
      this.messageId = id;
      this.reply = reply;
    } catch (error) {
      this.#listening[Symbol.dispose]();
      throw error;
    }
    const stop = (): void => this.#host.cancel(this.messageId);
    signal?.addEventListener("abort", stop, { once: true });
    this.reply.then(
      (answer) => this.#finish({}, { type: "finish", reply: answer }),
      (error: unknown) => this.#finish({ error: signal?.aborted ? signal.reason : error }),
    );
    // The reader of the stream gets the error there, so a rejection of `reply` may stay unread.
    void this.reply.catch(() => {}).then(() => signal?.removeEventListener("abort", stop));
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<StreamPart, undefined> {
    if (this.#isTaken)
      throw new HostError("STREAM_TAKEN", "This stream is being read already, or was. Read it once, and keep what you need.");
    this.#isTaken = true;
    let last: Promise<unknown> = Promise.resolve();
    // Not a generator: its `return` would wait for the next part before it stops the answer.
    const iterator: AsyncIterableIterator<StreamPart, undefined> = {
      next: () => {
        const next = last.then(() => this.#next());
        last = next.catch(() => {});
        return next;
      },
      return: async () => {
        if (this.#end === undefined) this.#host.cancel(this.messageId);
        this.#end ??= {};
        this.#waiting.length = 0;
        this.#wake?.();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  /** The text alone, as it comes in. It takes the place of reading the parts. */
  get textStream(): AsyncIterable<string> {
    const parts = (): AsyncIterable<StreamPart> => this;
    return {
      async *[Symbol.asyncIterator]() {
        for await (const part of parts()) if (part.type === "text-delta") yield part.text;
      },
    };
  }

  /**
   * The stream as the answer of an HTTP endpoint. With `events`, each part is one `data:` line of JSON; an error is the last,
   * `{ "type": "error", "code", "message" }`. With `text`, an error ends the body. A client that goes away stops the answer.
   */
  toResponse({ format = "events", headers = {} }: StreamResponseOptions = {}): Response {
    const parts = this[Symbol.asyncIterator]();
    const encoder = new TextEncoder();
    const isText = format === "text";
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          for (;;) {
            const { value, done } = await parts.next();
            if (done) return controller.close();
            const text = isText ? (value.type === "text-delta" ? value.text : "") : toServerSentEvent(value);
            if (text !== "") return controller.enqueue(encoder.encode(text));
          }
        } catch (error) {
          if (isText) return controller.error(error);
          const code = error instanceof HostError ? { code: error.code } : {};
          controller.enqueue(encoder.encode(toServerSentEvent({ type: "error", ...code, message: errorMessage(error) })));
          controller.close();
        }
      },
      async cancel() {
        await parts.return?.();
      },
    });
    const type = isText ? "text/plain; charset=utf-8" : "text/event-stream; charset=utf-8";
    return new Response(body, { headers: { "content-type": type, "cache-control": "no-store", "x-accel-buffering": "no", ...headers } });
  }

  async #next(): Promise<IteratorResult<StreamPart, undefined>> {
    for (;;) {
      const part = this.#waiting.shift();
      if (part !== undefined) return { done: false, value: part };
      const end = this.#end;
      if (end !== undefined) {
        // An error is thrown once, as by a generator.
        this.#end = {};
        if ("error" in end) throw end.error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #take(event: SessionEvent): void {
    if (event.type === "user.message" && event.data.messageId === this.messageId) this.#answers = true;
    if (!this.#answers || event.agentId !== undefined) return;
    const part = this.#partOf(event);
    if (part !== undefined) this.#add(part);
  }

  #partOf(event: SessionEvent): StreamPart | undefined {
    switch (event.type) {
      case "assistant.message_delta":
        this.#streamed.add(event.data.messageId);
        return { type: "text-delta", text: event.data.deltaContent };
      case "assistant.reasoning_delta":
        return { type: "reasoning-delta", text: event.data.deltaContent };
      case "assistant.message": {
        // Of a model that does not stream, or in the turn of another message, which took this one in.
        const { content: text, messageId } = event.data;
        return text === "" || this.#streamed.has(messageId) ? undefined : { type: "text-delta", text };
      }
      case "tool.execution_start": {
        const { toolCallId, toolName, arguments: input } = event.data;
        this.#toolNames.set(toolCallId, toolName);
        return { type: "tool-call", toolCallId, toolName, input };
      }
      case "tool.execution_progress":
        return { type: "tool-progress", toolCallId: event.data.toolCallId, message: event.data.progressMessage };
      case "tool.execution_complete": {
        const { toolCallId, success, result } = event.data;
        return { type: "tool-result", toolCallId, toolName: this.#toolNames.get(toolCallId) ?? "", success, output: result.content };
      }
      default:
        return undefined;
    }
  }

  #add(part: StreamPart): void {
    if (this.#end !== undefined) return;
    const last = this.#waiting.at(-1);
    // A reader that is slower than the model gets longer parts, not more of them.
    if (last !== undefined && (part.type === "text-delta" || part.type === "reasoning-delta") && last.type === part.type)
      this.#waiting[this.#waiting.length - 1] = { type: part.type, text: last.text + part.text };
    else this.#waiting.push(part);
    this.#wake?.();
  }

  #finish(end: { readonly error?: unknown }, last?: StreamPart): void {
    this.#listening[Symbol.dispose]();
    // Its reader has left.
    if (this.#end !== undefined) return;
    if (last !== undefined) this.#waiting.push(last);
    this.#end = end;
    this.#wake?.();
  }
}

function toServerSentEvent(part: object): string {
  return `data: ${JSON.stringify(part)}\n\n`;
}
