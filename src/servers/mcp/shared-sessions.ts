import type { JSONRPCRequest } from "@modelcontextprotocol/server";
import { toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import type { McpSeat, SharedMcpSession } from "../../plugin-host/mcp-peers.ts";
import { answerError, type HttpExchange } from "../http/http-exchange.ts";
import { ClientResponse, toPassedRequest } from "./passed-response.ts";

/** A record that is not written again for this long could be removed as that of a server that is gone. */
const renewMs = 20 * 60_000;
const maxSubscriptions = 100;

/** What other servers need to continue a session. */
export class SharedSession {
  #requests: readonly JSONRPCRequest[];
  keptAt: number = Date.now();

  constructor(requests: readonly JSONRPCRequest[]) {
    this.#requests = requests;
  }

  get requests(): readonly JSONRPCRequest[] {
    return this.#requests;
  }

  get isDue(): boolean {
    return Date.now() - this.keptAt > renewMs;
  }

  /** Whether messages of the client change what is to be kept. */
  note(body: unknown): boolean {
    const changes = [body].flat().filter(isChange);
    for (const change of changes) this.#requests = [...this.#requests.filter((known) => !isReplaced(known, change)), ...lasting(change)];
    return changes.length > 0;
  }
}

const changing: ReadonlySet<unknown> = new Set(["logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);

function isChange(message: unknown): message is JSONRPCRequest {
  return isRecord(message) && changing.has(message["method"]) && isRecord(message["params"]);
}

function isReplaced(known: JSONRPCRequest, { method, params }: JSONRPCRequest): boolean {
  if (method === "logging/setLevel") return known.method === method;
  return known.method === "resources/subscribe" && known.params?.["uri"] === params?.["uri"];
}

function lasting({ method, params = {} }: JSONRPCRequest): readonly JSONRPCRequest[] {
  return method === "resources/unsubscribe" ? [] : [{ jsonrpc: "2.0", id: 0, method, params }];
}

/** The sessions that a server has in common with its peers. Where they are out of reach, each server has its own. */
export class SessionPeers {
  readonly #seat: McpSeat;
  readonly #log: Logger;

  constructor(seat: McpSeat, log: Logger) {
    this.#seat = seat;
    this.#log = log;
  }

  get id(): string {
    return this.#seat.id;
  }

  find(sessionId: string): Promise<SharedMcpSession | undefined> {
    return this.#seat.find(sessionId);
  }

  take(sessionId: string, found: SharedMcpSession): Promise<boolean> {
    return this.#seat.take(sessionId, found);
  }

  /** Never rejects: the session is served here in any case. */
  async keep(sessionId: string, session: SharedSession): Promise<void> {
    session.keptAt = Date.now();
    const requests = session.requests.slice(0, maxSubscriptions);
    await this.#seat.keep(sessionId, requests).catch((error: unknown) => {
      this.#log.warning("Other servers cannot continue a session of an MCP client.", { error: toError(error) });
    });
  }

  async forget(sessionId: string): Promise<void> {
    await this.#seat.forget(sessionId).catch((error: unknown) => {
      this.#log.debug("The record of an ended session remains until it expires.", { error: toError(error) });
    });
  }

  /** As that of the seat. With `lost`, the client has its answers. */
  async pass(to: string, exchange: HttpExchange): Promise<"ended" | "absent" | "lost"> {
    const response = new ClientResponse(exchange);
    const outcome = await this.#seat.pass(to, toPassedRequest(exchange), response);
    if (outcome === "lost") response.endLost();
    return outcome;
  }
}

/** @internal The requests of a record, which another server has written. */
export function readRequests({ requests }: SharedMcpSession): readonly JSONRPCRequest[] | undefined {
  const read = requests.filter((request): request is JSONRPCRequest & typeof request => typeof request["method"] === "string");
  return read[0]?.method === "initialize" ? read.map(({ method, params }) => ({ jsonrpc: "2.0", id: 0, method, params })) : undefined;
}

export function answerOutOfReach({ outgoing }: HttpExchange): void {
  answerError(outgoing, { status: 503, message: "The servers of this session are out of reach. Try again." });
}
