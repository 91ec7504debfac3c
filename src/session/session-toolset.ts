import type { SkillEntry, SourceSnapshot } from "../tools/tool-source.ts";
import { agentPromptOf } from "./agents/agent-prompt.ts";
import { type AgentProfile, startableAgents } from "./agents/agents.ts";
import { ChildConversation } from "./agents/sub-agent-conversation.ts";
import { type ChildRequest, createSubAgents, maxAgentDepth } from "./agents/sub-agents.ts";
import type { AskKind } from "./asks/ask-kinds.ts";
import { type CatalogView, createCatalogView, withSessionTools } from "./catalog/catalog-view.ts";
import { createDisclosure, type Disclosure, toolsShownIn } from "./catalog/deferral.ts";
import { createLiveCatalog } from "./catalog/live-catalog.ts";
import type { ToolCatalog } from "./catalog/tool-catalog.ts";
import type { SessionEnvironment } from "./environment.ts";
import { assembleInstructions, type ServerInstructions } from "./instructions/instructions.ts";
import type { SessionEvent } from "./records/events.ts";
import type { ResolvedSessionConfig } from "./session-config.ts";
import type { SessionPlan, SessionServices } from "./session-services.ts";
import { type SessionOffers, sessionToolsFor } from "./session-tools.ts";
import { offeredSkills } from "./tools/skill.ts";
import { ModelKeeper } from "./turns/turn-model.ts";
import type { TurnHost } from "./turns/turn-types.ts";

/** What a session gives for its tools to be put together. */
export interface ToolsetHost extends TurnHost {
  readonly environment: SessionEnvironment;
  /** The configuration of now. */
  readonly config: ResolvedSessionConfig;
  /** The skills that are active, lowest precedence first. */
  skills(): readonly SkillEntry[];
  /** What clients pushed. */
  snapshots(): readonly SourceSnapshot[];
  /** Whether somebody can answer this kind of question. */
  canAsk(kind: AskKind): boolean;
  readonly plan: SessionPlan;
  /** Says something to the session's own agent; it goes on if it is at rest. */
  notify(message: string): void;
  background(work: PromiseLike<unknown>): void;
  transcriptPath(): string;
  /** Starts the MCP servers of a view, and waits a while until each was tried. */
  readonly servers: { ready(signal: AbortSignal, view: CatalogView): Promise<void> };
  /** What the MCP servers of a view say about their use. */
  serverInstructions(view?: CatalogView): readonly ServerInstructions[];
}

/** A session's tools with those that it brings itself, for its own conversation and for those of sub-agents. */
export interface SessionToolset {
  /** What the session's own model has been shown of what is deferred. */
  readonly disclosure: Disclosure;
  readonly services: SessionServices;
  /** The catalog of the session's own conversation. */
  assemble(): ToolCatalog;
  /** Whether somebody came or left, so that the session brings other tools now than when it was last asked. */
  readonly isStale: boolean;
  /** Takes over what the model was shown before the session was gone on with. */
  replay(events: readonly SessionEvent[]): void;
  /** Stops all sub-agents, and waits until they have. */
  close(): Promise<void>;
}

export function createSessionToolset(host: ToolsetHost): SessionToolset {
  return new Toolset(host);
}

class Toolset implements SessionToolset {
  readonly disclosure = createDisclosure();
  readonly services: SessionServices;
  readonly #host: ToolsetHost;
  #couldAsk: string | undefined;

  constructor(host: ToolsetHost) {
    this.#host = host;
    const subAgents = createSubAgents({
      turns: host,
      profiles: () => new Map(startableAgents(host.config.agents).map((profile) => [profile.name, profile])),
      converse: (request) => this.#converse(request),
      notify: (message) => host.notify(message),
      background: (work) => host.background(work),
      transcriptPath: () => host.transcriptPath(),
    });
    this.services = {
      events: host.events,
      log: host.log,
      skills: () => host.skills(),
      subAgents,
      plan: host.plan,
    };
  }

  get isStale(): boolean {
    return this.#couldAsk !== undefined && this.#couldAsk !== this.#canAsk();
  }

  assemble(): ToolCatalog {
    this.#couldAsk = this.#canAsk();
    return this.#assemble(this.#host.config.view, 0);
  }

  replay(events: readonly SessionEvent[]): void {
    this.disclosure.restore(toolsShownIn(events));
  }

  close(): Promise<void> {
    return this.services.subAgents.close();
  }

  /** `depth`: 0 for the session's own conversation. */
  #assemble(view: CatalogView, depth: number): ToolCatalog {
    // They serve a conversation: a session that has no model to talk to brings none.
    const tools = hasModel(this.#host.config) ? sessionToolsFor(this.#offersAt(depth)) : [];
    return this.#host.environment.catalog(withSessionTools(view, tools), this.#host.snapshots());
  }

  #canAsk(): string {
    return askedByTools.filter((kind) => this.#host.canAsk(kind)).join();
  }

  #userInput(): SessionOffers["userInput"] {
    const { agentMode, asksByForm } = this.#host.config.turn;
    // Who works alone asks nobody.
    if (agentMode === "autopilot") return undefined;
    if (asksByForm && this.#host.canAsk("elicitation")) return "form";
    return this.#host.canAsk("userInput") ? "question" : undefined;
  }

  #offersAt(depth: number): SessionOffers {
    const { turn } = this.#host.config;
    return {
      // A sub-agent has only the skills that it is given from the start.
      skills: depth === 0 && offeredSkills(this.services.skills()).length > 0,
      userInput: this.#userInput(),
      planning: depth === 0 && turn.agentMode === "plan" && this.#host.canAsk("exitPlanMode"),
      agents: depth < maxAgentDepth ? startableAgents(this.#host.config.agents) : [],
    };
  }

  #converse({ profile, model, agentId, parentAgentId, depth }: ChildRequest): ChildConversation {
    const models = new ModelKeeper();
    const view = childViews(profile, model);
    const catalog = createLiveCatalog(() => this.#assemble(view(this.#host.config.view), depth), this.#host.log);
    const { turn } = this.#host.config;
    const instructions = this.#instructionsOf(profile, agentId, () => view(this.#host.config.view));
    return new ChildConversation(
      {
        agentId,
        parentAgentId,
        catalog,
        maxIterations: turn.maxIterations,
        streaming: turn.streaming,
        ready: (signal) => this.#host.servers.ready(signal, view(this.#host.config.view)),
        model: () => models.modelOf(childTurn(this.#host.config, profile, model)),
        instructions: () => instructions(),
      },
      this.#host,
    );
  }

  /** The system message of a sub-agent. It is made once: what it was told stays. */
  #instructionsOf(profile: AgentProfile, agentId: string, view: () => CatalogView): () => Promise<string> {
    const { events } = this.#host;
    let made: Promise<string> | undefined;
    const make = async (): Promise<string> => {
      const agentPrompt = await agentPromptOf(profile, this.services, agentId);
      const { workingDirectory } = this.#host.config;
      const servers = this.#host.serverInstructions(view());
      const content = await assembleInstructions({ workingDirectory, agentPrompt, skills: [], listingTokens: 0, servers, wishes: [] });
      events.append("system.message", { role: "system", content }, agentId);
      return content;
    };
    return () => {
      made ??= make();
      return made;
    };
  }
}

/** The questions that tools are there for. */
const askedByTools: readonly AskKind[] = ["userInput", "elicitation", "exitPlanMode"];

function hasModel({ turn }: ResolvedSessionConfig): boolean {
  return turn.chatModel !== undefined || (turn.model !== undefined && turn.provider !== undefined);
}

type TurnConfig = ResolvedSessionConfig["turn"];

function childTurn({ turn }: ResolvedSessionConfig, profile: AgentProfile, model: string | undefined): TurnConfig {
  const isOther = model !== undefined && model !== turn.model;
  // How much a model should think is said for one model; another has its own default.
  const reasoningEffort = profile.reasoningEffort ?? (isOther ? undefined : turn.reasoningEffort);
  return { ...turn, model: model ?? turn.model, reasoningEffort, capabilities: isOther ? {} : turn.capabilities };
}

/** The session's view with a sub-agent's eyes: its own list of tools and deferral for its own model, behind the session's filter. */
function childViews(profile: AgentProfile, model: string | undefined): (view: CatalogView) => CatalogView {
  let from: CatalogView | undefined;
  let made: CatalogView | undefined;
  return (view) => {
    if (view === from && made !== undefined) return made;
    from = view;
    const agent = { name: profile.name, tools: profile.tools };
    made = createCatalogView({ ...view.options, model: model ?? view.model, agent, defaultExcludedTools: undefined });
    return made;
  };
}
