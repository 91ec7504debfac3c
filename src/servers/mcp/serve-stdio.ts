import type { Readable } from "node:stream";
import { type JSONRPCMessage, PROTOCOL_VERSION_META_KEY, type Server, type Transport } from "@modelcontextprotocol/server";
import { serveStdio as serveConnection } from "@modelcontextprotocol/server/stdio";
import { isRecord } from "../../base/json.ts";
import { hasTooManyValues, isNestedTooDeep, maxJsonDepth, maxJsonValues } from "../../base/json-limits.ts";
import type { Logger } from "../../base/logger.ts";
import type { ConnectionEra } from "./create-mcp-server.ts";
import type { McpEndpoint, OpenEndpoint } from "./endpoint.ts";
import { ListenedResourceSubscriptions } from "./server-resource-subscriptions.ts";

/** One client at the other end of two streams. */
export interface McpStdioServer extends AsyncDisposable {
  /** Settles when the connection is over and everything behind it has ended. */
  readonly closed: Promise<void>;
}

/** Serves one client over two streams, in whichever era it begins. */
export async function serveStdio(
  face: McpEndpoint,
  streams: Omit<LineTransportOptions, "onInbound">,
  log: Logger,
): Promise<McpStdioServer> {
  const opened = await face.open({ isShared: false });
  let tell: (uri: string) => void = () => {};
  const transport = new LineTransport({ ...streams, onInbound: createListenWatch(opened, (uri) => tell(uri)) });
  const onerror = (error: Error): void => log.warning("The connection with an MCP client reported an error.", { error });
  const createServer = (era: ConnectionEra): Server => {
    const server = opened.createServer(era);
    tell = (uri) => void server.sendResourceUpdated({ uri }).catch(() => {});
    return server;
  };
  transport.onmessage = (first) => {
    // For whoever takes over, whenever they do.
    transport.onmessage = undefined;
    transport.takeBack(first);
    // What begins with the old handshake has nothing to choose any more, so that nothing need stand in between.
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

/** Watches what `subscriptions/listen` names until it is cancelled. */
function createListenWatch({ watches }: OpenEndpoint, tell: (uri: string) => void): (message: JSONRPCMessage) => void {
  const listened = new ListenedResourceSubscriptions(watches, tell);
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

/** Where a server's lines go. Writing never throws. */
export interface LineOutput {
  write(text: string): void;
}

interface LineTransportOptions {
  readonly input: Readable;
  readonly output: LineOutput;
  /** Sees each message that comes in before the server does. */
  onInbound?(message: JSONRPCMessage): void;
  /** How long requests that are open when the input ends may take to be answered, in milliseconds. Default: 2,000. */
  readonly graceMs?: number | undefined;
}

/** One message longer than this ends the connection: nothing after it can be told apart any more. */
const maxLineBytes = 16 * 1024 * 1024;

type Id = string | number;

/**
 * MCP over two streams of lines. When the input ends, what is being worked on is still answered, within a grace; then the
 * connection is closed. What it passes on is a message of JSON-RPC 2.0; what stands in it is for the server to check.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  /** Settles when the connection is closed, by whichever side. */
  readonly closed: Promise<void>;
  readonly #options: LineTransportOptions;
  readonly #unanswered = new Set<Id>();
  #parts: Buffer[] = [];
  #size = 0;
  #outgoing: string[] = [];
  /** Came while nobody took messages: the one who takes them next gets them first. */
  readonly #untaken: JSONRPCMessage[] = [];
  #taker: ((message: JSONRPCMessage) => void) | undefined;
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
    return this.#taker;
  }

  /** What came before is delivered a moment later: who takes over a connection may set it twice, or late. */
  set onmessage(taker: ((message: JSONRPCMessage) => void) | undefined) {
    this.#taker = taker;
    if (taker !== undefined && this.#untaken.length > 0) queueMicrotask(() => this.#deliver());
  }

  /** Takes a message back that was for somebody else, to be delivered to whoever takes messages next. */
  takeBack(message: JSONRPCMessage): void {
    this.#untaken.unshift(message);
  }

  /** Begins to read; whoever takes the connection over later may call it again. */
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

  /** What is sent in one turn of the event loop goes out in one write, which takes as long as many messages take to make. */
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
      // Without an id there is nobody to answer.
      this.onerror?.(new Error(`A line is not a JSON-RPC message and was ignored: ${text.slice(0, 100)}`));
    } else if (isNestedTooDeep(message)) this.#refuse(message["id"], `it is nested more than ${maxJsonDepth} levels deep`);
    else if (isMessage(message)) this.#pass(message);
    else this.#refuse(message["id"], "this is not a JSON-RPC 2.0 message");
  }

  #pass(message: Readonly<Record<string, unknown>>): void {
    const { id, method, params } = message;
    // Whoever listens is answered when the connection ends, and not before.
    if (method !== undefined && method !== "subscriptions/listen" && isId(id)) this.#unanswered.add(id);
    const cancelled = method === "notifications/cancelled" && isRecord(params) ? params["requestId"] : undefined;
    if (isId(cancelled)) this.#unanswered.delete(cancelled);
    this.#options.onInbound?.(message as unknown as JSONRPCMessage);
    this.#untaken.push(message as unknown as JSONRPCMessage);
    this.#deliver();
  }

  #deliver(): void {
    while (this.#taker !== undefined && this.#untaken.length > 0) this.#taker(this.#untaken.shift() as JSONRPCMessage);
  }

  /** Whoever sent something with an id waits for an answer to it. */
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
    // It is told by the caller, like whatever else is no message.
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
