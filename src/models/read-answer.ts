import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { HttpAnswer } from "./http.ts";
import type { RequestErrors } from "./model-error.ts";

/** A part of a response: one event of a stream, the announced end of a stream, or the whole response as one JSON value. */
export type AnswerPart =
  | { readonly kind: "event"; readonly value: unknown }
  | { readonly kind: "end" }
  | { readonly kind: "whole"; readonly value: unknown };

/** The character limit of one line or event of a stream. */
const longestEvent = 8 * 1024 * 1024;

/**
 * Reads a response by its content: servers send JSON to requests for a stream and vice versa, and their content types may be
 * wrong. No event follows `[DONE]`, but the remaining bytes are read.
 */
export async function* readAnswer(answer: HttpAnswer): AsyncGenerator<AnswerPart, void, undefined> {
  const { bytes, contentType, fault } = answer;
  const decoder = new TextDecoder();
  let hasEnded = false;
  let reader: FormReader | undefined;
  for await (const piece of bytes) {
    if (hasEnded) continue;
    const decoded = decoder.decode(piece, { stream: true });
    const text = reader === undefined ? decoded.trimStart() : decoded;
    if (text === "") continue;
    reader ??= /^[{[]/.test(text) ? new JsonReader(fault) : new EventReader(contentType, fault);
    hasEnded = yield* reader.feed(text);
    if (hasEnded) answer.expectEnd(timeToClose);
  }
  if (hasEnded) return;
  const rest = decoder.decode();
  if (reader !== undefined) yield* reader.end(rest);
}

/** Milliseconds to wait for the end of the connection after the last event. */
export const timeToClose = 250;

/** The event names of a reply. Other events are keep-alives with any content. */
const namesOfParts = /^(?:message|error|message_\w+|content_block_\w+|response\..+)$/;

interface FormReader {
  /** Whether the stream announced its end. */
  feed(text: string): Generator<AnswerPart, boolean, undefined>;
  end(text: string): Generator<AnswerPart, void, undefined>;
}

class JsonReader implements FormReader {
  readonly #pieces: string[] = [];
  readonly #fault: RequestErrors;

  constructor(fault: RequestErrors) {
    this.#fault = fault;
  }

  // biome-ignore lint/correctness/useYield: JSON has no parts before its end
  *feed(text: string): Generator<AnswerPart, boolean, undefined> {
    this.#pieces.push(text);
    return false;
  }

  *end(text: string): Generator<AnswerPart, void, undefined> {
    const value = parseJson(this.#pieces.join("") + text);
    if (value === undefined) throw this.#fault("MODEL_BAD_ANSWER", "sent JSON that is not valid or is truncated.", { retryable: false });
    yield { kind: "whole", value };
  }
}

class EventReader implements FormReader {
  readonly #contentType: string;
  readonly #fault: RequestErrors;
  readonly #events: EventSourceMessage[] = [];
  readonly #parser = createParser({ onEvent: (event) => void this.#events.push(event) });
  #lineLength = 0;
  #eventCount = 0;

  constructor(contentType: string, fault: RequestErrors) {
    this.#contentType = contentType;
    this.#fault = fault;
  }

  *feed(text: string): Generator<AnswerPart, boolean, undefined> {
    // The parser buffers a line of any length until it ends.
    const lineEnd = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r"));
    this.#lineLength = lineEnd === -1 ? this.#lineLength + text.length : text.length - lineEnd - 1;
    if (this.#lineLength > longestEvent) throw this.#tooLong();
    this.#parser.feed(text);
    for (const event of this.#events.splice(0)) {
      const part = this.#toPart(event);
      if (part === undefined) continue;
      yield part;
      if (part.kind === "end") return true;
    }
    return false;
  }

  // Some servers omit the blank line after the last event.
  *end(text: string): Generator<AnswerPart, void, undefined> {
    if (yield* this.feed(`${text}\n\n`)) return;
    if (this.#eventCount > 0) return;
    const type = this.#contentType === "" ? "without a content type" : `of type ${this.#fault.quote(this.#contentType)}`;
    const happened = `sent an answer ${type} that is neither JSON nor a stream of events. Check the base URL; many end in "/v1".`;
    throw this.#fault("MODEL_BAD_ANSWER", happened, { retryable: false });
  }

  #toPart({ data, event }: EventSourceMessage): AnswerPart | undefined {
    this.#eventCount += 1;
    if (data.length > longestEvent) throw this.#tooLong();
    const text = data.trim();
    if (text === "[DONE]") return { kind: "end" };
    if (text === "") return undefined;
    const value = parseJson(text);
    if (value !== undefined) return { kind: "event", value };
    // An unreadable event means that a part of the reply is lost.
    if (event !== undefined && !namesOfParts.test(event)) return undefined;
    const happened = `sent an event that is not JSON: ${this.#fault.quote(text.slice(0, 200))}`;
    throw this.#fault("MODEL_BAD_ANSWER", happened, { retryable: false });
  }

  #tooLong(): Error {
    return this.#fault("MODEL_BAD_ANSWER", `sent an event of more than ${longestEvent} characters.`, { retryable: false });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // undefined is not a JSON value, so it marks an unreadable text.
    return undefined;
  }
}
