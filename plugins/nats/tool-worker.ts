import { createHash, randomBytes } from "node:crypto";
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import type { Host, Logger, Session, SessionOptions, Tool, ToolInvocation } from "skillhost";
import { AnsweredCalls } from "./answered-calls.ts";
import {
  type CallMessage,
  maxToolList,
  type OfferedTool,
  protocolVersion,
  readCall,
  readControl,
  type WorkerMessage,
} from "./call-messages.ts";
import { type CallSpans, openCallSpans } from "./call-spans.ts";
import { CallTurns } from "./call-turns.ts";
import { connectFleet, type FleetConnection, type FleetConnectionOptions, type FleetSubjects, fleetSubjects } from "./fleet-connection.ts";
import { refusedSubject } from "./fleet-permissions.ts";
import { FrameReader, FrameWriter } from "./frames.ts";
import { announceEveryMs, ServedCall } from "./served-call.ts";
import { describeService, EndpointStatistics, type ServiceEndpoint } from "./service-discovery.ts";

/**
 * Options of a worker.
 *
 * @example
 * ```ts
 * const options: ToolWorkerOptions = { servers: "nats://127.0.0.1:4222", excludedTools: ["deploy"] };
 * ```
 */
export interface ToolWorkerOptions extends FleetConnectionOptions, Pick<SessionOptions, "availableTools" | "excludedTools"> {
  /** Its name in lists of services; letters, digits, `_` and `-`. Default: `skillhost-worker`. */
  readonly name?: string | undefined;
  /** Calls that run at the same time. Further ones go to another worker, or wait at their host. Default: 256. */
  readonly maxCalls?: number | undefined;
  /** Bytes of the arguments of a call, and of an answer of its host. Default: 64 MiB. */
  readonly maxArguments?: number | undefined;
  /** What handlers get as `invocation.services`. Default: an empty object. */
  readonly services?: ToolInvocation["services"] | undefined;
  /** Receives what happens. Default: nothing is logged. */
  readonly logger?: Pick<Logger, "info" | "warning"> | undefined;
}

/** A host's tools, served to the hosts of a fleet. Disposing ends it after its running calls. */
export interface ToolWorker extends AsyncDisposable {
  readonly id: string;
  /** The names of the tools that it serves now. */
  readonly tools: readonly string[];
  /** False: the servers are away. It reconnects by itself. */
  readonly isConnected: boolean;
  /** What it has done so far, and does now. */
  readonly statistics: WorkerStatistics;
  /** Takes no more calls, waits for those that run, and leaves. After `graceMs` milliseconds, the rest is cancelled. Default: 30,000. */
  drain(graceMs?: number): Promise<void>;
}

/** The calls of a worker. Tools that are not served any more are left out. */
export interface WorkerStatistics {
  readonly running: number;
  readonly tools: readonly { readonly tool: string; readonly calls: number; readonly failed: number; readonly processingMs: number }[];
}

const presenceMs = 5_000;
const serviceName = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Serves the tools of a host's skills, plugins and MCP servers. Which calls are allowed is decided by the hosts that call, so a worker asks
 * for no permission.
 * @throws HostError as `connectFleet`; what `host.createSession` throws.
 */
export async function startToolWorker(host: Host, options: ToolWorkerOptions): Promise<ToolWorker> {
  const { availableTools, excludedTools, name = "skillhost-worker" } = options;
  if (!serviceName.test(name)) throw new TypeError(`The name ${JSON.stringify(name)} must consist of letters, digits, "_" and "-".`);
  const subjects = fleetSubjects(options.prefix);
  const fleet = await connectFleet(options, name);
  try {
    const session = await host.createSession({ persist: false, availableTools, excludedTools });
    await session.ready();
    const worker = new Worker(host, session, fleet, subjects, { ...options, name });
    await worker.start();
    return worker;
  } catch (error) {
    await fleet.connection.close();
    throw error;
  }
}

type NamedOptions = ToolWorkerOptions & { readonly name: string };

interface Served {
  readonly tool: Tool;
  readonly subscription: Subscription;
  readonly statistics: EndpointStatistics;
}

class Worker implements ToolWorker {
  readonly id: string = randomBytes(12).toString("hex");
  readonly #host: Host;
  readonly #session: Session;
  readonly #connection: NatsConnection;
  readonly #subjects: FleetSubjects;
  readonly #options: NamedOptions;
  readonly #writer: FrameWriter;
  readonly #controls: FrameReader;
  readonly #calls = new AnsweredCalls();
  readonly #turns = new CallTurns();
  readonly #background = new Set<Promise<unknown>>();
  /** By signature and name. */
  readonly #served = new Map<string, Served>();
  readonly #subscriptions: Subscription[] = [];
  #spans: CallSpans | undefined;
  #digest = "";
  #offers: readonly OfferedTool[] = [];
  #timer: NodeJS.Timeout | undefined;
  #announcing: NodeJS.Timeout | undefined;
  #draining: Promise<void> | undefined;
  #onIdle: (() => void) | undefined;
  #isConnected = true;

  constructor(host: Host, session: Session, fleet: FleetConnection, subjects: FleetSubjects, options: NamedOptions) {
    this.#host = host;
    this.#session = session;
    this.#connection = fleet.connection;
    this.#subjects = subjects;
    this.#options = options;
    this.#writer = new FrameWriter(fleet);
    this.#controls = new FrameReader(options.maxArguments ?? 67_108_864, 64);
  }

  get tools(): readonly string[] {
    return Array.from(this.#served.values(), ({ tool }) => tool.definition.name).sort();
  }

  get isConnected(): boolean {
    return this.#isConnected && !this.#connection.isClosed();
  }

  get statistics(): WorkerStatistics {
    const tools = Array.from(this.#served.values(), ({ tool, statistics: { requests, errors, processing } }) => ({
      tool: tool.definition.name,
      calls: requests,
      failed: errors,
      processingMs: processing,
    }));
    return { running: this.#calls.running, tools };
  }

  async start(): Promise<void> {
    void this.#followConnection();
    this.#spans = await openCallSpans(this.#host.version);
    const { worker, rollCall } = this.#subjects;
    this.#subscribe(worker(this.id, "control"), (message) => this.#control(message));
    this.#subscribe(worker(this.id, "gone.*"), (message) => this.#callerGone(message));
    this.#subscribe(worker(this.id, "tools"), (message) => this.#writer.send(message.reply ?? "", { tools: this.#offers }));
    this.#subscribe(rollCall, () => this.#announce("here"));
    this.#subscriptions.push(
      ...describeService(this.#connection, {
        name: this.#options.name,
        id: this.id,
        version: /^\d+\.\d+\.\d+/.test(this.#host.version) ? this.#host.version : "0.0.0",
        description: "Tools of a skillhost worker.",
        started: new Date(),
        metadata: { protocol: String(protocolVersion) },
        endpoints: () => this.#endpoints(),
      }),
    );
    this.#serve();
    const changes = this.#session.onChanged(() => this.#serve());
    void this.#connection.closed().then(() => changes[Symbol.dispose]());
    this.#timer = setInterval(() => this.#announce("here"), presenceMs);
    await this.#connection.flush();
  }

  drain(graceMs: number = 30_000): Promise<void> {
    this.#draining ??= this.#drain(graceMs);
    return this.#draining;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drain();
  }

  async #drain(graceMs: number): Promise<void> {
    clearInterval(this.#timer);
    this.#announce("gone");
    // What the server has already sent is still received, and run.
    await Promise.allSettled(Array.from(this.#served.values(), ({ subscription }) => subscription.drain()));
    const limit = setTimeout(() => {
      for (const call of this.#calls.open()) call.cancel("The worker is being stopped.");
    }, graceMs);
    await this.#idle();
    await Promise.race([Promise.allSettled(this.#background), pause(Math.max(0, graceMs))]);
    clearTimeout(limit);
    // Without a server nothing more can be sent.
    await this.#connection.drain().catch(() => this.#connection.close());
    await this.#session[Symbol.asyncDispose]();
  }

  #idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#calls.running === 0) resolve();
    });
  }

  async #followConnection(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type === "disconnect") this.#isConnected = false;
      else if (status.type === "reconnect") this.#isConnected = true;
      else if (status.type === "error") {
        const refused = refusedSubject(status.error);
        if (refused !== undefined) this.#options.logger?.warning(`${refused.message}.`, { code: "FLEET_FORBIDDEN" });
        else this.#options.logger?.warning("The NATS server reports an error.", { error: String(status.error) });
      }
    }
  }

  #subscribe(subject: string, receive: (message: Msg) => void): void {
    const callback = (error: Error | null, message: Msg): void => {
      if (error === null) receive(message);
    };
    this.#subscriptions.push(this.#connection.subscribe(subject, { callback }));
  }

  /** Subscribes to what the session's tools are now. Running calls continue with the tool they began with. */
  #serve(): void {
    if (this.#draining !== undefined) return;
    const wanted = new Map(servable(this.#session).map((tool) => [`${tool.signature} ${tool.definition.name}`, tool]));
    for (const [key, { subscription }] of this.#served) {
      if (wanted.has(key)) continue;
      this.#served.delete(key);
      void subscription.drain();
    }
    for (const [key, tool] of wanted) {
      const known = this.#served.get(key);
      const kept = known ?? { subscription: this.#serveTool(key, tool), statistics: new EndpointStatistics() };
      this.#served.set(key, { ...kept, tool });
    }
    this.#offers = Array.from(wanted.values(), ({ signature, definition }) => ({ signature, definition }));
    const list = JSON.stringify(this.#offers);
    const digest = createHash("sha256").update(list).digest("hex");
    if (digest === this.#digest) return;
    this.#digest = digest;
    this.#options.logger?.info("Serving tools.", { tools: this.#offers.length });
    const bytes = Buffer.byteLength(list);
    if (bytes > maxToolList)
      this.#options.logger?.warning("The list of these tools is too large, so no host uses this worker. Serve fewer of them.", {
        bytes,
        maxToolList,
      });
    this.#announce("here");
  }

  #serveTool(key: string, { signature, definition }: Tool): Subscription {
    return this.#connection.subscribe(this.#subjects.tool(signature, definition.name), {
      queue: signature,
      callback: (error, message) => {
        if (error === null) this.#receive(key, message);
      },
    });
  }

  *#endpoints(): Iterable<ServiceEndpoint> {
    for (const { tool, statistics } of this.#served.values()) {
      const { name } = tool.definition;
      yield { name, subject: this.#subjects.tool(tool.signature, name), queue: tool.signature, statistics };
    }
  }

  #announce(type: "here" | "gone"): void {
    if (this.#connection.isClosed()) return;
    this.#writer.send(this.#subjects.presence, { v: protocolVersion, type, worker: this.id, tools: this.#digest });
  }

  #receive(key: string, message: Msg): void {
    const { reply } = message;
    if (reply === undefined || reply === "") return;
    const frame = new FrameReader(message.data.length).read(message);
    const call = frame.kind === "whole" ? readCall(frame.value) : undefined;
    const send = (outgoing: object, answer?: string): void => this.#writer.send(reply, { ...outgoing, worker: this.id }, answer);
    if (call === undefined) send(refusal("unknown", "The call has no valid form."));
    else if (call.v !== protocolVersion) {
      send(refusal("version", `The host speaks version ${call.v} of the protocol, and this worker version ${protocolVersion}.`));
    } else this.#answer(key, call, send);
  }

  #answer(key: string, call: CallMessage, send: (outgoing: object, answer?: string) => void): void {
    const known = this.#calls.get(call.call);
    const served = this.#served.get(key);
    // The answer goes to the same place, also if it comes later.
    if (known !== undefined) send(known.ending ?? { type: "accepted" });
    else if (served === undefined) send(refusal("busy", "The tool has just been replaced."));
    else if (this.#calls.running >= (this.#options.maxCalls ?? 256)) send(refusal("busy", "The worker runs as many calls as it may."));
    else void this.#run(served, call, send);
  }

  async #run({ tool, statistics }: Served, call: CallMessage, send: (outgoing: object, answer?: string) => void): Promise<void> {
    const began = performance.now();
    const gone = this.#subjects.worker(this.id, `gone.${call.call}`);
    const serving = new ServedCall({
      tool,
      call,
      workingDirectory: this.#host.workingDirectory,
      services: this.#options.services ?? {},
      span: this.#spans?.begin(tool.definition.name, call, this.id),
      turn: () => this.#turns.enter(),
      send,
      sendChecked: (outgoing) => send(outgoing, gone),
      onBackground: (work) => this.#keepBackground(work),
    });
    this.#calls.begin(call.call, serving);
    this.#announcing ??= setInterval(() => this.#announceCalls(), announceEveryMs).unref();
    const { isFailed } = await serving.run();
    this.#calls.end(call.call, isRepeatable(tool.definition.annotations));
    statistics.count(performance.now() - began, isFailed ? messageOf(serving.ending) : undefined);
    if (this.#calls.running === 0) this.#onIdle?.();
  }

  /** The timer outlives a call, so that many short ones share it. */
  #announceCalls(): void {
    const now = performance.now();
    for (const call of this.#calls.open()) call.announce(now);
    if (this.#calls.running > 0) return;
    clearInterval(this.#announcing);
    this.#announcing = undefined;
  }

  #keepBackground(work: PromiseLike<unknown>): void {
    const settled = Promise.resolve(work).then(
      () => {},
      () => {},
    );
    this.#background.add(settled);
    void settled.then(() => this.#background.delete(settled));
  }

  #control(message: Msg): void {
    const frame = this.#controls.read(message);
    if (frame.kind === "part") return;
    const control = frame.kind === "whole" ? readControl(frame.value) : undefined;
    if (control === undefined) {
      this.#options.logger?.warning("A message of a host is ignored.", {
        problem: frame.kind === "faulty" ? frame.message : "unknown form",
      });
      return;
    }
    this.#calls.get(control.call)?.control(control);
  }

  /** The server says so: nothing listens where the sign of life was sent. */
  #callerGone(message: Msg): void {
    if (message.headers?.code !== 503) return;
    const call = this.#calls.get(message.subject.slice(message.subject.lastIndexOf(".") + 1));
    if (call?.ending === undefined) call?.cancel("The host that called is gone, or has given up.");
  }
}

/** Those of skills, plugins and servers. Tools of the session itself, or that other workers serve, stay here. */
function servable(session: Session): readonly Tool[] {
  return Array.from(session.catalog.executables.values()).filter(
    ({ origin, hasHandler }) => hasHandler && ["skill", "plugin", "mcp"].includes(origin.kind) && origin.source !== "nats",
  );
}

/** Whether a tool says that running a call twice does no more than running it once. */
export function isRepeatable(annotations: Tool["definition"]["annotations"]): boolean {
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

function refusal(reason: string, message: string): object {
  return { type: "refused", reason, message };
}

function messageOf(ending: ServedCall["ending"]): string {
  return (ending as Partial<Extract<WorkerMessage, { type: "error" }>> | undefined)?.message ?? "";
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref();
  });
}
