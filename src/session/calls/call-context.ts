import { HostError, toError } from "../../base/errors.ts";
import { headInBytes } from "../../base/text.ts";
import type { ProcessLimits } from "../../io/process/confine-process.ts";
import type { CallerContext, HostServices } from "../../tools/host-services.ts";
import type {
  AddressRules,
  AskOptions,
  Asks,
  FileChangeOptions,
  Progress,
  ToolContext,
  ToolInvocation,
  ToolResult,
} from "../../tools/tool.ts";
import { toCallResult } from "../../tools/tool-result.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { AskHandlers } from "../clients/client-requests.ts";
import type { AskKind, AskOutcome } from "../clients/request-kinds.ts";
import type { ServerPolicy } from "../mcp/server-connections.ts";
import type { TracedStep } from "../telemetry.ts";
import type { SessionServices } from "../tools/session-tool-services.ts";
import { type CallServices, logFacts } from "./call-stages.ts";
import type { RunningCall } from "./running-call.ts";
import type { AgentScope } from "./tool-call.ts";

/** The ways back into the session that a call's context leads to. */
export interface ContextServices {
  readonly sessionId: string;
  /** For the tools that the session brings itself. */
  readonly session: SessionServices;
  workingDirectory(): string;
  /** What the application gave to the host and to the session, for handlers. */
  application(): { readonly services: HostServices; readonly context: CallerContext | undefined };
  addressRules(): AddressRules | undefined;
  ask<K extends AskKind>(run: RunningCall, kind: K, data: Asks[K]["data"], options?: AskOptions): Promise<Asks[K]["answer"]>;
  callTool(run: RunningCall, ref: string, args: unknown): Promise<ToolResult>;
  progress(run: RunningCall, update: Progress): void;
  fileChanged(run: RunningCall, path: string, content: string, options?: FileChangeOptions): void;
  background(work: PromiseLike<unknown>): void;
}

/**
 * What a handler gets of its call. Its members are made when they are first read, bound to the call, so that a handler
 * may take them apart and one that uses none of them costs nothing.
 */
export class CallContext implements ToolContext {
  readonly #run: RunningCall;
  readonly #services: ContextServices;
  #invocation: ToolInvocation | undefined;
  #trace: TracedStep | undefined;

  constructor(run: RunningCall, services: ContextServices) {
    this.#run = run;
    this.#services = services;
  }

  static sessionCallOf(context: ToolContext): SessionCall | undefined {
    if (!(#run in context)) return undefined;
    const run = context.#run;
    const { agent, catalog } = run;
    return { session: context.#services.session, agent, catalog, addMessage: (text) => run.addMessage(text) };
  }

  get invocation(): ToolInvocation {
    const { trace } = this.#run;
    // One that was read before the span began, to ask for permission, has not its keys.
    if (this.#invocation === undefined || this.#trace !== trace) {
      this.#trace = trace;
      this.#invocation = new Invocation(this.#run, this.#services) as unknown as ToolInvocation;
    }
    return this.#invocation;
  }

  get ask(): ToolContext["ask"] {
    return (kind, data, options) => this.#services.ask(this.#run, kind, data, options);
  }

  get addressRules(): AddressRules | undefined {
    return this.#services.addressRules();
  }

  get limits(): ProcessLimits | undefined {
    return this.#run.reach?.limits;
  }

  get callTool(): ToolContext["callTool"] {
    return async (ref, args) => toCallResult(await this.#services.callTool(this.#run, ref, args));
  }

  get progress(): ToolContext["progress"] {
    return (update) => this.#services.progress(this.#run, update);
  }

  get fileChanged(): ToolContext["fileChanged"] {
    return (path, content, options) => this.#services.fileChanged(this.#run, path, content, options);
  }

  get background(): ToolContext["background"] {
    return (work) => this.#services.background(work);
  }
}

/** What the tools that a session brings itself know of a call, beyond what every handler receives. */
interface SessionCall {
  readonly session: SessionServices;
  /** The conversation that the call belongs to. */
  readonly agent: AgentScope;
  /** The tools as they were when the call was prepared. */
  readonly catalog: ToolCatalog;
  /** Has the model read a message of its own after the result. */
  addMessage(text: string): void;
}

/**
 * The way from a call to its session. Only tools of this package can take it: their contexts are the pipeline's own.
 * @throws HostError `CALL_FOREIGN` for a context that some other code made.
 */
export function sessionCallOf(context: ToolContext): SessionCall {
  const call = CallContext.sessionCallOf(context);
  if (call === undefined)
    throw new HostError("CALL_FOREIGN", "A tool of a session was called without a session. Call it with session.callTool.");
  return call;
}

class Invocation {
  readonly sessionId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: unknown;
  readonly workingDirectory: string;
  readonly #run: RunningCall;
  readonly #services: ContextServices;

  static readonly #signal: PropertyDescriptor & ThisType<Invocation> = {
    enumerable: true,
    configurable: true,
    get() {
      return this.#run.signal;
    },
  };

  constructor(run: RunningCall, services: ContextServices) {
    this.#run = run;
    this.sessionId = services.sessionId;
    this.toolCallId = run.call.id;
    this.toolName = run.call.name;
    this.arguments = run.value;
    // An own key like the others. A signal takes as long to make as the rest of a call, and few handlers read theirs.
    Object.defineProperty(this, "signal", Invocation.#signal);
    this.workingDirectory = services.workingDirectory();
    if (run.trace !== undefined) Object.assign(this, run.trace.headers);
    this.#services = services;
  }

  // Of the prototype: they are the application's own objects, and no copy or log of an invocation should contain them.
  get services(): HostServices {
    return this.#services.application().services;
  }

  get context(): CallerContext | undefined {
    return this.#services.application().context;
  }
}

/** Reports a call's progress, or a log line, to the caller and as an event. */
export function emitProgress(run: RunningCall, host: CallServices, update: Progress): void {
  // A tool of another process can send anything.
  if (typeof update.partialOutput === "string") {
    emitPartialOutput(run, host, update.partialOutput);
    return;
  }
  notifyCaller(run, host, update);
  const { events } = host;
  if (update.level !== undefined) emitLogLine(run, host, update);
  else if (events.wants(progressed))
    events.append(progressed, { toolCallId: run.call.id, progressMessage: progressText(update) }, run.agent.agentId);
}

const progressed = "tool.execution_progress";
const partial = "tool.execution_partial_result";
// The Copilot SDK has no event for what a tool logs, and this one for what it has none for.
const notified = "session.custom_notification";

/** The output that was emitted last, by the call. */
const lastOutputs = new WeakMap<RunningCall, string>();

/** Emits the output so far as long as there is something new in it. */
function emitPartialOutput(run: RunningCall, { events, config }: CallServices, output: string): void {
  if (!events.wants(partial)) return;
  const partialOutput = headInBytes(output, config.largeOutput.maxSizeBytes);
  if (lastOutputs.get(run) === partialOutput) return;
  lastOutputs.set(run, partialOutput);
  events.append(partial, { toolCallId: run.call.id, partialOutput }, run.agent.agentId);
}

function notifyCaller(run: RunningCall, host: CallServices, update: Progress): void {
  const { onProgress } = run.agent;
  if (onProgress === undefined) return;
  try {
    onProgress(update, { toolCallId: run.call.id, toolName: run.call.name });
  } catch (error) {
    host.log.error("A progress listener failed.", { ...logFacts(run, host), error: toError(error) });
  }
}

function emitLogLine(run: RunningCall, { events }: CallServices, { level, message, data }: Progress): void {
  if (!events.wants(notified)) return;
  const line = { level, ...(message !== undefined && { message }), ...(data !== undefined && { data }) };
  const payload = { toolCallId: run.call.id, toolName: run.call.name, ...line };
  events.append(notified, { name: "tool.log", source: "skillhost", payload }, run.agent.agentId);
}

function progressText({ message, progress, total }: Progress): string {
  if (message !== undefined) return message;
  if (progress === undefined) return "";
  return total === undefined ? String(progress) : `${progress}/${total}`;
}

/** What it takes to ask: a call does, and so does the handler of a prompt or a resource. */
export type AskServices = Pick<CallServices, "asks" | "config" | "servers" | "sample">;

/** On whose behalf something is asked. */
interface Asker {
  readonly toolCallId?: string | undefined;
  readonly agentId?: string | undefined;
  /** The MCP server that wants it asked. */
  readonly serverName: string | undefined;
  /** Handlers of the caller: asked before the attached clients. */
  readonly answers: AskHandlers | undefined;
  readonly key: string | undefined;
  /** Fires when the answer is not needed any more. */
  signal(): AbortSignal;
}

/**
 * Asks on behalf of a call: first its caller, then the attached clients. The call's
 * clock stands still meanwhile.
 * @throws HostError `ASK_UNANSWERED` when no client answered, or a server is not allowed to ask.
 */
export async function askForCall<K extends AskKind>(
  run: RunningCall,
  host: CallServices,
  kind: K,
  data: Asks[K]["data"],
  { key }: AskOptions = {},
): Promise<Asks[K]["answer"]> {
  if (run.isOver) throw new HostError("ASK_UNANSWERED", "This call has ended, so it cannot ask any more. Ask before the handler returns.");
  const serverName = run.tool?.origin.kind === "mcp" ? run.tool.origin.source : undefined;
  const { agentId, answers } = run.agent;
  run.pause();
  try {
    return await askAround({ toolCallId: run.call.id, agentId, answers, serverName, key, signal: () => run.signal }, host, kind, data);
  } finally {
    run.resume();
  }
}

/**
 * Asks the caller first, then the attached clients, as far as a server is allowed to ask.
 * @throws HostError `ASK_UNANSWERED` when no client answered, or a server is not allowed to ask.
 */
export async function askAround<K extends AskKind>(
  { toolCallId, agentId, answers, serverName, key, signal }: Asker,
  host: AskServices,
  kind: K,
  data: Asks[K]["data"],
): Promise<Asks[K]["answer"]> {
  if (serverName !== undefined && isDenied(kind, host.servers.policy)) throw deniedByPolicy(kind, serverName);
  const maySample = kind === "sampling" && host.servers.policy.sampling === "allow";
  // A model can answer, so there is no need to wait for a client.
  const waits = host.config.waitForAttachments && !maySample;
  const outcome = await host.asks.open(kind, data, { toolCallId, agentId, waits, signal, caller: answers, key, serverName });
  if (outcome.kind === "answered") return outcome.answer;
  if (!isUnavailable(outcome) || !maySample) throw unanswered(kind, outcome);
  return (await host.sample(data as Asks["sampling"]["data"], signal())) as Asks[K]["answer"];
}

function isDenied(kind: AskKind, policy: ServerPolicy): boolean {
  return (kind === "elicitation" || kind === "sampling") && policy[kind] === "deny";
}

function isUnavailable(outcome: AskOutcome): boolean {
  return outcome.kind === "ended" && outcome.reason === "unavailable";
}

function unanswered(kind: AskKind, outcome: AskOutcome): HostError {
  const why = outcome.kind === "ended" ? outcome.reason : outcome.kind;
  return new HostError("ASK_UNANSWERED", `The question of kind "${kind}" was not answered (${why}). Continue without an answer.`);
}

function deniedByPolicy(kind: AskKind, server: string): HostError {
  const message = `The MCP server "${server}" may not ask for ${kind}: mcp.${kind} of the host's options is "deny".`;
  return new HostError("ASK_UNANSWERED", message);
}
