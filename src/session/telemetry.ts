import { createRequire } from "node:module";
import type { Attributes, Context, Span, Tracer } from "@opentelemetry/api";
import { toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { packageVersion } from "../base/package-root.ts";

/** A place in a trace. Opaque to all but this module. */
export type TraceContext = Context;

/** What a span is of, and what is to be known of it. */
export type StepFacts =
  | { readonly kind: "agent" }
  /** A model call. `provider`: `openai` for everything that speaks its protocol. `address`: host and port, or host alone. */
  | { readonly kind: "model"; readonly model: string; readonly provider: string; readonly address: string }
  | { readonly kind: "tool"; readonly id: string; readonly name: string; readonly description: string | undefined }
  /** A request to an MCP server, by the server's own name for the tool. */
  | { readonly kind: "mcp"; readonly tool: string; readonly transport: "stdio" | "http" | "sse" | undefined };

/** What a step came to. An error is a code, never a message: those quote what was said. */
export interface StepEnd {
  readonly error?: string | undefined;
  readonly attributes?: Attributes | undefined;
}

/**
 * Spans of a session by the OpenTelemetry conventions for generative AI and for MCP: `invoke_agent`, `chat <model>`,
 * `execute_tool <name>`, `tools/call <name>`. They hold names, ids and counts, nothing of what was said. Where they go is
 * decided by the SDK that the program has registered; a fault of it is logged and keeps nothing from running.
 */
export interface Telemetry {
  /** `parent` absent: the caller's own place, where the program's context manager knows it. */
  begin(facts: StepFacts, agentId: string | undefined, parent: TraceContext | undefined): TracedStep | undefined;
}

/**
 * Undefined while no tracing SDK is registered in this process: then there is nothing to pay for, not even the import.
 * It is decided here, once; an SDK that is registered later counts for later sessions.
 */
export function createTelemetry(sessionId: string, log: Logger): Telemetry | undefined {
  if (!isRegistered()) return undefined;
  try {
    const api = loadApi();
    return new SessionTelemetry(api, api.trace.getTracer("skillhost", packageVersion), sessionId, log);
  } catch (error) {
    log.error("Tracing failed.", { sessionId, error: toError(error) });
    return undefined;
  }
}

type Api = typeof import("@opentelemetry/api");

// Where every copy of the API, of any version 1, keeps what was registered. Looking there costs nothing; the API takes
// 20 ms to import.
const registry = Symbol.for("opentelemetry.js.api.1");

function isRegistered(): boolean {
  const registered = (globalThis as { readonly [registry]?: { readonly trace?: unknown } })[registry];
  return registered?.trace !== undefined;
}

let api: Api | undefined;

function loadApi(): Api {
  api ??= createRequire(import.meta.url)("@opentelemetry/api") as Api;
  return api;
}

class SessionTelemetry implements Telemetry {
  readonly #api: Api;
  readonly #tracer: Tracer;
  readonly #sessionId: string;
  readonly #log: Logger;

  constructor(otel: Api, tracer: Tracer, sessionId: string, log: Logger) {
    this.#api = otel;
    this.#tracer = tracer;
    this.#sessionId = sessionId;
    this.#log = log;
  }

  begin(facts: StepFacts, agentId: string | undefined, parent: TraceContext | undefined): TracedStep | undefined {
    const { name, isRemote, attributes: own } = describeStep(facts);
    try {
      const attributes = {
        ...own,
        "gen_ai.conversation.id": this.#sessionId,
        ...(agentId !== undefined && { "gen_ai.agent.id": agentId }),
      };
      const { SpanKind, context } = this.#api;
      const around = parent ?? context.active();
      const span = this.#tracer.startSpan(name, { kind: isRemote ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes }, around);
      return new TracedStep(this.#api, span, around, this.#log);
    } catch (error) {
      this.#log.error("A span could not be started.", { span: name, sessionId: this.#sessionId, error: toError(error) });
      return undefined;
    }
  }
}

function describeStep(facts: StepFacts): { readonly name: string; readonly isRemote: boolean; readonly attributes: Attributes } {
  switch (facts.kind) {
    case "agent":
      return { name: "invoke_agent", isRemote: false, attributes: { "gen_ai.operation.name": "invoke_agent" } };
    case "model": {
      const { model, provider, address } = facts;
      const names = { "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model };
      return { name: `chat ${model}`, isRemote: true, attributes: { ...names, ...serverOf(address) } };
    }
    case "tool": {
      const { id, name, description } = facts;
      const about = description === undefined ? {} : { "gen_ai.tool.description": description };
      const attributes = { ...toolCall(name), "gen_ai.tool.call.id": id, "gen_ai.tool.type": "function", ...about };
      return { name: `execute_tool ${name}`, isRemote: false, attributes };
    }
    case "mcp": {
      const { tool, transport } = facts;
      const network = transport === undefined ? {} : { "network.transport": transport === "stdio" ? "pipe" : "tcp" };
      return { name: `tools/call ${tool}`, isRemote: true, attributes: { "mcp.method.name": "tools/call", ...toolCall(tool), ...network } };
    }
  }
}

function toolCall(name: string): Attributes {
  return { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name };
}

/** A span that has begun. */
export class TracedStep {
  /** The parent for what happens within. */
  readonly context: TraceContext;
  readonly #api: Api;
  readonly #span: Span;
  readonly #log: Logger;

  constructor(otel: Api, span: Span, around: Context, log: Logger) {
    this.#api = otel;
    this.#span = span;
    this.#log = log;
    this.context = otel.trace.setSpan(around, span);
  }

  /** Runs work so that spans which it begins by itself are children of this one. */
  within<T>(work: () => T): T {
    return this.#api.context.with(this.context, work);
  }

  /** The step in W3C form (Trace Context, level 1), for propagation; empty when the span is not valid. */
  get headers(): { readonly traceparent?: string; readonly tracestate?: string } {
    try {
      const { traceId, spanId, traceFlags, traceState } = this.#span.spanContext();
      if (!this.#api.isSpanContextValid({ traceId, spanId, traceFlags })) return {};
      const state = traceState?.serialize();
      const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
      return { traceparent: `00-${traceId}-${spanId}-${flags}`, ...(state && { tracestate: state }) };
    } catch (error) {
      this.#log.error("A span has no readable context.", { error: toError(error) });
      return {};
    }
  }

  end({ error, attributes }: StepEnd = {}): void {
    try {
      if (attributes !== undefined) this.#span.setAttributes(attributes);
      if (error !== undefined) {
        this.#span.setAttribute("error.type", error);
        this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
      }
      this.#span.end();
    } catch (fault) {
      this.#log.error("A span could not be ended.", { error: toError(fault) });
    }
  }
}

const places = new WeakMap<object, TraceContext>();

/** Says where in a trace the calls of a conversation's turn belong. */
export function placeInTrace(scope: object, context: TraceContext): void {
  places.set(scope, context);
}

export function placeOf(scope: object): TraceContext | undefined {
  return places.get(scope);
}

/** The code of whatever was thrown, for `error.type`. */
export function errorType(error: unknown): string {
  const { code, name } = toError(error) as Error & { readonly code?: unknown };
  return typeof code === "string" ? code : name;
}

function serverOf(address: string): Attributes {
  const [, host = address, port] = /^(.*?)(?::(\d+))?$/.exec(address) ?? [];
  return { "server.address": host, ...(port !== undefined && { "server.port": Number(port) }) };
}
