import { classifyInboundRequest, createMcpHandler, isJsonContentType } from "@modelcontextprotocol/server";
import { toError } from "../../base/errors.ts";
import { hasTooManyValues, isNestedTooDeep, isRecord, maxJsonDepth, maxJsonValues } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import { onAbort } from "../../base/wait.ts";
import type { McpList, McpPeer, PassedRequest, PassedResponse } from "../../plugin-host/mcp-peers.ts";
import { type AnsweredError, answerError, type HttpExchange, type RequestHead, type ResponseSink } from "../http/http-exchange.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import type { McpEndpoint, OpenEndpoint } from "./endpoint.ts";
import { disagreeingHeader } from "./handlers/call-tool.ts";
import { placeOf } from "./input-required-calls.ts";
import { isPlainRequest } from "./json-rpc-message.ts";
import { type LegacySessionLimits, LegacySessions } from "./legacy-sessions.ts";
import { headOf, PassedSink, sendTo } from "./passed-response.ts";
import { ListenedResourceSubscriptions } from "./server-resource-subscriptions.ts";
import { answerOutOfReach, SessionPeers } from "./shared-sessions.ts";

/** Answers requests that the guard allowed. */
export interface HttpRoutes extends AsyncDisposable {
  /**
   * Answers invalid requests and those of sessions, and returns undefined. Other requests are for `fetch`, with the returned body.
   */
  readonly receive: (incoming: RequestHead, outgoing: ResponseSink, bytes: Buffer) => Promise<ParsedBody | undefined>;
  /** Answers requests of revision 2026-07-28. */
  readonly fetch: (request: Request, body: unknown) => Promise<Response>;
}

/**
 * Serves both eras of the protocol at one URL: requests of revision 2026-07-28 share a session of the host, and earlier clients
 * start their own with `initialize`.
 */
export async function createHttpRoutes(endpoint: McpEndpoint, limits: LegacySessionLimits, log: Logger): Promise<HttpRoutes> {
  const passed = new PassedRequests(log);
  const seat = endpoint.peers?.join(passed);
  const shared = await endpoint.open({ isShared: true, place: seat?.id });
  const { notify, fetch, close } = createMcpHandler(() => createMcpServer(shared.parts, "modern"), {
    legacy: "reject",
    onerror: (error) => log.debug("A request of an MCP client was rejected.", { error }),
  });
  const notifiers = { tools: notify.toolsChanged, prompts: notify.promptsChanged, resources: notify.resourcesChanged };
  const listChanges = shared.served.onChanged((list) => {
    notifiers[list]();
    seat?.announce(list);
  });
  const listened = new ListenedResourceSubscriptions(shared.watches, notify.resourceUpdated);
  const peers = seat && new SessionPeers(seat, log);
  const sessions = new LegacySessions(() => endpoint.connect(), limits, log, peers);
  const answer: HttpRoutes["fetch"] = async (request, body) => {
    const header = parameterFault(body, request.headers, shared);
    if (header !== undefined) return refuseHeader(header, body);
    const listening = listened.add(body);
    if (listening !== undefined) onAbort(request.signal, () => listening[Symbol.dispose]());
    return fetch(request, { parsedBody: body });
  };
  passed.open({ sessions, answer, notify: (list) => notifiers[list]() });
  return {
    async receive(incoming, outgoing, bytes) {
      const read = readBody(incoming, bytes);
      if (isFault(read)) answerError(outgoing, read);
      else if (isLegacy(incoming, read.body)) await sessions.handle({ incoming, outgoing, body: read.body });
      else if (peers === undefined || !(await isAnsweredElsewhere(peers, { incoming, outgoing, body: read.body }, log))) return read;
      return undefined;
    },
    fetch: answer,
    async [Symbol.asyncDispose]() {
      listChanges[Symbol.dispose]();
      passed[Symbol.dispose]();
      // First, so that peers continue its sessions at once.
      await seat?.[Symbol.asyncDispose]();
      await Promise.all([close(), sessions[Symbol.asyncDispose]()]);
      await shared[Symbol.asyncDispose]();
    },
  };
}

/** Passes a request to the server at which its call waits for answers. False: it is for this one. */
async function isAnsweredElsewhere(peers: SessionPeers, exchange: HttpExchange, log: Logger): Promise<boolean> {
  const place = placeOf(exchange.body);
  if (place === undefined || place === peers.id) return false;
  try {
    // One that is gone has taken the call with it, which is what the client hears here.
    return (await peers.pass(place, exchange)) !== "absent";
  } catch (error) {
    log.warning("A request of an MCP client could not be passed to the server of its call.", { error: toError(error) });
    answerOutOfReach(exchange);
    return true;
  }
}

interface PassedRoutes {
  readonly sessions: LegacySessions;
  readonly answer: HttpRoutes["fetch"];
  readonly notify: (list: McpList) => void;
}

/** After a change at a peer, others may follow: clients hear of them together, when the last one is likely to have it. */
const notifyAfterMs = 250;

/** Answers what peers pass. Before the routes are open, nothing is here. */
class PassedRequests implements McpPeer, Disposable {
  readonly #log: Logger;
  readonly #changed = new Map<McpList, NodeJS.Timeout>();
  #routes: PassedRoutes | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  open(routes: PassedRoutes): void {
    this.#routes = routes;
  }

  answer(request: PassedRequest, response: PassedResponse): void {
    const sink = new PassedSink(response);
    void this.#answer(request, sink, response.signal).catch((error: unknown) => {
      this.#log.warning("A request that another server passed failed.", { error: toError(error) });
      sink.destroy();
    });
  }

  /** A client may have asked a server that had not changed yet, so it hears of it again. Earlier clients are with one server alone. */
  listChanged(list: McpList): void {
    clearTimeout(this.#changed.get(list));
    this.#changed.set(list, setTimeout(() => this.#routes?.notify(list), notifyAfterMs).unref());
  }

  sessionTaken(sessionId: string): void {
    this.#routes?.sessions.taken(sessionId);
  }

  [Symbol.dispose](): void {
    for (const timer of this.#changed.values()) clearTimeout(timer);
    this.#routes = undefined;
  }

  async #answer(request: PassedRequest, sink: PassedSink, signal: AbortSignal): Promise<void> {
    if (this.#routes === undefined) return sink.refuse();
    const incoming = headOf(request);
    const read = readBody(incoming, Buffer.from(request.body));
    if (isFault(read)) return answerError(sink, read);
    const { sessions, answer } = this.#routes;
    if (isLegacy(incoming, read.body)) {
      if (!sessions.handlePassed({ incoming, outgoing: sink, body: read.body })) sink.refuse();
      return;
    }
    const { method, headers } = request;
    const init = { method, headers, signal, body: method === "POST" ? request.body : null };
    await sendTo(sink, await answer(new Request("http://localhost/", init), read.body));
  }
}

interface ParsedBody {
  /** Undefined: the request has no body. */
  readonly body: unknown;
}

function readBody({ method, headers }: RequestHead, bytes: Buffer): ParsedBody | AnsweredError {
  if (method !== "POST") return { body: undefined };
  const type = headers["content-type"] ?? null;
  if (type !== "application/json" && !isJsonContentType(type)) return { status: 415, message: "Content-Type must be application/json." };
  if (hasTooManyValues(bytes)) return { status: 413, code: -32600, message: `Invalid Request: it has more than ${maxJsonValues} values.` };
  try {
    const body: unknown = JSON.parse(bytes.toString("utf8"));
    if (!isNestedTooDeep(body)) return { body };
  } catch {
    return { status: 400, code: -32700, message: "Parse error: the body is not valid JSON." };
  }
  return { status: 400, code: -32600, message: `Invalid Request: it is nested more than ${maxJsonDepth} levels deep.` };
}

function isFault(read: ParsedBody | AnsweredError): read is AnsweredError {
  return "status" in read;
}

const firstModernVersion = "2026-07-28";

/** Whether a request belongs to protocol revisions up to 2025-11-25. */
function isLegacy({ method = "", headers }: RequestHead, body: unknown): boolean {
  const version = textOrUndefined(headers["mcp-protocol-version"]);
  if (method === "POST" && isPlainRequest(body)) return version === undefined || version < firstModernVersion;
  const [mcpMethodHeader, mcpNameHeader] = [textOrUndefined(headers["mcp-method"]), textOrUndefined(headers["mcp-name"])];
  const classified = classifyInboundRequest({
    httpMethod: method,
    ...(version !== undefined && { protocolVersionHeader: version }),
    ...(mcpMethodHeader !== undefined && { mcpMethodHeader }),
    ...(mcpNameHeader !== undefined && { mcpNameHeader }),
    ...(body !== undefined && { body }),
  });
  return classified.kind === "legacy";
}

function textOrUndefined(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === "string" ? header : undefined;
}

function parameterFault(body: unknown, headers: Headers, { served }: OpenEndpoint): string | undefined {
  if (!isRecord(body) || body["method"] !== "tools/call" || !isRecord(body["params"])) return undefined;
  const { name, arguments: args } = body["params"];
  const tool = typeof name === "string" ? served.session.catalog.executables.get(name) : undefined;
  return tool?.definition.parameters && disagreeingHeader(tool.definition.parameters, args, headers);
}

function refuseHeader(header: string, body: unknown): Response {
  const id = isRecord(body) && (typeof body["id"] === "string" || typeof body["id"] === "number") ? body["id"] : null;
  const error = { code: -32020, message: `The header ${header} differs from the arguments.` };
  return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
}
