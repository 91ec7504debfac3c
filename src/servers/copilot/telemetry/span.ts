import { randomBytes } from "node:crypto";
import { textOf } from "../../../base/json.ts";

/** Seconds and nanoseconds since 1970. */
export type SpanTime = readonly [seconds: number, nanoseconds: number];

export type SpanAttributes = Record<string, string | number | boolean | readonly string[]>;

/** Where a span belongs. */
export interface SpanParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly tracestate?: string | undefined;
}

export interface SpanEvent {
  readonly name: string;
  readonly attributes: SpanAttributes;
  readonly time: SpanTime;
}

/** The kinds of spans that are used, with their numbers in the file. */
export type SpanKind = "internal" | "client";

/** Takes the spans that have ended. */
export interface SpanOutput {
  /** The members of a span that are the same for all. */
  readonly origin: object;
  write(record: object): void;
}

/** The most events of one span, as in the defaults of OpenTelemetry. */
const mostEvents = 128;

/** A span that has begun. It is written when it ends. */
export class Span implements SpanParent {
  readonly traceId: string;
  readonly spanId: string = randomBytes(8).toString("hex");
  readonly tracestate: string | undefined;
  readonly startTime: SpanTime;
  readonly attributes: SpanAttributes;
  /** The end, if it was before the span is written. */
  endTime: SpanTime | undefined;
  failure: string | undefined;
  readonly #output: SpanOutput;
  readonly #name: string;
  readonly #kind: SpanKind;
  readonly #parentSpanId: string | undefined;
  readonly #events: SpanEvent[] = [];
  #droppedEvents = 0;
  #isWritten = false;

  constructor(output: SpanOutput, name: string, kind: SpanKind, parent: SpanParent | undefined, attributes: SpanAttributes) {
    this.#output = output;
    this.#name = name;
    this.#kind = kind;
    this.traceId = parent?.traceId ?? randomBytes(16).toString("hex");
    this.#parentSpanId = parent?.spanId;
    this.tracestate = parent?.tracestate;
    this.startTime = now();
    this.attributes = attributes;
  }

  /** The span in W3C form (Trace Context, level 1). */
  get headers(): { readonly traceparent: string; readonly tracestate?: string } {
    const traceparent = `00-${this.traceId}-${this.spanId}-01`;
    return this.tracestate === undefined ? { traceparent } : { traceparent, tracestate: this.tracestate };
  }

  addEvent(name: string, attributes: SpanAttributes, time: SpanTime = now()): void {
    if (this.#events.length < mostEvents) this.#events.push({ name, attributes, time });
    else this.#droppedEvents += 1;
  }

  /** Marks the span as failed. The message must not contain what is not to be exported. */
  fail(type: string, message: string, details: SpanAttributes = {}): void {
    this.failure = message;
    this.attributes["error.type"] = type;
    const about = { ...details, "exception.type": type, "exception.message": message };
    this.addEvent("gen_ai.client.operation.exception", about);
  }

  /** Writes the span, once. Returns the seconds that it took. */
  end(): number {
    const { startTime, attributes, failure } = this;
    const endTime = this.endTime ?? now();
    if (!this.#isWritten) {
      this.#isWritten = true;
      this.#output.write({
        type: "span",
        traceId: this.traceId,
        spanId: this.spanId,
        ...(this.#parentSpanId !== undefined && { parentSpanId: this.#parentSpanId }),
        name: this.#name,
        kind: this.#kind === "client" ? 2 : 0,
        startTime,
        endTime,
        attributes,
        status: failure === undefined ? { code: 0 } : { code: 2, message: failure },
        events: this.#events.map((event) => ({ ...event, droppedAttributesCount: 0 })),
        ...(this.#droppedEvents > 0 && { droppedEventsCount: this.#droppedEvents }),
        ...this.#output.origin,
      });
    }
    return endTime[0] - startTime[0] + (endTime[1] - startTime[1]) / 1e9;
  }
}

/** The time by a clock that does not jump while the process runs. */
export function now(): SpanTime {
  const time = performance.timeOrigin + performance.now();
  const seconds = Math.floor(time / 1000);
  return [seconds, Math.round((time - seconds * 1000) * 1e6)];
}

/** A place in W3C form (Trace Context, level 1). */
export function parsePlace(traceparent: unknown, tracestate: unknown): SpanParent | undefined {
  const [, version, traceId, spanId] = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(?:-|$)/.exec(textOf(traceparent)) ?? [];
  if (traceId === undefined || spanId === undefined || version === "ff" || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const state = textOf(tracestate);
  return { traceId, spanId, tracestate: state === "" || state.length > 512 ? undefined : state };
}
