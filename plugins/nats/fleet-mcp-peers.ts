import { randomBytes } from "node:crypto";
import type { KV } from "@nats-io/kv";
import type { Msg, Subscription } from "@nats-io/transport-node";
import type {
  Logger,
  McpList,
  McpPeer,
  McpPeers,
  McpSeat,
  McpSessionRequests,
  PassedRequest,
  PassedResponse,
  SharedMcpSession,
} from "skillhost";
import { connectFleet, type FleetConnection, type FleetConnectionOptions, type FleetSubjects, fleetSubjects } from "./fleet-connection.ts";
import { explainRefusal } from "./fleet-permissions.ts";
import { FrameReader, FrameWriter, isObject } from "./frames.ts";
import { isWrongSequence, toToken } from "./session-stream.ts";
import { importStores } from "./skill-catalog.ts";

export interface FleetMcpOptions extends FleetConnectionOptions {
  /** On how many servers the records of sessions are: 1, 3 or 5. Default: 1. */
  readonly replicas?: number | undefined;
  readonly log: Pick<Logger, "warning" | "debug">;
}

/** Longer than an unused session lives, and than the owner waits until it writes the record again. */
const recordTtlMs = 2 * 60 * 60_000;
const answerMs = 2_000;
const checkEveryMs = 1_000;
/** Of a process that computes, which is not gone. */
const silenceMs = 5_000;
const maxMessage = 64 * 1024 * 1024;

interface Opened {
  readonly fleet: FleetConnection;
  readonly records: KV;
}

/** The MCP servers of a fleet, as peers of each other. */
export class FleetMcpPeers implements McpPeers, AsyncDisposable {
  readonly #options: FleetMcpOptions;
  readonly #subjects: FleetSubjects;
  readonly #seats = new Set<Seat>();
  #opened: Promise<Opened> | undefined;

  constructor(options: FleetMcpOptions) {
    this.#options = options;
    this.#subjects = fleetSubjects(options.prefix);
  }

  join(name: string, server: McpPeer): McpSeat {
    const seat = new Seat({ name, server, subjects: this.#subjects, log: this.#options.log, open: () => this.#open() });
    this.#seats.add(seat);
    return seat;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Array.from(this.#seats, (seat) => seat[Symbol.asyncDispose]()));
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.fleet.connection.close();
  }

  #open(): Promise<Opened> {
    this.#opened ??= openRecords(this.#options);
    this.#opened.catch(() => {
      this.#opened = undefined;
    });
    return this.#opened;
  }
}

async function openRecords(options: FleetMcpOptions): Promise<Opened> {
  const { prefix = "skillhost", replicas = 1 } = options;
  const fleet = await connectFleet(options, "skillhost-mcp");
  try {
    const [{ Kvm }] = await importStores();
    const bucket = { replicas, ttl: recordTtlMs, allow_direct: false, timeout: answerMs };
    // Answers of replicas may be old: who has a session is asked of the leader.
    return { fleet, records: await new Kvm(fleet.connection).create(`${prefix}-mcp`, bucket) };
  } catch (error) {
    await fleet.connection.close();
    throw explainRefusal(error);
  }
}

interface SeatOptions {
  readonly name: string;
  readonly server: McpPeer;
  readonly subjects: FleetSubjects;
  readonly log: Pick<Logger, "warning" | "debug">;
  readonly open: () => Promise<Opened>;
}

type Outcome = "ended" | "absent" | "lost";

/** A request that this server has passed. */
interface Passed {
  readonly to: string;
  readonly response: PassedResponse;
  readonly settle: (outcome: Outcome) => void;
  isBegun: boolean;
}

/** A request that this server answers for another one. */
interface Answered {
  readonly from: string;
  readonly leave: AbortController;
}

class Seat implements McpSeat {
  readonly id: string = randomBytes(12).toString("hex");
  readonly #options: SeatOptions;
  readonly #passed = new Map<string, Passed>();
  readonly #answered = new Map<string, Answered>();
  /** The revisions of the records of the sessions here. */
  readonly #revisions = new Map<string, number>();
  /** When each peer with open requests was heard of last. */
  readonly #heard = new Map<string, number>();
  readonly #subscriptions: Subscription[] = [];
  readonly #reader = new FrameReader(maxMessage, 256);
  #connected: Promise<Opened & { readonly writer: FrameWriter }> | undefined;
  #isAway = false;
  #isOver = false;
  #timer: NodeJS.Timeout | undefined;
  #checked = 0;

  constructor(options: SeatOptions) {
    this.#options = options;
    // Peers may ask for sessions of this server, so it is reached before it asks for any.
    void this.#connect().catch((error: unknown) =>
      options.log.warning("The peers of this MCP server are out of reach.", { error: String(error) }),
    );
  }

  async pass(to: string, request: PassedRequest, response: PassedResponse): Promise<Outcome> {
    const { writer } = await this.#reach();
    if (response.signal.aborted) return "ended";
    const exchange = randomBytes(12).toString("hex");
    return new Promise((resolve) => {
      const settle = (outcome: Outcome): void => {
        response.signal.removeEventListener("abort", leave);
        this.#passed.delete(exchange);
        resolve(outcome);
      };
      const leave = (): void => {
        writer.send(this.#subject(to, "left"), { from: this.id, exchange });
        settle("ended");
      };
      response.signal.addEventListener("abort", leave, { once: true });
      this.#passed.set(exchange, { to, response, settle, isBegun: false });
      this.#watch(to);
      writer.send(
        this.#subject(to, "requests"),
        { from: this.id, exchange, ...request },
        this.#subject(this.id, `none.absent-${exchange}`),
      );
    });
  }

  announce(list: McpList): void {
    void this.#reach()
      .then(({ writer }) => writer.send(this.#subject(toToken(this.#options.name), "lists"), { from: this.id, list }))
      .catch(() => {
        // Peers have clients of their own, and hear of their own changes.
      });
  }

  async find(sessionId: string): Promise<SharedMcpSession | undefined> {
    const { records } = await this.#reach();
    const entry = await records.get(toToken(sessionId));
    if (entry === null || entry.operation !== "PUT") return undefined;
    const { owner, name, requests } = read(entry.value);
    const isValid = typeof owner === "string" && /^[\w-]{8,64}$/.test(owner) && Array.isArray(requests) && requests.every(isObject);
    if (!isValid || name !== this.#options.name) return undefined;
    return { owner, requests: requests as McpSessionRequests, revision: entry.revision };
  }

  async keep(sessionId: string, requests: McpSessionRequests): Promise<void> {
    const { records } = await this.#reach();
    const known = this.#revisions.get(sessionId);
    const key = toToken(sessionId);
    try {
      const revision = await (known === undefined
        ? records.create(key, this.#record(requests))
        : records.update(key, this.#record(requests), known));
      this.#revisions.set(sessionId, revision);
    } catch (error) {
      if (!isWrongSequence(error)) throw error;
      const found = await this.find(sessionId);
      if (found !== undefined && found.owner !== this.id) return this.#lose(sessionId);
      // The servers have lost it, or a writing that was not answered was stored.
      this.#revisions.set(sessionId, found?.revision ?? 0);
      this.#revisions.set(sessionId, await records.update(key, this.#record(requests), found?.revision ?? 0));
    }
  }

  async take(sessionId: string, { owner, requests, revision }: SharedMcpSession): Promise<boolean> {
    const { records, writer } = await this.#reach();
    try {
      this.#revisions.set(sessionId, await records.update(toToken(sessionId), this.#record(requests), revision));
    } catch (error) {
      if (isWrongSequence(error)) return false;
      throw error;
    }
    if (owner !== this.id) writer.send(this.#subject(owner, "taken"), { from: this.id, session: sessionId });
    return true;
  }

  async forget(sessionId: string): Promise<void> {
    const revision = this.#revisions.get(sessionId);
    this.#revisions.delete(sessionId);
    if (revision === undefined) return;
    const { records } = await this.#reach();
    await records.delete(toToken(sessionId), { previousSeq: revision });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    for (const { leave } of this.#answered.values()) leave.abort();
    for (const { settle } of [...this.#passed.values()]) settle("lost");
    const opened = await this.#connected?.catch(() => undefined);
    await opened?.fleet.connection.flush().catch(() => {
      // The servers notice that the subscriptions are gone when the connection is.
    });
  }

  #record(requests: McpSessionRequests): string {
    return JSON.stringify({ owner: this.id, name: this.#options.name, requests });
  }

  #subject(id: string, what: string): string {
    return this.#options.subjects.mcp(id, what);
  }

  /** @throws while the servers are away: what is sent then would arrive much later. */
  async #reach(): Promise<Opened & { readonly writer: FrameWriter }> {
    if (this.#isOver) throw new Error("This MCP server is being stopped.");
    const connected = await this.#connect();
    if (this.#isAway) throw new Error("The connection to the NATS servers is lost.");
    return connected;
  }

  #connect(): Promise<Opened & { readonly writer: FrameWriter }> {
    this.#connected ??= this.#subscribe();
    this.#connected.catch(() => {
      this.#connected = undefined;
    });
    return this.#connected;
  }

  async #subscribe(): Promise<Opened & { readonly writer: FrameWriter }> {
    const opened = await this.#options.open();
    const { connection } = opened.fleet;
    const writer = new FrameWriter(opened.fleet);
    const listen = (subject: string, receive: (fields: Readonly<Record<string, unknown>>, message: Msg) => void): void => {
      const callback = (error: Error | null, message: Msg): void => {
        if (error === null) this.#read(message, receive);
      };
      this.#subscriptions.push(connection.subscribe(subject, { callback }));
    };
    listen(this.#subject(this.id, "requests"), (fields) => this.#answer(fields, writer));
    listen(this.#subject(this.id, "answers"), (fields) => this.#write(fields));
    listen(this.#subject(this.id, "left"), ({ exchange }) => this.#answered.get(String(exchange))?.leave.abort());
    listen(this.#subject(this.id, "taken"), ({ session }) => this.#lose(String(session)));
    listen(this.#subject(this.id, "check"), ({ from }) => writer.send(this.#subject(String(from), "alive"), { from: this.id }));
    listen(this.#subject(this.id, "alive"), ({ from }) => this.#hear(String(from)));
    listen(this.#subject(toToken(this.#options.name), "lists"), ({ from, list }) => {
      if (from !== this.id && isList(list)) this.#options.server.listChanged(list);
    });
    // The servers say so: nothing listens where a request, or a check of a peer, was sent.
    this.#subscriptions.push(
      connection.subscribe(this.#subject(this.id, "none.*"), {
        callback: (error, { subject, headers }) => {
          if (error === null && headers?.code === 503) this.#absent(subject.slice(subject.lastIndexOf(".") + 1));
        },
      }),
    );
    void this.#follow(opened);
    await connection.flush();
    return { ...opened, writer };
  }

  async #follow({ fleet: { connection } }: Opened): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") this.#isAway = true;
      if (type !== "reconnect") continue;
      this.#isAway = false;
      // What was said meanwhile is lost.
      for (const sessionId of [...this.#revisions.keys()]) void this.#confirm(sessionId);
    }
  }

  async #confirm(sessionId: string): Promise<void> {
    try {
      const found = await this.find(sessionId);
      if (found !== undefined && found.owner !== this.id) this.#lose(sessionId);
    } catch {
      // The next writing of the record finds out.
    }
  }

  #lose(sessionId: string): void {
    if (!this.#revisions.delete(sessionId)) return;
    this.#options.server.sessionTaken(sessionId);
  }

  #read(message: Msg, receive: (fields: Readonly<Record<string, unknown>>, message: Msg) => void): void {
    if (message.headers?.code === 503) return;
    const frame = this.#reader.read(message);
    if (frame.kind === "whole") receive(frame.value, message);
    else if (frame.kind === "faulty") this.#options.log.warning("A message of a peer is ignored.", { problem: frame.message });
  }

  #answer(fields: Readonly<Record<string, unknown>>, writer: FrameWriter): void {
    const { from, exchange, method, headers, body } = fields;
    if (!isToken(from) || !isToken(exchange) || typeof method !== "string" || typeof body !== "string" || !isTexts(headers)) {
      this.#options.log.warning("A request of a peer is ignored: it has an unknown form.");
      return;
    }
    const leave = new AbortController();
    this.#answered.set(exchange, { from, leave });
    this.#watch(from);
    const end = (): void => void this.#answered.delete(exchange);
    leave.signal.addEventListener("abort", end, { once: true });
    const response = new AnswerWriter(
      (message) => writer.send(this.#subject(from, "answers"), { exchange, ...message }),
      leave.signal,
      end,
    );
    this.#options.server.answer({ method, headers, body }, response);
  }

  #write({ exchange, status, headers, text, end }: Readonly<Record<string, unknown>>): void {
    const passed = this.#passed.get(String(exchange));
    if (passed === undefined) return;
    this.#heard.set(passed.to, performance.now());
    const { response, settle } = passed;
    if (end === "absent" && !passed.isBegun) {
      settle("absent");
      return;
    }
    if (typeof status === "number" && isTexts(headers) && !passed.isBegun) {
      passed.isBegun = true;
      response.begin(status, headers);
    }
    if (typeof text === "string" && passed.isBegun) response.write(text);
    if (end === undefined) return;
    if (end === "whole" && passed.isBegun) response.end();
    else response.abandon();
    settle("ended");
  }

  /** `what`: the last token of the subject that was given for such an answer. */
  #absent(what: string): void {
    const [, kind, id = ""] = /^(absent|gone)-([\w-]+)$/.exec(what) ?? [];
    if (kind === "absent") this.#passed.get(id)?.settle("absent");
    else if (kind === "gone") this.#drop(id);
  }

  #hear(peer: string): void {
    if (this.#heard.has(peer)) this.#heard.set(peer, performance.now());
  }

  /** Asks a peer with open requests from time to time whether it is there: a connection to it does not exist. */
  #watch(peer: string): void {
    if (!this.#heard.has(peer)) this.#heard.set(peer, performance.now());
    if (this.#timer !== undefined) return;
    this.#checked = performance.now();
    this.#timer = setInterval(() => this.#check(), checkEveryMs).unref();
  }

  #check(): void {
    const now = performance.now();
    // While this process itself did not run, or had no connection, it could not hear either.
    const own = now - this.#checked - checkEveryMs;
    this.#checked = now;
    const open = new Set([...this.#passed.values()].map(({ to }) => to).concat(Array.from(this.#answered.values(), ({ from }) => from)));
    for (const [peer, heard] of this.#heard) {
      if (!open.has(peer)) this.#heard.delete(peer);
      else if (this.#isAway || own > checkEveryMs) this.#heard.set(peer, heard + own + checkEveryMs);
      else if (now - heard > silenceMs) this.#drop(peer);
      else void this.#ask(peer);
    }
    if (this.#heard.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #ask(peer: string): Promise<void> {
    const { writer } = await this.#connect();
    writer.send(this.#subject(peer, "check"), { from: this.id }, this.#subject(this.id, `none.gone-${peer}`));
  }

  #drop(peer: string): void {
    this.#heard.delete(peer);
    for (const { to, settle } of [...this.#passed.values()]) if (to === peer) settle("lost");
    for (const { from, leave } of [...this.#answered.values()]) if (from === peer) leave.abort();
  }
}

/** Sends the parts of a response. What is written together is sent together. */
class AnswerWriter implements PassedResponse {
  readonly signal: AbortSignal;
  readonly #send: (message: object) => void;
  readonly #onEnd: () => void;
  #status: number | undefined;
  #headers: Readonly<Record<string, string>> | undefined;
  #text = "";
  #end: "whole" | "broken" | "absent" | undefined;
  #isDue = false;

  constructor(send: (message: object) => void, signal: AbortSignal, onEnd: () => void) {
    this.#send = send;
    this.signal = signal;
    this.#onEnd = onEnd;
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.#status = status;
    this.#headers = headers;
    this.#later();
  }

  write(text: string): void {
    this.#text += text;
    this.#later();
  }

  end(): void {
    this.#finish("whole");
  }

  abandon(): void {
    this.#finish("broken");
  }

  refuse(): void {
    this.#finish("absent");
  }

  #finish(end: "whole" | "broken" | "absent"): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#onEnd();
    this.#later();
  }

  #later(): void {
    if (this.#isDue || this.signal.aborted) return;
    this.#isDue = true;
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    const [status, headers, text, end] = [this.#status, this.#headers, this.#text, this.#end];
    this.#isDue = false;
    this.#status = undefined;
    this.#headers = undefined;
    this.#text = "";
    this.#send({ ...(status !== undefined && { status, headers }), ...(text !== "" && { text }), ...(end !== undefined && { end }) });
  }
}

function read(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    return isObject(value) ? value : {};
  } catch {
    // Another program wrote it.
    return {};
  }
}

function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\w-]{8,64}$/.test(value);
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every((text) => typeof text === "string");
}

function isList(value: unknown): value is McpList {
  return value === "tools" || value === "prompts" || value === "resources";
}
