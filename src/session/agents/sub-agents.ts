import { randomUUID } from "node:crypto";
import { onAbort } from "../../base/wait.ts";
import type { AgentScope } from "../calls/tool-call.ts";
import { agentText } from "../prompt/model-text.ts";
import type { TurnContext } from "../turns/turn-types.ts";
import type { AgentProfile } from "./agent-profiles.ts";
import { SubAgent } from "./sub-agent.ts";
import type { ChildConversation } from "./sub-agent-conversation.ts";

/** A task for an agent, as a model gives it. */
export interface TaskRequest {
  readonly agentType: string;
  /** What it is to be called; another is made of it where it is taken. */
  readonly name?: string | undefined;
  readonly description: string;
  readonly prompt: string;
  /** Default: the agent's own, else the session's. */
  readonly model?: string | undefined;
}

/** The call that gives the task. */
export interface TaskCall {
  readonly toolCallId: string;
  /** The conversation that the call belongs to. */
  readonly agent: Pick<AgentScope, "agentId">;
}

export type TaskStart =
  | { readonly kind: "started"; readonly agent: SubAgent }
  | { readonly kind: "refused"; readonly why: "unknown type" | "too deep" | "too many" };

/** A conversation that an agent is to have. */
export interface ChildRequest {
  readonly profile: AgentProfile;
  readonly model: string | undefined;
  /** Marks its events. */
  readonly agentId: string;
  /** Of the sub-agent that starts it; undefined: the session's own agent does. */
  readonly parentAgentId: string | undefined;
  /** 1 for an agent that the session's own agent starts. */
  readonly depth: number;
}

interface SubAgentsOptions {
  readonly turns: TurnContext;
  /** The agents that a model may start, by name. */
  profiles(): ReadonlyMap<string, AgentProfile>;
  /** Begins the conversation of an agent. */
  converse(request: ChildRequest): ChildConversation;
  /** Sends a message to the session's own agent, which continues if it is idle. */
  notify(message: string): void;
  /** The session is not idle until this settles. */
  background(work: Promise<unknown>): void;
  transcriptPath(): string;
}

/** An agent that starts an agent that starts an agent: that far, and no further. */
export const maxAgentDepth = 3;
/** Each has a model's attention and its cost. */
export const maxRunningAgents = 32;
// Those that are done can be read and asked on, until as many came after them.
const maxSettled = 64;

/** The agents that a session's agents have started. */
export class SubAgents {
  readonly #host: SubAgentsOptions;
  readonly #agents = new Map<string, SubAgent>();
  readonly #byAgentId = new Map<string, SubAgent>();
  #isClosed = false;

  constructor(host: SubAgentsOptions) {
    this.#host = host;
  }

  /** Starts one. It works by itself; `agent.settled` resolves when it is done. */
  start(request: TaskRequest, { toolCallId, agent: scope }: TaskCall): TaskStart {
    const profile = this.#host.profiles().get(request.agentType);
    const parent = this.ofScope(scope);
    const depth = (parent?.depth ?? 0) + 1;
    if (profile === undefined) return { kind: "refused", why: "unknown type" };
    if (depth > maxAgentDepth) return { kind: "refused", why: "too deep" };
    if (this.#isClosed || this.list().filter(isRunning).length >= maxRunningAgents) return { kind: "refused", why: "too many" };
    const model = request.model ?? profile.model;
    // Ids of calls come from models, and two conversations must never be taken for one.
    const agentId = this.#byAgentId.has(toolCallId) ? randomUUID() : toolCallId;
    const agent = new SubAgent(
      {
        id: this.#freeId(request.name ?? request.agentType),
        profile,
        description: request.description,
        toolCallId,
        parent,
        model,
        conversation: this.#host.converse({ profile, model, agentId, parentAgentId: parent?.conversation.agentId, depth }),
        transcriptPath: this.#host.transcriptPath(),
      },
      this.#host.turns,
    );
    this.#forgetOldest();
    this.#agents.set(agent.id, agent);
    this.#byAgentId.set(agentId, agent);
    agent.ask(request.prompt);
    if (parent !== undefined) agent.stopWith(parent.signal);
    return { kind: "started", agent };
  }

  /** Notifies the agent's parent once the agent is done. */
  notifyWhenSettled(agent: SubAgent): void {
    agent.isInBackground = true;
    const notified = agent.settled.then(() => {
      if (this.#isClosed) return;
      const message = agentText.notification(agent.facts);
      if (agent.parent === undefined) this.#host.notify(message);
      // One that is done was not waiting for this.
      else if (isRunning(agent.parent)) agent.parent.ask(message);
    });
    this.#host.background(notified);
  }

  /** Sends a message to an agent. A finished one starts to work again, and its end is announced. */
  send(agent: SubAgent, message: string): void {
    if (this.#isClosed) return;
    const wasRunning = isRunning(agent);
    agent.ask(message);
    // The parent of one that is at work is notified already.
    if (!wasRunning) this.notifyWhenSettled(agent);
  }

  find(id: string): SubAgent | undefined {
    return this.#agents.get(id) ?? this.#byAgentId.get(id);
  }

  /** Forgets an agent. False: it is still running. */
  remove(agent: SubAgent): boolean {
    if (isRunning(agent)) return false;
    agent.conversation[Symbol.dispose]();
    this.#agents.delete(agent.id);
    this.#byAgentId.delete(agent.conversation.agentId);
    return true;
  }

  /** Oldest first. */
  list(): readonly SubAgent[] {
    return [...this.#agents.values()];
  }

  /** The agent whose conversation this is; undefined: the session's own. */
  ofScope({ agentId }: Pick<AgentScope, "agentId">): SubAgent | undefined {
    return agentId === undefined ? undefined : this.#byAgentId.get(agentId);
  }

  /** Stops all of them, and waits until they have. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const agents = this.list();
    for (const agent of agents) agent.stop();
    await Promise.all(agents.map(({ settled }) => settled));
    for (const { conversation } of agents) conversation[Symbol.dispose]();
  }

  #freeId(wanted: string): string {
    const base =
      wanted
        .replace(/[^\w.-]+/g, "-")
        .replace(/^-+|-+$/g, "")
        .slice(0, 60) || "agent";
    let id = base;
    for (let number = 2; this.#agents.has(id); number++) id = `${base}-${number}`;
    return id;
  }

  #forgetOldest(): void {
    const settled = this.list().filter((agent) => !isRunning(agent));
    for (const agent of settled.slice(0, Math.max(settled.length - maxSettled + 1, 0))) this.remove(agent);
  }
}

export function isRunning({ status }: SubAgent): boolean {
  return status === "running";
}

/** Waits until an agent has done what it was asked, at most so long. True: it has. */
export async function untilSettled(agent: SubAgent, ms: number, signal: AbortSignal): Promise<boolean> {
  if (!isRunning(agent)) return true;
  return new Promise((resolve) => {
    const end = (isSettled: boolean): void => {
      clearTimeout(timer);
      listening[Symbol.dispose]();
      resolve(isSettled);
    };
    const timer = setTimeout(() => end(false), ms);
    const listening = onAbort(signal, () => queueMicrotask(() => end(false)));
    void agent.settled.then(() => end(true));
  });
}
