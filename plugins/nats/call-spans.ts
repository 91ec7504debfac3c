import type { Context, Span, Tracer } from "@opentelemetry/api";
import type { CallMessage } from "./call-messages.ts";

type Api = typeof import("@opentelemetry/api");

/** The span of one call at a worker. */
export interface CallSpan {
  /** The span in W3C form, for the handler. */
  readonly headers: Pick<CallMessage, "traceparent" | "tracestate">;
  /** Runs work so that spans which it begins are children of this one. */
  within<T>(work: () => T): T;
  /** `error`: a code, never a message, which may quote arguments. */
  end(error?: string): void;
}

/** Spans of the calls that a worker serves. Each continues the trace of the host that calls. */
export interface CallSpans {
  begin(tool: string, call: CallMessage, worker: string): CallSpan;
}

// Where every copy of the API, of any version 1, keeps what was registered. Looking there costs nothing.
const registry = Symbol.for("opentelemetry.js.api.1");

/** Undefined while no OpenTelemetry SDK is registered in this process: then nothing is imported, and a call has nothing to pay for. */
export async function openCallSpans(version: string): Promise<CallSpans | undefined> {
  const registered = (globalThis as { readonly [registry]?: { readonly trace?: unknown } })[registry];
  if (registered?.trace === undefined) return undefined;
  const api = await import("@opentelemetry/api");
  const tracer = api.trace.getTracer("skillhost/plugins/nats", version);
  return { begin: (tool, call, worker) => beginSpan(api, tracer, { tool, call, worker }) };
}

interface Served {
  readonly tool: string;
  readonly call: CallMessage;
  readonly worker: string;
}

function beginSpan(api: Api, tracer: Tracer, { tool, call, worker }: Served): CallSpan {
  const around = contextOf(api, call);
  const attributes = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": tool,
    "gen_ai.tool.call.id": call.toolCall,
    "gen_ai.conversation.id": call.session,
    "messaging.system": "nats",
    "service.instance.id": worker,
  };
  const span = tracer.startSpan(`execute_tool ${tool}`, { kind: api.SpanKind.SERVER, attributes }, around);
  const inside = api.trace.setSpan(around, span);
  return {
    headers: headersOf(api, span),
    within: (work) => api.context.with(inside, work),
    end: (error) => {
      if (error !== undefined) span.setAttribute("error.type", error).setStatus({ code: api.SpanStatusCode.ERROR });
      span.end();
    },
  };
}

/** The place in the trace of the host. Read here, because which propagator the SDK of a worker has is its own matter. */
function contextOf(api: Api, { traceparent = "", tracestate }: CallMessage): Context {
  const [, traceId, spanId, flags] = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})/.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return api.ROOT_CONTEXT;
  const traceState = tracestate === undefined ? undefined : api.createTraceState(tracestate);
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true, ...(traceState && { traceState }) };
  return api.isSpanContextValid(parent) ? api.trace.setSpanContext(api.ROOT_CONTEXT, parent) : api.ROOT_CONTEXT;
}

function headersOf(api: Api, span: Span): CallSpan["headers"] {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  if (!api.isSpanContextValid({ traceId, spanId, traceFlags })) return {};
  const state = traceState?.serialize();
  const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
  return { traceparent: `00-${traceId}-${spanId}-${flags}`, ...(state !== undefined && state !== "" && { tracestate: state }) };
}
