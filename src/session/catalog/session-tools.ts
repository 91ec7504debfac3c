import { canonicalJson } from "../../base/canonical-json.ts";
import { LruMap } from "../../base/lru-map.ts";
import type { Tool } from "../../tools/tool.ts";
import { type AgentProfile, startableAgents } from "../agents/agent-profiles.ts";
import { agentPromptOf } from "../agents/agent-prompt.ts";
import { ChildConversation } from "../agents/sub-agent-conversation.ts";
import { type ChildRequest, maxAgentDepth, SubAgents } from "../agents/sub-agents.ts";
import type { AskKind } from "../clients/request-kinds.ts";
import type { SessionClients } from "../clients/session-client.ts";
import type { SessionDatabase } from "../database/session-database.ts";
import { type SessionEnvironment, transcriptPath } from "../environment.ts";
import type { RecordedEvent } from "../history/events.ts";
import type { SessionServerConnections } from "../mcp/server-connections.ts";
import { assembleInstructions } from "../prompt/system-prompt.ts";
import type { ResolvedSessionConfig } from "../session-config.ts";
import { askUser, askUserByForm } from "../tools/ask-user.ts";
import { exitPlanMode } from "../tools/plan-mode.ts";
import type { SessionPlan, SessionServices } from "../tools/session-tool-services.ts";
import { offeredSkills, useSkill } from "../tools/skill-tool.ts";
import { sqlTool } from "../tools/sql-tool.ts";
import { createTaskTool, listAgents, readAgent, writeAgent } from "../tools/sub-agent-tools.ts";
import { ModelCache } from "../turns/turn-options.ts";
import type { TurnContext } from "../turns/turn-types.ts";
import { type CatalogView, createCatalogView, withSessionTools } from "./catalog-view.ts";
import { LiveCatalog } from "./live-catalog.ts";
import { DiscoveredTools, type ToolCatalog, toolsDiscoveredIn } from "./tool-catalog.ts";

/** What a conversation can do that takes a tool of its session. */
interface ToolDefinitionSource {
  /** There are skills that the model may load. */
  readonly skills: boolean;
  /** A client can answer questions, or fill in forms. */
  readonly userInput: "question" | "form" | undefined;
  /** A plan is being made, and a client can approve it. */
  readonly planning: boolean;
  /** The session has a database. */
  readonly database: boolean;
  /** The agents that can be given tasks; none where there is no model for them. */
  readonly agents: readonly AgentProfile[];
}

/** The tools for what a conversation can do. Equal offers give the same tools. The search for deferred tools comes with the deferral. */
function sessionToolsFor({ skills, userInput, planning, database, agents }: ToolDefinitionSource): readonly Tool[] {
  return [
    ...(skills ? [useSkill] : []),
    ...(userInput === undefined ? [] : [userInput === "form" ? askUserByForm : askUser]),
    ...(planning ? [exitPlanMode] : []),
    ...(database ? [sqlTool] : []),
    ...(agents.length > 0 ? [taskToolFor(agents), readAgent, writeAgent, listAgents] : []),
  ];
}

// A process has few different sets of agents; programs that generate new ones repeatedly lose the oldest.
const taskTools = new LruMap<string, Tool>(32);

function taskToolFor(agents: readonly AgentProfile[]): Tool {
  const key = canonicalJson(agents.map(({ name, description }) => [name, description]));
  return taskTools.getOrCreate(key, () => createTaskTool(agents));
}

/** What a session's tools are assembled from, and what those that it brings itself act on. */
interface ToolsetContext extends TurnContext {
  readonly environment: SessionEnvironment;
  readonly clients: SessionClients;
  readonly servers: SessionServerConnections;
  readonly plan: SessionPlan;
  readonly database: SessionDatabase | undefined;
  /** Sends a message to the session's own agent, which continues if it is idle. */
  notify(message: string): void;
  background(work: PromiseLike<unknown>): void;
}

/** A session's tools with those that it brings itself, for its own conversation and for those of sub-agents. */
export class SessionToolset {
  /** What the session's own model has been shown of what is deferred. */
  readonly disclosure: DiscoveredTools = new DiscoveredTools();
  readonly services: SessionServices;
  readonly #host: ToolsetContext;
  #couldAsk: string | undefined;

  constructor(host: ToolsetContext) {
    this.#host = host;
    const subAgents = new SubAgents({
      turns: host,
      profiles: () => new Map(startableAgents(host.config.agents).map((profile) => [profile.name, profile])),
      converse: (request) => this.#converse(request),
      notify: (message) => host.notify(message),
      background: (work) => host.background(work),
      transcriptPath: () => transcriptPath(host),
    });
    this.services = {
      events: host.events,
      log: host.log,
      skills: () => host.environment.skills(host.config.view),
      subAgents,
      plan: host.plan,
      database: host.database,
    };
  }

  /** Whether clients attached or detached, so that the session would bring other tools than when it was last asked. */
  get isStale(): boolean {
    return this.#couldAsk !== undefined && this.#couldAsk !== this.#canAsk();
  }

  /** The catalog of the session's own conversation. */
  assemble(): ToolCatalog {
    this.#couldAsk = this.#canAsk();
    return this.#assemble(this.#host.config.view, 0);
  }

  /** Restores what the model was shown before the session was resumed. */
  replay(events: readonly RecordedEvent[]): void {
    this.disclosure.restore(toolsDiscoveredIn(events));
  }

  /** Stops all sub-agents, and waits until they have. */
  close(): Promise<void> {
    return this.services.subAgents.close();
  }

  /** `depth`: 0 for the session's own conversation. `named`: the tools that a sub-agent is limited to. */
  #assemble(view: CatalogView, depth: number, named?: readonly string[]): ToolCatalog {
    // They serve a conversation: a session that has no model to talk to brings none.
    const tools = hasModel(this.#host.config) ? sessionToolsFor(this.#offersAt(depth, named)) : [];
    return this.#host.environment.catalog(withSessionTools(view, tools), this.#host.clients.snapshots());
  }

  #canAsk(): string {
    return askedByTools.filter((kind) => this.#host.clients.canAsk(kind)).join();
  }

  #userInput(): ToolDefinitionSource["userInput"] {
    const { agentMode, asksByForm } = this.#host.config.turn;
    // Autopilot never asks the user.
    if (agentMode === "autopilot") return undefined;
    if (asksByForm && this.#host.clients.canAsk("elicitation")) return "form";
    return this.#host.clients.canAsk("userInput") ? "question" : undefined;
  }

  #offersAt(depth: number, named: readonly string[] | undefined): ToolDefinitionSource {
    const { turn, options } = this.#host.config;
    return {
      // A sub-agent has only the skills that it is given from the start.
      skills: depth === 0 && offeredSkills(this.services.skills()).length > 0,
      userInput: this.#userInput(),
      planning: depth === 0 && turn.agentMode === "plan" && this.#host.clients.canAsk("exitPlanMode"),
      // A sub-agent with tools of its own choice has it only by name.
      database:
        options.sessionDatabase === true &&
        this.#host.database !== undefined &&
        (named === undefined || named.some((name) => namesSql.has(name))),
      agents: depth < maxAgentDepth ? startableAgents(this.#host.config.agents) : [],
    };
  }

  #converse({ profile, model, agentId, parentAgentId, depth }: ChildRequest): ChildConversation {
    const models = new ModelCache();
    const view = childViews(profile, model);
    const catalog = new LiveCatalog(() => this.#assemble(view(this.#host.config.view), depth, profile.tools), this.#host.log);
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

  /** The system message of a sub-agent. It is assembled once and does not change. */
  #instructionsOf(profile: AgentProfile, agentId: string, view: () => CatalogView): () => Promise<string> {
    const { events } = this.#host;
    let made: Promise<string> | undefined;
    const make = async (): Promise<string> => {
      const agentPrompt = await agentPromptOf(profile, this.services, agentId);
      const { workingDirectory } = this.#host.config;
      const servers = this.#host.servers.instructions(view());
      const content = await assembleInstructions({
        workingDirectory,
        agentPrompt,
        skills: [],
        listingTokens: 0,
        servers,
        customizations: [],
      });
      events.append("system.message", { role: "system", content }, agentId);
      return content;
    };
    return () => {
      made ??= make();
      return made;
    };
  }
}

const namesSql: ReadonlySet<string> = new Set(["sql", "builtin:sql", "builtin:*"]);

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
