import { randomUUID } from "node:crypto";
import type { ToolDefinition } from "../../tools/tool.ts";
import type { AgentScope } from "../calls/tool-call.ts";
import type { LiveCatalog } from "../catalog/live-catalog.ts";
import { DiscoveredTools, type ToolCatalog } from "../catalog/tool-catalog.ts";
import { History } from "../history/conversation-history.ts";
import type { RecordedEvent } from "../history/events.ts";
import { currentDateTime } from "../prompt/current-time.ts";
import { runTurn } from "../turns/turn-loop.ts";
import type { TurnModel } from "../turns/turn-options.ts";
import type { TurnAgent, TurnContext, TurnEnd, TurnRun } from "../turns/turn-types.ts";

/** What a sub-agent's conversation is made of. */
export interface ChildOptions {
  /** Marks its events, and is its hooks' session. */
  readonly agentId: string;
  readonly parentAgentId: string | undefined;
  readonly catalog: LiveCatalog;
  /** How often the model is asked for one prompt. */
  readonly maxIterations: number;
  readonly streaming: boolean;
  /** Settles when its MCP servers were tried, or after a while. Rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void>;
  /** @throws HostError `MODEL_MISSING`. */
  model(): TurnModel;
  instructions(catalog: ToolCatalog): string | Promise<string>;
}

/** What a conversation has cost so far. */
export interface Tally {
  readonly toolCalls: number;
  readonly tokens: number;
}

/**
 * A second conversation of a session: messages of its own in the session's events, its calls through the session's
 * pipeline, so before the same hooks and people.
 */
export class ChildConversation implements TurnAgent, Disposable {
  readonly agentId: string;
  readonly parentAgentId: string | undefined;
  readonly history: History;
  readonly streaming: boolean;
  readonly #options: ChildOptions;
  readonly #host: TurnContext;
  readonly #disclosure: DiscoveredTools = new DiscoveredTools();
  readonly #sinks: readonly Disposable[];
  readonly #waiting: string[] = [];
  #toolCalls = 0;
  #tokens = 0;

  constructor(options: ChildOptions, host: TurnContext) {
    this.agentId = options.agentId;
    this.parentAgentId = options.parentAgentId;
    this.streaming = options.streaming;
    this.#options = options;
    this.#host = host;
    this.history = new History({ agentId: this.agentId });
    const hear = (event: RecordedEvent): void => {
      if (event.agentId !== this.agentId) return;
      this.history.add(event);
      const { toolRequests, inputTokens, outputTokens } = event.data;
      if (event.type === "assistant.message" && Array.isArray(toolRequests)) this.#toolCalls += toolRequests.length;
      if (event.type === "assistant.usage") this.#tokens += numberOf(inputTokens) + numberOf(outputTokens);
    };
    this.#sinks = heardTypes.map((type) => host.events.addSink(hear, type));
  }

  get tally(): Tally {
    return { toolCalls: this.#toolCalls, tokens: this.#tokens };
  }

  /** Whether something was said that the agent has not heard. */
  get hasNews(): boolean {
    return this.#waiting.length > 0;
  }

  /** Says something to the agent: it hears it with the next request to its model. */
  say(...messages: readonly string[]): void {
    this.#waiting.push(...messages);
  }

  /** How often the model may be asked until the agent has to have answered. */
  createBudget(): TurnRun["budget"] {
    const { maxIterations: total } = this.#options;
    return { left: total, total };
  }

  /** Lets the agent work on what was said, until it has answered. Never rejects. */
  async run(signal: AbortSignal, budget: TurnRun["budget"]): Promise<TurnEnd> {
    try {
      await this.#options.ready(signal);
    } catch {
      // The signal has fired; what it is given to read is still its own.
    }
    await this.takeSteeringMessages();
    return runTurn(this, this.#host, { interactionId: randomUUID(), signal, budget, counter: { next: 0 } });
  }

  model(): TurnModel {
    return this.#options.model();
  }

  scope(turn: { readonly turnId: string; readonly signal: AbortSignal }): AgentScope {
    const { catalog } = this.#options;
    return {
      get catalog() {
        return catalog.current;
      },
      hasVanished: (name) => catalog.hasVanished(name),
      agentId: this.agentId,
      disclosure: this.#disclosure,
      ...turn,
    };
  }

  tools(catalog: ToolCatalog): readonly ToolDefinition[] {
    return this.#disclosure.advertised(catalog);
  }

  instructions(catalog: ToolCatalog): string | Promise<string> {
    return this.#options.instructions(catalog);
  }

  async takeSteeringMessages(): Promise<boolean> {
    const messages = this.#waiting.splice(0);
    const now = currentDateTime(this.#host.config.turn.currentDateTime);
    for (const content of messages) {
      const transformedContent = now === "" ? content : `${now}\n\n${content}`;
      this.#host.events.append("user.message", { content, transformedContent, source: "agent" }, this.agentId);
    }
    return messages.length > 0;
  }

  /** Its messages are not followed any more. */
  [Symbol.dispose](): void {
    for (const sink of this.#sinks) sink[Symbol.dispose]();
  }
}

const heardTypes = ["user.message", "assistant.message", "tool.execution_complete", "assistant.usage"] as const;

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
