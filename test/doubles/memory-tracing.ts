import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { onTestFinished } from "vitest";

/** A recorded span. */
export interface KeptSpan {
  readonly name: string;
  readonly kind: number | undefined;
  readonly context: SpanContext;
  readonly parentId: string | undefined;
  readonly attributes: Attributes;
  status: SpanStatus;
  ended: number;
}

export interface TraceDoubleOptions {
  /** Whether the program also has a context manager, as every SDK for Node.js brings one. */
  readonly contexts?: boolean;
  /** Replaces the start of a span. */
  readonly failWith?: Error;
  readonly traceState?: string;
}

/** Registers a provider that records spans in memory until the test ends. */
export function registerTracing(options: TraceDoubleOptions = {}): KeptSpan[] {
  const spans: KeptSpan[] = [];
  const provider: TracerProvider = { getTracer: () => new MemoryTracer(spans, options) };
  if (!trace.setGlobalTracerProvider(provider)) throw new Error("Another test has left its provider.");
  onTestFinished(() => trace.disable());
  if (options.contexts) {
    context.setGlobalContextManager(new StorageContexts());
    onTestFinished(() => context.disable());
  }
  return spans;
}

class MemoryTracer implements Tracer {
  readonly #spans: KeptSpan[];
  readonly #options: TraceDoubleOptions;

  constructor(spans: KeptSpan[], options: TraceDoubleOptions) {
    this.#spans = spans;
    this.#options = options;
  }

  startSpan(name: string, { kind, attributes }: SpanOptions = {}, around: Context = context.active()): Span {
    const { failWith, traceState } = this.#options;
    if (failWith) throw failWith;
    const parent = trace.getSpanContext(around);
    const own: SpanContext = {
      traceId: parent?.traceId ?? hex(this.#spans.length + 1, 32),
      spanId: hex(this.#spans.length + 1, 16),
      traceFlags: 1,
      ...(traceState !== undefined && { traceState: createTraceState(traceState) }),
    };
    const kept: KeptSpan = {
      name,
      kind,
      context: own,
      parentId: parent?.spanId,
      attributes: { ...attributes },
      status: { code: SpanStatusCode.UNSET },
      ended: 0,
    };
    this.#spans.push(kept);
    return spanOver(kept);
  }

  startActiveSpan(): never {
    throw new Error("Not implemented by this double.");
  }
}

function spanOver(kept: KeptSpan): Span {
  const attribute = (attributes: Attributes): Span => {
    Object.assign(kept.attributes, attributes);
    return span;
  };
  const span: Span = {
    spanContext: () => kept.context,
    setAttribute: (key, value) => attribute({ [key]: value }),
    setAttributes: attribute,
    setStatus(status) {
      kept.status = status;
      return span;
    },
    end: () => void kept.ended++,
    isRecording: () => kept.ended === 0,
    addEvent: () => span,
    addLink: () => span,
    addLinks: () => span,
    updateName: () => span,
    recordException: () => {},
  };
  return span;
}

class StorageContexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    current: Context,
    work: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(current, () => work.call(self as never, ...args));
  }

  bind<T>(_context: Context, target: T): T {
    return target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#storage.disable();
    return this;
  }
}

function hex(value: number, length: number): string {
  return value.toString(16).padStart(length, "0");
}
