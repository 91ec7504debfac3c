import type { Asks, Progress, ToolContext, ToolInvocation, ToolResult } from "../tools/tool.ts";
import type { AskKind } from "./ask-kinds.ts";
import type { RunningCall } from "./running-call.ts";

/** The ways back into the session that a call's context leads to. */
export interface ContextServices {
  readonly sessionId: string;
  workingDirectory(): string;
  ask<K extends AskKind>(run: RunningCall, kind: K, data: Asks[K]["data"]): Promise<Asks[K]["answer"]>;
  callTool(run: RunningCall, ref: string, args: unknown): Promise<ToolResult>;
  progress(run: RunningCall, update: Progress): void;
  fileChanged(run: RunningCall, path: string, content: string): void;
}

/**
 * What a handler gets of its call. Its members are made when they are first read, bound to the call, so that a handler
 * may take them apart and one that uses none of them costs nothing.
 */
export class CallContext implements ToolContext {
  readonly #run: RunningCall;
  readonly #services: ContextServices;
  #invocation: ToolInvocation | undefined;

  constructor(run: RunningCall, services: ContextServices) {
    this.#run = run;
    this.#services = services;
  }

  get invocation(): ToolInvocation {
    this.#invocation ??= new Invocation(this.#run, this.#services) as unknown as ToolInvocation;
    return this.#invocation;
  }

  get ask(): ToolContext["ask"] {
    return (kind, data) => this.#services.ask(this.#run, kind, data);
  }

  get callTool(): ToolContext["callTool"] {
    return (ref, args) => this.#services.callTool(this.#run, ref, args);
  }

  get progress(): ToolContext["progress"] {
    return (update) => this.#services.progress(this.#run, update);
  }

  get fileChanged(): ToolContext["fileChanged"] {
    return (path, content) => this.#services.fileChanged(this.#run, path, content);
  }
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
  }
}
