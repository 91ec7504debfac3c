import { HostError } from "../../base/errors.ts";
import type { ProcessLimits } from "../../io/process/confine-process.ts";
import type { AddressRules, AskOptions, Asks, Progress, ToolContext, ToolInvocation, ToolResult } from "../../tools/tool.ts";
import type { AskKind } from "../asks/ask-kinds.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { SessionServices } from "../session-services.ts";
import type { TracedStep } from "../telemetry.ts";
import type { AgentScope } from "./pipeline-types.ts";
import type { RunningCall } from "./running-call.ts";

/** The ways back into the session that a call's context leads to. */
export interface ContextServices {
  readonly sessionId: string;
  /** For the tools that the session brings itself. */
  readonly session: SessionServices;
  workingDirectory(): string;
  addressRules(): AddressRules | undefined;
  ask<K extends AskKind>(run: RunningCall, kind: K, data: Asks[K]["data"], options?: AskOptions): Promise<Asks[K]["answer"]>;
  callTool(run: RunningCall, ref: string, args: unknown): Promise<ToolResult>;
  progress(run: RunningCall, update: Progress): void;
  fileChanged(run: RunningCall, path: string, content: string, languageId?: string): void;
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
    return (ref, args) => this.#services.callTool(this.#run, ref, args);
  }

  get progress(): ToolContext["progress"] {
    return (update) => this.#services.progress(this.#run, update);
  }

  get fileChanged(): ToolContext["fileChanged"] {
    return (path, content, options) => this.#services.fileChanged(this.#run, path, content, options?.languageId);
  }

  get background(): ToolContext["background"] {
    return (work) => this.#services.background(work);
  }
}

/** What the tools that a session brings itself know of a call, beyond what every handler is told. */
export interface SessionCall {
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
  if (call === undefined) throw new HostError("CALL_FOREIGN", "A tool of a session was called by something else than a session.");
  return call;
}

class Invocation {
  readonly sessionId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: unknown;
  readonly workingDirectory: string;
  readonly #run: RunningCall;

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
  }
}
