import type { JSONRPCMessage, RequestId, Transport, TransportSendOptions } from "@modelcontextprotocol/client";
import { toError } from "../../base/errors.ts";
import { isNestedTooDeep, maxJsonDepth } from "../../base/json-limits.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import type { FrameDirection } from "./frame-log.ts";
import type { PendingRequest } from "./pending-request.ts";
import type { ServerLink } from "./server-link.ts";

type Around = <T>(pending: PendingRequest, run: () => T) => T;

export interface ObservedOptions {
  readonly frames: ((direction: FrameDirection, message: JSONRPCMessage) => void) | undefined;
  /** Runs what sends a request so that what arrives on its own stream can be told to belong to it. */
  readonly around?: Around | undefined;
}

/**
 * Stands between the SDK's client and a link, and knows which message belongs to which request of ours: it hands progress
 * to it, in order with its answer, and keeps the answer as it came.
 */
export class ObservedTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  /** Whether the server answered the question which protocol it speaks, however late. */
  wasDiscovered = false;
  readonly #link: ServerLink;
  readonly #frames: ObservedOptions["frames"];
  readonly #around: Around | undefined;
  readonly #byId = new Map<RequestId, PendingRequest | undefined>();
  readonly #byToken = new Map<number, PendingRequest>();
  #sending: PendingRequest | undefined;

  constructor(link: ServerLink, options: ObservedOptions) {
    this.#link = link;
    this.#frames = options.frames;
    this.#around = options.around;
  }

  get hasPerRequestStream(): boolean {
    return this.#link.hasPerRequestStream === true;
  }

  get sessionId(): string | undefined {
    return this.#link.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#link.setProtocolVersion?.(version);
  }

  async start(): Promise<void> {
    this.#link.onclose = () => this.onclose?.();
    this.#link.onerror = (error) => this.onerror?.(error);
    this.#link.onmessage = (message: JSONRPCMessage) => this.#receive(message);
    this.#link.onshallow = (message) => {
      this.#frames?.("in", message);
      this.#pass(message);
    };
    this.#link.onunreadable = (id, message) => {
      const pending = this.#byId.get(id);
      pending?.giveUp("unreadable", message);
      return pending !== undefined;
    };
    await this.#link.start();
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  /** Runs what sends a request at once; the request that it sends is this one. */
  sendFor<T>(pending: PendingRequest, run: () => T): T {
    this.#byToken.set(pending.token, pending);
    this.#sending = pending;
    try {
      return this.#around === undefined ? run() : this.#around(pending, run);
    } finally {
      this.#sending = undefined;
    }
  }

  forget(pending: PendingRequest): void {
    this.#byToken.delete(pending.token);
    if (pending.id !== undefined) this.#byId.delete(pending.id);
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    this.#frames?.("out", message);
    if (!("method" in message && "id" in message)) return this.#link.send(message, options);
    const pending = this.#sending;
    this.#byId.set(message.id, pending);
    if (pending !== undefined) pending.id = message.id;
    if (pending === undefined || !this.hasPerRequestStream) return this.#link.send(message, options);
    const onRequestStreamEnd = (): void => {
      if (this.#byId.delete(message.id)) pending.giveUp("broken", "the server ended the stream before it answered");
    };
    return this.#link.send(message, { ...options, onRequestStreamEnd });
  }

  #receive(message: JSONRPCMessage): void {
    this.#frames?.("in", message);
    if (isNestedTooDeep(message)) this.#refuse(message);
    else this.#pass(message);
  }

  #pass(message: JSONRPCMessage): void {
    if ("method" in message) {
      if (message.method !== "notifications/progress" || !this.#takeProgress(message.params)) this.onmessage?.(message);
      return;
    }
    const id = idOf(message);
    const isOurs = this.#byId.has(id);
    const pending = this.#byId.get(id);
    this.#byId.delete(id);
    if (isDiscovery(message)) this.wasDiscovered = true;
    // The SDK would report an answer that comes after its request was given up, whole, as an error.
    if (!isOurs) return;
    this.onmessage?.(pending?.take(message) ?? message);
  }

  /** Nothing that is nested so deep gets to code that follows it: whoever waits for it is told, and so is the server. */
  #refuse(message: JSONRPCMessage): void {
    const what = `sent a message that is nested more than ${maxJsonDepth} levels deep, which is not read`;
    if (!("method" in message)) {
      this.#giveUp(idOf(message), what);
      return;
    }
    this.onerror?.(new Error(`The server ${what}: ${message.method.slice(0, 100)}`));
    if (!("id" in message)) return;
    const error = { code: -32600, message: `Invalid Request: nested more than ${maxJsonDepth} levels deep.` };
    void this.#link.send({ jsonrpc: "2.0", id: message.id, error }).catch((failure) => this.onerror?.(toError(failure)));
  }

  #giveUp(id: RequestId, what: string): void {
    const pending = this.#byId.get(id);
    if (pending !== undefined) pending.giveUp("unreadable", `the server ${what}`);
    // The SDK's own requests are those of the handshake.
    else if (this.#byId.has(id)) this.#link.lose(`The server ${what}`);
  }

  /** The SDK handles progress a moment later than an answer that came with it, which then finds nobody to tell. */
  #takeProgress(params: unknown): boolean {
    const token: unknown = isPlainRecord(params) ? params["progressToken"] : undefined;
    const pending = typeof token === "number" ? this.#byToken.get(token) : undefined;
    if (isPlainRecord(params)) pending?.hearProgress(params);
    return pending !== undefined;
  }
}

/** What the SDK takes for a pipe: it is told apart by these two. A server that is silent on one is an old one. */
export class ObservedPipe extends ObservedTransport {
  readonly stderr = null;
  readonly pid: number | null;

  constructor(link: ServerLink, options: ObservedOptions) {
    super(link, options);
    this.pid = link.pid ?? null;
  }
}

function idOf(message: JSONRPCMessage): RequestId {
  const id = (message as { readonly id?: RequestId }).id ?? "";
  // Some servers answer number 5 as "5".
  return typeof id === "string" && /^\d{1,15}$/.test(id) ? Number(id) : id;
}

function isDiscovery(message: JSONRPCMessage): boolean {
  return "result" in message && isPlainRecord(message.result) && Array.isArray(message.result["supportedVersions"]);
}
