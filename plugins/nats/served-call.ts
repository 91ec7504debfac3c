import { type CallResult, type Tool, type ToolContext, type ToolInvocation, type ToolResult, toCallResult } from "skillhost";
import type { CallMessage, ControlMessage, WorkerMessage } from "./call-messages.ts";
import type { CallSpan } from "./call-spans.ts";

/** What a worker sends, without its own id. */
type Outgoing = WorkerMessage extends infer M ? (M extends { readonly worker: string } ? Omit<M, "worker"> : never) : never;

export interface ServedCallOptions {
  readonly tool: Tool;
  readonly call: CallMessage;
  readonly workingDirectory: string;
  readonly services: ToolInvocation["services"];
  /** Absent: nothing is traced here. */
  readonly span: CallSpan | undefined;
  /** Waits until the call may begin. Undefined: it may at once. */
  readonly turn: () => Promise<void> | undefined;
  /** Sends to the host that called. */
  readonly send: (message: Outgoing) => void;
  /** The same, and has the server report when nothing listens any more. */
  readonly sendChecked: (message: Outgoing) => void;
  /** Receives work that outlasts the call. */
  readonly onBackground: (work: PromiseLike<unknown>) => void;
}

/** A call that is over before this has nothing to announce. */
const acceptAfterMs = 50;
const aliveEveryMs = 500;
/** How often a worker looks which of its calls have something to announce. One timer for all costs less than one for each. */
export const announceEveryMs = 10;
// Of a stack, which goes to the log of the host.
const maxStack = 4_000;

/** One call that a worker runs for a host. */
export class ServedCall {
  readonly #options: ServedCallOptions;
  /** Made when something needs it, which in most calls nothing does. */
  #controller: AbortController | undefined;
  #questions: Map<number, { resolve(value: unknown): void; reject(error: Error): void }> | undefined;
  #asked = 0;
  #sendArgs: ((args: unknown) => void) | undefined;
  #isAccepted = false;
  /** When the next sign of life is due. */
  #due = performance.now() + acceptAfterMs;
  /** The message that ended it. */
  ending: Outgoing | undefined;

  constructor(options: ServedCallOptions) {
    this.#options = options;
  }

  /** Runs the tool, and sends the outcome. Never rejects. `isFailed`: the tool threw. */
  async run(): Promise<{ readonly isFailed: boolean }> {
    const { span, turn } = this.#options;
    if (this.#options.call.large === true) this.announce(this.#due);
    try {
      const waiting = turn();
      if (waiting !== undefined) await waiting;
      this.#controller?.signal.throwIfAborted();
      this.#finish(await (span === undefined ? this.#outcome() : span.within(() => this.#outcome())));
    } catch (error) {
      this.#finish(errorMessageOf(error));
    } finally {
      span?.end(this.ending?.type === "result" ? undefined : this.ending?.type);
      this.#rejectQuestions("The call is over.");
    }
    return { isFailed: this.ending?.type === "error" };
  }

  control(message: ControlMessage): void {
    if (message.type === "cancel") this.cancel(message.reason);
    else if (message.type === "args") this.#sendArgs?.(message.args);
    else this.#settle(message);
  }

  cancel(reason: string): void {
    this.#abortion.abort(new DOMException(reason, "AbortError"));
    this.#rejectQuestions(reason);
  }

  /** A fast call sends only its result. Others say at once that they run, and then that they still do. */
  announce(now: number): void {
    if (this.ending !== undefined || now < this.#due) return;
    const { send, sendChecked } = this.#options;
    if (this.#isAccepted) sendChecked({ type: "alive" });
    else send({ type: "accepted" });
    this.#isAccepted = true;
    this.#due = now + aliveEveryMs;
  }

  get #abortion(): AbortController {
    this.#controller ??= new AbortController();
    return this.#controller;
  }

  #rejectQuestions(reason: string): void {
    for (const { reject } of this.#questions?.values() ?? []) reject(new Error(reason));
  }

  async #outcome(): Promise<Outgoing> {
    const { tool, call } = this.#options;
    const args = call.large === true ? await this.#largeArgs() : call.args;
    const validated = await tool.validate(args);
    if (!validated.ok) {
      const issues = validated.issues.slice(0, 5).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
      return { type: "refused", reason: "arguments", message: `The arguments are not valid: ${issues.join("; ")}` };
    }
    const value: unknown = await tool.execute(validated.value, this.#context(validated.value));
    return { type: "result", value };
  }

  #finish(message: Outgoing): void {
    const { send } = this.#options;
    try {
      send(message);
      this.ending = message;
    } catch (error) {
      // What cannot be written as JSON, such as a cycle.
      this.ending = errorMessageOf(error);
      send(this.ending);
    }
  }

  #largeArgs(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#sendArgs = resolve;
      const { signal } = this.#abortion;
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
  }

  #context(args: unknown): ToolContext {
    const { send, onBackground } = this.#options;
    return {
      invocation: this.#invocation(args),
      ask: (kind, data, options) =>
        this.#ask((id) => ({ type: "ask", id, kind, data, ...(options?.key !== undefined && { key: options.key }) })) as Promise<never>,
      callTool: async (name: string, given: unknown) => {
        const answer = await this.#ask((id) => ({ type: "call", id, name, args: given }));
        return toCallResult(answer as ToolResult) as CallResult<never>;
      },
      progress: (update) => send({ type: "progress", update: { ...update } }),
      fileChanged: (path, content, options) =>
        send({ type: "file", path, content, ...(options?.languageId !== undefined && { languageId: options.languageId }) }),
      background: onBackground,
    };
  }

  #invocation(args: unknown): ToolInvocation {
    const { call, tool, workingDirectory, services } = this.#options;
    const { session, toolCall } = call;
    const { traceparent, tracestate } = this.#options.span?.headers ?? call;
    const abortion = (): AbortController => this.#abortion;
    const invocation = {
      sessionId: session,
      toolCallId: toolCall,
      toolName: tool.definition.name,
      arguments: args,
      get signal() {
        return abortion().signal;
      },
      workingDirectory,
      ...(traceparent !== undefined && { traceparent }),
      ...(tracestate !== undefined && { tracestate }),
    };
    // As in a host, these are not data of the call.
    return Object.defineProperty(invocation, "services", { value: services, enumerable: false }) as ToolInvocation;
  }

  #ask(question: (id: number) => Outgoing): Promise<unknown> {
    const id = ++this.#asked;
    const signal = this.#controller?.signal;
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    this.#questions ??= new Map();
    const questions = this.#questions;
    const answer = new Promise<unknown>((resolve, reject) => questions.set(id, { resolve, reject }));
    this.#options.send(question(id));
    return answer;
  }

  #settle({ id, value, problem }: Extract<ControlMessage, { type: "answer" }>): void {
    const question = this.#questions?.get(id);
    this.#questions?.delete(id);
    if (problem === undefined) question?.resolve(value);
    else question?.reject(new Error(String(problem)));
  }
}

function errorMessageOf(error: unknown): Outgoing {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { type: "error", message, ...(stack !== undefined && { stack: stack.slice(0, maxStack) }) };
}
