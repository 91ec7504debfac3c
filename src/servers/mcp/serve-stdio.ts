import type { Readable } from "node:stream";
import { type JSONRPCMessage, PROTOCOL_VERSION_META_KEY, type Server, type Transport } from "@modelcontextprotocol/server";
import { serveStdio as serveConnection } from "@modelcontextprotocol/server/stdio";
import { hasTooManyValues, isNestedTooDeep, isRecord, maxJsonDepth, maxJsonValues } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import type { ConnectionEra } from "./create-mcp-server.ts";
import type { McpEndpoint, OpenEndpoint } from "./endpoint.ts";
import { ListenedResourceSubscriptions } from "./server-resource-subscriptions.ts";

/** A server for one client over two streams. */
export interface McpStdioServer extends AsyncDisposable {
  /** Settles when the connection is closed and its session has ended. */
  readonly closed: Promise<void>;
}

/** Serves one client over two streams, in the era of the protocol that its first message selects. */
export async function serveStdio(
  endpoint: McpEndpoint,
  streams: Omit<LineTransportOptions, "onInbound">,
  log: Logger,
): Promise<McpStdioServer> {
  const opened = await endpoint.open({ isShared: false });
  let notifyUpdated: (uri: string) => void = () => {};
  const transport = new LineTransport({ ...streams, onInbound: createListenWatch(opened, (uri) => notifyUpdated(uri)) });
  const onerror = (error: Error): void => log.warning("The connection with an MCP client reported an error.", { error });
  const createServer = (era: ConnectionEra): Server => {
    const server = opened.createServer(era);
    notifyUpdated = (uri) => void server.sendResourceUpdated({ uri }).catch(() => {});
    return server;
  };
  transport.onmessage = (first) => {
    // The server that is connected next receives the first message again.
    transport.onmessage = undefined;
    transport.takeBack(first);
    // After the old handshake no era has to be negotiated, so the server is connected directly.
    if (isOldHandshake(first)) void createServer("legacy").connect(transport).catch(onerror);
    else serveConnection(({ era }) => createServer(era), { transport, onerror });
  };
  transport.onerror = onerror;
  await transport.start();
  const closed = transport.closed.then(() => opened[Symbol.asyncDispose]());
  return {
    closed,
    async [Symbol.asyncDispose]() {
      await transport.close();
      await closed;
    },
  };
}

function isOldHandshake(message: JSONRPCMessage): boolean {
  if (!("method" in message) || message.method !== "initialize") return false;
  const meta = message.params?.["_meta"];
  return !isRecord(meta) || meta[PROTOCOL_VERSION_META_KEY] === undefined;
}

/** Subscribes to the resources that `subscriptions/listen` names, until the request is cancelled. */
function createListenWatch({ watches }: OpenEndpoint, notify: (uri: string) => void): (message: JSONRPCMessage) => void {
  const listened = new ListenedResourceSubscriptions(watches, notify);
  const open = new Map<unknown, Disposable>();
  const end = (id: unknown): void => {
    open.get(id)?.[Symbol.dispose]();
    open.delete(id);
  };
  return (message) => {
    if (!("method" in message)) return;
    const added = listened.add(message);
    if (added !== undefined && "id" in message) {
      end(message.id);
      open.set(message.id, added);
    }
    if (message.method === "notifications/cancelled" && isRecord(message.params)) end(message.params["requestId"]);
  };
}

/** The destination of a server's lines. Writing never throws. */
export interface LineOutput {
  write(text: string): void;
}

interface LineTransportOptions {
  readonly input: Readable;
  readonly output: LineOutput;
  /** Called with each incoming message before the server gets it. */
  onInbound?(message: JSONRPCMessage): void;
  /** Milliseconds within which open requests can still be answered after the input has ended. Default: 2,000. */
  readonly graceMs?: number | undefined;
}

/** A longer message ends the connection, since the following messages cannot be separated from it. */
const maxLineBytes = 16 * 1024 * 1024;

type Id = string | number;

/**
 * MCP over two streams of lines. When the input ends, running requests are still answered within a grace period; then the
 * connection is closed. Passes on valid messages of JSON-RPC 2.0, whose parameters the server checks.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  /** Settles when either side has closed the connection. */
  readonly closed: Promise<void>;
  readonly #options: LineTransportOptions;
  readonly #unanswered = new Set<Id>();
  #parts: Buffer[] = [];
  #size = 0;
  #outgoing: string[] = [];
  /** Messages that arrived without a handler. The next handler gets them first. */
  readonly #undelivered: JSONRPCMessage[] = [];
  #handler: ((message: JSONRPCMessage) => void) | undefined;
  #isStarted = false;
  #isClosed = false;
  #hasEnded = false;
  #settleClosed: () => void = () => {};

  constructor(options: LineTransportOptions) {
    this.#options = options;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
  }

  get onmessage(): ((message: JSONRPCMessage) => void) | undefined {
    return this.#handler;
  }

  /** Delivers earlier messages in a microtask, since a new owner of the connection may set the handler twice. */
  set onmessage(handler: ((message: JSONRPCMessage) => void) | undefined) {
    this.#handler = handler;
    if (handler !== undefined && this.#undelivered.length > 0) queueMicrotask(() => this.#deliver());
  }

  /** Takes a message back, for the next handler. */
  takeBack(message: JSONRPCMessage): void {
    this.#undelivered.unshift(message);
  }

  /** Starts reading. A new owner of the connection may call it again. */
  async start(): Promise<void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const { input } = this.#options;
    input.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onEnd).on("error", this.#onError);
    if (input.readableEnded || input.destroyed) setImmediate(this.#onEnd);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) throw new Error("The connection is closed.");
    const { id, method } = message as { readonly id?: Id; readonly method?: string };
    if (this.#outgoing.length === 0) setImmediate(this.#flush);
    this.#outgoing.push(`${JSON.stringify(message)}\n`);
    if (id !== undefined && method === undefined) this.#settle(id);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#flush();
    this.#isClosed = true;
    const { input } = this.#options;
    input.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onEnd).off("error", this.#onError);
    input.pause();
    this.#parts = [];
    this.onclose?.();
    this.#settleClosed();
  }

  /** Writes all messages of one turn of the event loop together, since a write takes as long as the creation of many messages. */
  readonly #flush = (): void => {
    if (this.#outgoing.length === 0) return;
    const text = this.#outgoing.join("");
    this.#outgoing = [];
    this.#options.output.write(text);
  };

  readonly #onData = (chunk: Buffer | string): void => {
    let rest = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    for (let end = rest.indexOf(10); end !== -1 && !this.#isClosed; end = rest.indexOf(10)) {
      this.#take(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
    }
    if (rest.length === 0 || this.#isClosed) return;
    this.#parts.push(rest);
    this.#size += rest.length;
    if (this.#size <= maxLineBytes) return;
    this.onerror?.(new Error(`A message is longer than ${maxLineBytes} bytes. The connection is closed.`));
    void this.close();
  };

  #take(end: Buffer): void {
    const line = this.#parts.length === 0 ? end : Buffer.concat([...this.#parts, end]);
    this.#parts = [];
    this.#size = 0;
    if (hasTooManyValues(line)) {
      this.onerror?.(new Error(`A message has more than ${maxJsonValues} values. The connection is closed.`));
      return void this.close();
    }
    const text = line.toString("utf8").trim();
    if (text !== "") this.#receive(text);
  }

  #receive(text: string): void {
    const message = parse(text);
    if (!isRecord(message)) {
      // Without an id it cannot be answered.
      this.onerror?.(new Error(`A line is not a JSON-RPC message and was ignored: ${text.slice(0, 100)}`));
    } else if (isNestedTooDeep(message)) this.#refuse(message["id"], `it is nested more than ${maxJsonDepth} levels deep`);
    else if (isMessage(message)) this.#pass(message);
    else this.#refuse(message["id"], "this is not a JSON-RPC 2.0 message");
  }

  #pass(message: Readonly<Record<string, unknown>>): void {
    const { id, method, params } = message;
    // A `subscriptions/listen` request is answered when the connection ends.
    if (method !== undefined && method !== "subscriptions/listen" && isId(id)) this.#unanswered.add(id);
    const cancelled = method === "notifications/cancelled" && isRecord(params) ? params["requestId"] : undefined;
    if (isId(cancelled)) this.#unanswered.delete(cancelled);
    this.#options.onInbound?.(message as unknown as JSONRPCMessage);
    this.#undelivered.push(message as unknown as JSONRPCMessage);
    this.#deliver();
  }

  #deliver(): void {
    while (this.#handler !== undefined && this.#undelivered.length > 0) this.#handler(this.#undelivered.shift() as JSONRPCMessage);
  }

  /** Answers an invalid message if it has an id. */
  #refuse(id: unknown, why: string): void {
    this.onerror?.(new Error(`A message was rejected: ${why}.`));
    if (!isId(id)) return;
    const error = { code: -32600, message: `Invalid Request: ${why}.` };
    void this.send({ jsonrpc: "2.0", id, error });
  }

  #settle(id: Id): void {
    this.#unanswered.delete(id);
    if (this.#hasEnded && this.#unanswered.size === 0) void this.close();
  }

  readonly #onEnd = (): void => {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#size > 0) this.#take(Buffer.alloc(0));
    if (this.#unanswered.size === 0) void this.close();
    else setTimeout(() => void this.close(), this.#options.graceMs ?? 2_000).unref();
  };

  readonly #onError = (error: Error): void => {
    this.onerror?.(error);
    void this.close();
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller reports every line that is not a message.
    return undefined;
  }
}

function isMessage({ jsonrpc, id, method, params }: Readonly<Record<string, unknown>>): boolean {
  if (jsonrpc !== "2.0" || !(params === undefined || isRecord(params))) return false;
  if (params?.["_meta"] !== undefined && !isRecord(params["_meta"])) return false;
  return method === undefined ? isId(id) : typeof method === "string" && (id === undefined || isId(id));
}

function isId(value: unknown): value is Id {
  return typeof value === "string" || typeof value === "number";
}
