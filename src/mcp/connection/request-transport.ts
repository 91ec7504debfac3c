import { AsyncLocalStorage } from "node:async_hooks";
import type { JSONRPCMessage, JSONRPCResultResponse, RequestId, Transport, TransportSendOptions } from "@modelcontextprotocol/client";
import { toError } from "../../base/errors.ts";
import { isNestedTooDeep, isRecord, type Json, maxJsonDepth } from "../../base/json.ts";
import { onAbort } from "../../base/wait.ts";
import type { ToolContext } from "../../tools/tool.ts";
import type { CallRequestOptions } from "./connection.ts";
import type { FrameDirection } from "./frame-log.ts";
import type { ServerLink } from "./server-link.ts";
import type { Asker } from "./server-requests.ts";

interface ObservedOptions {
  readonly frames: ((direction: FrameDirection, message: JSONRPCMessage) => void) | undefined;
  readonly inFlight: InFlight;
}

/**
 * Stands between the SDK's client and a link, and knows which message belongs to which request: it passes progress to the
 * request, in order with the answer, and keeps the answer as it came.
 */
export class ObservedTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  /** Whether the server answered which protocol it speaks, however late. */
  wasDiscovered = false;
  readonly #link: ServerLink;
  readonly #frames: ObservedOptions["frames"];
  readonly #inFlight: InFlight;
  readonly #byId = new Map<RequestId, PendingRequest | undefined>();
  readonly #byToken = new Map<number, PendingRequest>();

  constructor(link: ServerLink, options: ObservedOptions) {
    this.#link = link;
    this.#frames = options.frames;
    this.#inFlight = options.inFlight;
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

  /** From now on, messages with this request's progress token belong to it. */
  expect(pending: PendingRequest): void {
    this.#byToken.set(pending.token, pending);
  }

  forget(pending: PendingRequest): void {
    this.#byToken.delete(pending.token);
    if (pending.id !== undefined) this.#byId.delete(pending.id);
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    this.#frames?.("out", message);
    if (!("method" in message && "id" in message)) return this.#link.send(message, options);
    const pending = this.#ownerOf(message.params?._meta);
    this.#byId.set(message.id, pending);
    if (pending === undefined) return this.#link.send(message, options);
    pending.id = message.id;
    if (this.#link.pid !== undefined) return this.#link.send(message, options);
    const onRequestStreamEnd = (): void => {
      if (this.#byId.delete(message.id)) pending.giveUp("broken", "the server ended the stream before it answered");
    };
    const full = this.hasPerRequestStream ? { ...options, onRequestStreamEnd } : options;
    return this.#inFlight.around(pending, () => this.#link.send(message, full));
  }

  /** The request with this progress token. */
  #ownerOf(params: unknown): PendingRequest | undefined {
    const token: unknown = isRecord(params) ? params["progressToken"] : undefined;
    return typeof token === "number" ? this.#byToken.get(token) : undefined;
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
    // The SDK would report an answer to an abandoned request, in full, as an error.
    if (!isOurs) return;
    const shown = pending?.take(message) ?? message;
    if (pending === undefined || !isInputRequired(shown)) this.onmessage?.(shown);
    // Requests of the server inside this answer belong to the same request.
    else this.#inFlight.around(pending, () => this.onmessage?.(shown));
  }

  /** A message that is nested this deep is not processed: the waiting request fails, and the server gets an error. */
  #refuse(message: JSONRPCMessage): void {
    const what = `sent a message that is nested more than ${maxJsonDepth} levels deep, which was ignored`;
    if (!("method" in message)) {
      const id = idOf(message);
      const pending = this.#byId.get(id);
      if (pending !== undefined) pending.giveUp("unreadable", `the server ${what}`);
      // The handshake's requests are the SDK's own.
      else if (this.#byId.has(id)) this.#link.lose(`The server ${what}`);
      return;
    }
    this.onerror?.(new Error(`The server ${what}: ${message.method.slice(0, 100)}`));
    if (!("id" in message)) return;
    const error = { code: -32600, message: `Invalid Request: nested more than ${maxJsonDepth} levels deep.` };
    void this.#link.send({ jsonrpc: "2.0", id: message.id, error }).catch((failure) => this.onerror?.(toError(failure)));
  }

  /** The SDK handles progress later than an answer in the same chunk, and then drops it. */
  #takeProgress(params: unknown): boolean {
    const pending = this.#ownerOf(params);
    if (isRecord(params)) pending?.reportProgress(params);
    return pending !== undefined;
  }
}

/** The SDK recognizes a pipe by these two properties. There, a server that does not answer speaks the older protocol. */
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
  // Some servers answer request 5 with the id "5".
  return typeof id === "string" && /^\d{1,15}$/.test(id) ? Number(id) : id;
}

function isDiscovery(message: JSONRPCMessage): boolean {
  return "result" in message && isRecord(message.result) && Array.isArray(message.result["supportedVersions"]);
}

/** Whether an answer of the stateless protocol says that the server needs input from its client first. */
function isInputRequired(message: JSONRPCMessage): boolean {
  return "result" in message && isRecord(message.result) && message.result["resultType"] === "input_required";
}

/** Why a request ended without an answer. */
export type RequestStop = "timeout" | "cancelled" | "broken" | "unreadable";

export interface StoppedRequest {
  readonly why: RequestStop;
  readonly message: string;
}

/** One request, from sending to its answer. It takes more than one message when the server needs input in between. */
export class PendingRequest implements Disposable {
  readonly method: string;
  readonly token: number;
  readonly context: ToolContext | undefined;
  /** The id of the message whose answer it waits for. */
  id: RequestId | undefined;
  /** Set when the request was abandoned. */
  stop: StoppedRequest | undefined;
  /** The result as it came. */
  answer: unknown;
  /** Whether the server has answered anything, such as that it needs input first. */
  wasAnswered = false;
  readonly #controller = new AbortController();
  readonly #timer: HeldTimer | undefined;
  readonly #onProgress: CallRequestOptions["onProgress"];
  readonly #waiting: Disposable | undefined;

  constructor(method: string, token: number, options: CallRequestOptions, timeout: number | undefined) {
    this.method = method;
    this.token = token;
    this.context = options.context;
    this.#onProgress = options.onProgress;
    if (timeout !== undefined) {
      this.#timer = new HeldTimer(timeout, () => this.giveUp("timeout", `no answer and no progress for ${timeout} ms`));
    }
    if (options.signal !== undefined) this.#waiting = onAbort(options.signal, () => this.giveUp("cancelled", "the request was cancelled"));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Stops its clock while a user is asked. */
  hold(): Disposable {
    return this.#timer?.hold() ?? { [Symbol.dispose]() {} };
  }

  /** Ends it without an answer; the SDK notifies the server. */
  giveUp(why: RequestStop, message: string): void {
    if (this.stop !== undefined) return;
    this.stop = { why, message };
    this.#controller.abort(message);
  }

  reportProgress(params: Readonly<Record<string, unknown>>): void {
    if (this.signal.aborted) return;
    this.#timer?.restart();
    const { progress, total, message } = params;
    if (typeof progress !== "number") return;
    this.#onProgress?.({
      progress,
      ...(typeof total === "number" && { total }),
      ...(typeof message === "string" && { message }),
    });
  }

  /** Keeps the answer, and returns what the SDK gets in its place. */
  take(message: JSONRPCMessage): JSONRPCMessage {
    this.wasAnswered = true;
    if (!("result" in message)) return message;
    const result: unknown = message.result;
    if (!isRecord(result)) return message;
    if (isInputRequired(message)) {
      const { inputRequests } = result;
      const count = isRecord(inputRequests) ? Object.keys(inputRequests).length : 0;
      if (count > mostQuestions) this.giveUp("unreadable", `the server sent ${count} input requests at once, which is more than the limit`);
      return message;
    }
    this.answer = result;
    const standIn = standInFor(this.method, result);
    return standIn === undefined ? message : ({ ...message, result: standIn } as JSONRPCResultResponse);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#waiting?.[Symbol.dispose]();
  }
}

const mostQuestions = 32;

// The longest delay of the runtime's timers.
export const longestTimeout = 2_147_483_647;

/** A deadline that stops while it is held, and then starts from the beginning. */
export class HeldTimer implements Disposable {
  readonly #milliseconds: number;
  readonly #expired: () => void;
  #timer: NodeJS.Timeout | undefined;
  #holds = 0;
  #isOver = false;

  constructor(milliseconds: number, expired: () => void) {
    this.#milliseconds = Math.min(milliseconds, longestTimeout);
    this.#expired = expired;
    this.#start();
  }

  restart(): void {
    this.#timer?.refresh();
  }

  hold(): Disposable {
    this.#holds++;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#holds--;
        if (this.#holds === 0 && !this.#isOver) this.#start();
      },
    };
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#timer = setTimeout(this.#expired, this.#milliseconds);
  }
}

/** The unanswered requests of a connection, and which of them a request of the server belongs to. */
export class InFlight {
  readonly #pending = new Set<PendingRequest>();
  readonly #current = new AsyncLocalStorage<PendingRequest>();

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  add(pending: PendingRequest): void {
    this.#pending.add(pending);
  }

  delete(pending: PendingRequest): void {
    this.#pending.delete(pending);
  }

  /** The request whose answer, or whose stream, is being handled. */
  get current(): PendingRequest | undefined {
    return this.#current.getStore();
  }

  /** Runs what sends or answers a request so that requests of the server in the meantime belong to it. */
  around<T>(pending: PendingRequest, run: () => T): T {
    return this.#current.run(pending, run);
  }

  hold(): Disposable {
    const holds = [...this.#pending].map((pending) => pending.hold());
    return { [Symbol.dispose]: () => holds.forEach((hold) => void hold[Symbol.dispose]()) };
  }

  /**
   * A request of the server on a call's own stream belongs to that call. On a shared stream it belongs to the latest call,
   * if all calls are of one session: no user is asked on behalf of another session.
   */
  asker(): Asker {
    const current = this.#current.getStore();
    if (current?.context !== undefined && this.#pending.has(current)) return askerOf(current);
    const calls = [...this.#pending].filter((pending) => pending.context !== undefined);
    const latest = calls.at(-1);
    if (latest === undefined) return { kind: "none" };
    const sessions = new Set(calls.map((pending) => pending.context?.invocation.sessionId));
    return sessions.size === 1 ? askerOf(latest) : { kind: "unclear" };
  }
}

/** For a request of the server that certainly belongs to this one. */
export function askerOf(pending: PendingRequest): Asker {
  const { context } = pending;
  return context === undefined ? { kind: "none" } : { kind: "call", context, hold: () => pending.hold() };
}

interface Shape {
  /** The property that holds the list. */
  readonly key: string;
  readonly isRequired: boolean;
}

const shapes: ReadonlyMap<string, Shape> = new Map([
  ["tools/list", { key: "tools", isRequired: true }],
  ["prompts/list", { key: "prompts", isRequired: true }],
  ["resources/list", { key: "resources", isRequired: true }],
  ["resources/templates/list", { key: "resourceTemplates", isRequired: true }],
  // Servers omit it for results with only structured content, and for errors.
  ["tools/call", { key: "content", isRequired: false }],
  ["prompts/get", { key: "messages", isRequired: true }],
  ["resources/read", { key: "contents", isRequired: true }],
]);

/** Why an answer does not have the shape that the protocol defines; undefined: it has. */
export function faultOfAnswer(method: string, answer: unknown): string | undefined {
  if (!isRecord(answer)) return "it is not an object";
  const shape = shapes.get(method);
  if (shape === undefined) return undefined;
  const list = answer[shape.key];
  if (list === undefined && !shape.isRequired) return undefined;
  return Array.isArray(list) ? undefined : `its "${shape.key}" is not an array`;
}

/**
 * What the SDK validates in place of an answer. It would reject a whole list, or a good result, for one entry that is not
 * to the letter, and reads every byte of it. Results are checked where they are used.
 */
function standInFor(method: string, answer: Json): Json | undefined {
  const shape = shapes.get(method);
  if (shape === undefined) return undefined;
  const type = answer["resultType"];
  return { ...(type !== undefined && { resultType: type }), ttlMs: 0, cacheScope: "private", [shape.key]: [] };
}
