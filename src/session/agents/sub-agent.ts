import { errorMessage, toError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import type { SessionEventData } from "../history/event-types.ts";
import type { AgentFacts } from "../prompt/model-text.ts";
import type { TurnContext, TurnEnd } from "../turns/turn-types.ts";
import type { AgentProfile } from "./agent-profiles.ts";
import type { ChildConversation } from "./sub-agent-conversation.ts";

export interface SubAgentOptions {
  /** What models call it by. */
  readonly id: string;
  readonly profile: AgentProfile;
  readonly description: string;
  /** The call that started it. */
  readonly toolCallId: string;
  /** The sub-agent that started it; undefined: the session's own agent did. */
  readonly parent: SubAgent | undefined;
  readonly model: string | undefined;
  readonly conversation: ChildConversation;
  /** Where the session's log is, for hooks. */
  readonly transcriptPath: string;
}

/** An agent at work on a task of its own: what it was asked, how far it is, what it said. */
export class SubAgent {
  readonly id: string;
  readonly profile: AgentProfile;
  readonly toolCallId: string;
  readonly parent: SubAgent | undefined;
  readonly depth: number;
  readonly conversation: ChildConversation;
  readonly startedAt: Date = new Date();
  /** When it finished what it was last asked. Undefined: it is running. */
  endedAt: Date | undefined;
  /** Why it failed. */
  error: Error | undefined;
  /** The first message to it. */
  prompt = "";
  /** Whether its parent continues while it runs. */
  isInBackground = false;
  /** What it answered, one for each time it was asked. */
  readonly replies: string[] = [];
  status: AgentFacts["status"] = "running";
  /** Settles when it has done what it was last asked; never rejects. */
  settled: Promise<void> = Promise.resolve();
  readonly #options: SubAgentOptions;
  readonly #host: TurnContext;
  readonly #startedAt = performance.now();
  #stopping = new AbortController();
  #isWorking = false;
  #workedMs = 0;

  constructor(options: SubAgentOptions, host: TurnContext) {
    this.id = options.id;
    this.profile = options.profile;
    this.toolCallId = options.toolCallId;
    this.parent = options.parent;
    this.depth = options.parent === undefined ? 1 : options.parent.depth + 1;
    this.conversation = options.conversation;
    this.#options = options;
    this.#host = host;
  }

  /** Fires when it is to stop what it does now. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  get facts(): AgentFacts {
    const { description, model } = this.#options;
    return {
      id: this.id,
      type: this.profile.name,
      status: this.status,
      description,
      elapsed: seconds(performance.now() - this.#startedAt),
      duration: seconds(this.#workedMs),
      turns: Math.max(this.replies.length - 1, 0),
      model,
    };
  }

  /** Ends what it does, and all that it has started. */
  stop(): void {
    this.#stopping.abort(new DOMException(`Agent "${this.id}" was stopped.`, "AbortError"));
  }

  /** Stops it when a signal fires, as long as it works. */
  stopWith(signal: AbortSignal): void {
    const listening = onAbort(signal, () => this.stop());
    void this.settled.then(() => listening[Symbol.dispose]());
  }

  /** Says something to it. It hears it with its next request if it is at work, and goes to work if it is not. */
  ask(message: string): void {
    this.conversation.say(message);
    this.prompt ||= message;
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#stopping = new AbortController();
    this.status = "running";
    this.endedAt = undefined;
    this.error = undefined;
    this.settled = this.#work();
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    const begun = performance.now();
    this.#emit("subagent.started", { agentDescription: this.profile.description });
    let end = await this.#converse();
    while (end.kind === "ended" && this.conversation.hasNews && !this.signal.aborted) end = await this.#converse();
    const durationMs = Math.round(performance.now() - begun);
    this.#workedMs += durationMs;
    this.#isWorking = false;
    this.endedAt = new Date();
    const { toolCalls, tokens } = this.conversation.tally;
    const cost = { durationMs, totalToolCalls: toolCalls, ...(tokens > 0 && { totalTokens: tokens }) };
    if (end.kind === "failed") {
      this.status = "failed";
      this.error = end.error;
      this.#host.log.error(`Sub-agent "${this.id}" failed.`, { agent: this.profile.name, error: end.error });
      this.#emit("subagent.failed", { error: errorMessage(end.error), ...cost });
      return;
    }
    const isStopped = end.kind === "aborted" || this.signal.aborted;
    this.status = isStopped ? "cancelled" : "completed";
    this.replies.push(end.kind === "ended" ? (end.reply?.content ?? "") : "");
    this.#emit("subagent.completed", { ...(isStopped && { cancelled: true }), ...cost });
  }

  /** Lets it answer, and continue while a hook wants that and its budget of model requests lasts. */
  async #converse(): Promise<TurnEnd> {
    const { hooks } = this.#host;
    const { name: agentName, displayName: agentDisplayName, description: agentDescription } = this.profile;
    const facts = { agentName, agentDisplayName, agentDescription, transcriptPath: this.#options.transcriptPath };
    const options = { signal: this.signal };
    try {
      const { additionalContext } = await hooks.run("subagentStart", facts, options);
      this.conversation.say(...additionalContext);
      const budget = this.conversation.createBudget();
      for (;;) {
        const end = await this.conversation.run(this.signal, budget);
        if (end.kind !== "ended" || this.signal.aborted || budget.left <= 0) return end;
        const { blockedBy } = await hooks.run("subagentStop", facts, options);
        if (blockedBy === undefined) return end;
        this.conversation.say(blockedBy);
      }
    } catch (error) {
      return { kind: "failed", error: toError(error) };
    }
  }

  #emit<T extends "subagent.started" | "subagent.completed" | "subagent.failed">(
    type: T,
    more: Omit<SessionEventData[T], "agentName" | "agentDisplayName" | "toolCallId" | "model">,
  ): void {
    const { events } = this.#host;
    const { model } = this.#options;
    const { name: agentName, displayName: agentDisplayName } = this.profile;
    const data = { agentName, agentDisplayName, toolCallId: this.toolCallId, ...(model !== undefined && { model }), ...more };
    events.append(type, data as SessionEventData[T], this.conversation.agentId);
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}
