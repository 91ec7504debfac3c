import type { JSONRPCMessage, JSONRPCRequest } from "@modelcontextprotocol/client";
import { errorMessage } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { TrafficTap } from "../../base/traffic-tap.ts";
import type { ConnectionEnd } from "./connection.ts";
import type { FrameDirection } from "./frame-log.ts";
import type { ServerLink } from "./server-link.ts";

/** Keeps the requests to a server with their answers. What the server asks and announces by itself is not kept. */
export function recordMessages(tap: TrafficTap, server: string): (direction: FrameDirection, message: JSONRPCMessage) => void {
  const waiting = new Map<string | number, Json>();
  return (direction, message) => {
    if (direction === "out" && "method" in message && "id" in message) waiting.set(message.id, askedOf(server, message));
    if (direction !== "in" || "method" in message || message.id === undefined) return;
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (asked !== undefined) tap.record("mcp", asked, "error" in message ? { error: message.error } : { result: message.result });
  };
}

/** A request without what differs each time. */
function askedOf(server: string, { method, params }: Pick<JSONRPCRequest, "method" | "params">): Json {
  // The handshake names versions of the client.
  if (isHandshake(method) || params === undefined) return { server, method };
  const { _meta, ...rest } = params;
  return Object.keys(rest).length === 0 ? { server, method } : { server, method, params: rest };
}

function isHandshake(method: string): boolean {
  return method === "initialize" || method === "server/discover";
}

// What may have an effect, or another answer the next time. The rest, such as lists, is asked as often as clients like.
const counted: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"]);
// Requests that a client makes by itself, and whose answers change nothing that a test sees.
const optional = /^(?:subscriptions\/|resources\/(?:un)?subscribe$|logging\/|ping$)/;

/** A server that answers from a recording. Nothing is started. */
export class ReplayedLink implements ServerLink {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ServerLink["onmessage"];
  readonly ended: Promise<ConnectionEnd>;
  readonly pid: undefined;
  readonly #server: string;
  readonly #tap: TrafficTap;
  #resolveEnded: (end: ConnectionEnd) => void = () => {};
  #end: ConnectionEnd | undefined;

  constructor(server: string, tap: TrafficTap) {
    this.#server = server;
    this.#tap = tap;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  get end(): ConnectionEnd | undefined {
    return this.#end;
  }

  async start(): Promise<void> {}

  async send(message: JSONRPCMessage): Promise<void> {
    if (!("method" in message) || !("id" in message)) return;
    const answer = this.#answerTo(message);
    if (answer === undefined) return;
    // After the request, as a server's answer.
    setImmediate(() => this.onmessage?.({ jsonrpc: "2.0", id: message.id, ...answer } as JSONRPCMessage));
  }

  lose(message: string): void {
    this.#finish({ reason: "lost", message });
  }

  async close(): Promise<void> {
    this.#finish({ reason: "closed", message: `The recording of the MCP server ${this.#server} was closed.` });
  }

  #answerTo({ method, params }: JSONRPCRequest): Json | undefined {
    const asked = askedOf(this.#server, { method, params });
    if (optional.test(method)) return undefined;
    try {
      return this.#tap.replay("mcp", asked, { isRepeatable: !counted.has(method) });
    } catch (error) {
      return { error: { code: -32_603, message: errorMessage(error) } };
    }
  }

  #finish(end: ConnectionEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#resolveEnded(end);
    this.onclose?.();
  }
}
