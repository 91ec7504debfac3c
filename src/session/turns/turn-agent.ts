import { existsSync } from "node:fs";
import { HostError, toError } from "../../base/errors.ts";
import type { ModelRequest } from "../../models/model.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";
import { AgentPromptCache } from "../agents/agent-prompt.ts";
import type { AgentScope } from "../calls/tool-call.ts";
import type { SessionCatalog } from "../catalog/live-catalog.ts";
import type { SessionToolset } from "../catalog/session-tools.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { SessionEnvironment } from "../environment.ts";
import type { History } from "../history/conversation-history.ts";
import type { SkillFacts } from "../history/event-types.ts";
import type { RecordedEvent } from "../history/events.ts";
import type { SessionServerConnections } from "../mcp/server-connections.ts";
import { currentDateTime } from "../prompt/current-time.ts";
import { CustomInstructions } from "../prompt/instruction-files.ts";
import { promptContext, toolsChangedNotice } from "../prompt/model-text.ts";
import { assembleInstructions, eagerPrompts, type InstructionParts } from "../prompt/system-prompt.ts";
import type { SessionContext } from "../session-context.ts";
import { Compactor } from "./compaction.ts";
import { MessageQueue, type QueuedMessage } from "./message-queue.ts";
import { commandIn, runCommand, type SessionCommand, userSkillContext } from "./slash-commands.ts";
import { ModelCache, type TurnModel } from "./turn-options.ts";
import type { TurnAgent, TurnContext } from "./turn-types.ts";
import { attachmentTexts } from "./user-attachments.ts";

/** What the turns of a session's own conversation work with, beside what those of sub-agents do. */
export interface SessionTurnContext extends TurnContext {
  readonly environment: SessionEnvironment;
  readonly catalog: SessionCatalog;
  readonly servers: SessionServerConnections;
  readonly toolset: SessionToolset;
  /** Settles when the session's sources are loaded. */
  ready(signal: AbortSignal): Promise<void>;
}

/** A request that a model got. */
export interface SentRequest {
  readonly model: string;
  /** Before the provider's own format. */
  readonly request: ModelRequest;
  /** The body of the HTTP request, as the endpoint got it. Absent: the model is not asked over HTTP, or does not say. */
  readonly body?: () => string;
}

/** Where a message of a user belongs. */
interface Interaction {
  readonly interactionId: string;
  readonly signal: AbortSignal;
}

/** The conversation of a session itself. */
export class SessionTurnAgent implements TurnAgent {
  readonly #host: SessionTurnContext;
  readonly #models = new ModelCache();
  readonly #instructions: SystemPromptCache;
  readonly #custom: CustomInstructions;
  /** The messages that wait for their turn, or for the running one. */
  readonly queue: MessageQueue;
  #interaction: Interaction | undefined;
  /** The messages that the running turn answers. */
  #answering: readonly string[] = [];
  readonly context: Compactor;
  /** The tools that the model knows of, as far as it was not informed that they are gone. */
  #announced: Set<string> | undefined;
  #advertised: readonly ToolDefinition[] | undefined;
  #announcedModel: string | undefined;
  #hasBegun = false;
  /** The last request to the model. */
  lastRequest: SentRequest | undefined;
  #missingDirectory: string | undefined;

  constructor(host: SessionTurnContext) {
    this.#host = host;
    this.queue = new MessageQueue(() => host.events.append("pending_messages.modified", {}));
    this.context = new Compactor(host);
    const prompts = new AgentPromptCache(host.toolset.services);
    this.#custom = new CustomInstructions(
      () => ({ options: host.config.turn.customInstructions, workingDirectory: host.config.workingDirectory }),
      host.log,
    );
    const parts = async () => {
      const { workingDirectory, turn, agents } = host.config;
      return {
        workingDirectory,
        agentPrompt: await prompts.promptOf(agents.selected),
        skills: host.environment.skills(host.config.view),
        mode: turn.agentMode,
        custom: this.#custom.text,
        listingTokens: turn.listingTokens,
        servers: host.servers.instructions(),
        customizations: turn.systemMessages,
      };
    };
    this.#instructions = new SystemPromptCache(host, parts);
  }

  get history(): History {
    return this.#host.recording.history;
  }

  get streaming(): boolean {
    return this.#host.config.turn.streaming;
  }

  model(): TurnModel {
    return this.#models.modelOf(this.#host.config.turn);
  }

  scope(turn: { readonly turnId: string; readonly signal: AbortSignal }): AgentScope {
    return this.#host.catalog.createScope(this.#host.toolset.disclosure, turn);
  }

  tools(catalog: ToolCatalog): readonly ToolDefinition[] {
    const advertised = this.#host.toolset.disclosure.advertised(catalog);
    if (advertised === this.#advertised) return advertised;
    this.#advertised = advertised;
    const announced = this.#announcedTools();
    for (const { name } of advertised) announced.add(name);
    return advertised;
  }

  async instructions(catalog: ToolCatalog): Promise<string> {
    this.announceModel(this.model().chat.id);
    const text = await this.#instructions.refresh(catalog);
    this.#instructions.announce();
    return text;
  }

  sent(request: ModelRequest, { chat }: TurnModel): void {
    this.lastRequest = { model: chat.id, request, ...(chat.bodyOf && { body: () => chat.bodyOf!(request) }) };
  }

  /** Takes the steering messages that were sent during the turn. */
  async takeSteeringMessages(): Promise<boolean> {
    let isAnythingSaid = false;
    for (const message of this.queue.takeSteering()) {
      this.#answering = [...this.#answering, message.id];
      isAnythingSaid = (await this.#take(message, this.#interaction!)) || isAnythingSaid;
    }
    return isAnythingSaid;
  }

  /** Begins to answer a message. False: it was a command, which is done, and there is nothing to answer. */
  async say(message: QueuedMessage, interaction: Interaction): Promise<boolean> {
    this.#interaction = interaction;
    let isToAnswer = false;
    for (const one of [...(message.preceding ?? []), message]) isToAnswer = (await this.#take(one, interaction)) || isToAnswer;
    return isToAnswer;
  }

  /** Begins with the next message that waits. Undefined: none does. */
  next(): QueuedMessage | undefined {
    const message = this.queue.take();
    this.#answering = message === undefined ? [] : [...(message.preceding ?? []), message].map(({ id }) => id);
    return message;
  }

  get answering(): readonly string[] {
    return this.#answering;
  }

  /** Before the first message: whatever follows must find its way into the history. @throws HostError `MODEL_MISSING`. */
  begin(): void {
    this.model();
    void this.history;
  }

  /**
   * Takes a message into the conversation: through its hooks, with what the model must know before it. False: it was a
   * command, which is done, and there is nothing to answer. Rejects when the signal fires, or the command fails.
   */
  async #take(message: QueuedMessage, { interactionId, signal }: Interaction): Promise<boolean> {
    if (message.isContinuation) return this.#continue();
    const { hooks, events } = this.#host;
    const submitted = await hooks.run("userPromptSubmitted", { prompt: message.prompt }, { signal });
    // Only a person gives commands: what an agent has to say may begin with a slash, too.
    const called =
      message.source === undefined ? commandIn(submitted.prompt, this.#host.environment.commands?.() ?? noCommands) : undefined;
    const given = called && (await runCommand(called, this.#host, signal));
    if (called !== undefined && (typeof given !== "string" || given.trim() === "")) return false;
    this.#checkDirectory();
    const starts = !this.#hasBegun;
    const past = starts ? await this.#readPast() : undefined;
    this.#custom.refresh();
    const catalog = this.#host.catalog.current;
    this.announceModel(this.model().chat.id);
    await this.#instructions.refresh(catalog);
    const { prompt } = submitted;
    const content = (given as string | undefined) ?? (await userSkillContext(prompt, this.#host.toolset.services)) ?? prompt;
    const attached = attachmentTexts(message.attachments, canView(catalog));
    const text = assembleMessage({
      notice: this.#noticeFor(catalog),
      now: currentDateTime(this.#host.config.turn.currentDateTime),
      content,
      attached,
      reminders: submitted.additionalContext.map(promptContext),
    });
    const { transformedPrompt } = await hooks.run("userPromptTransformed", { prompt, transformedPrompt: text }, { signal });
    if (starts) await this.#start(past !== undefined, message.prompt, { interactionId, signal });
    signal.throwIfAborted();
    const { id: messageId, delivery, source } = message;
    const data = {
      content: prompt,
      transformedContent: transformedPrompt,
      attachments: attached.described,
      delivery,
      interactionId,
      messageId,
      agentMode: this.#host.config.turn.agentMode,
      ...(source !== undefined && { source }),
    };
    events.append("user.message", data);
    this.#instructions.announce();
    return true;
  }

  /** Has what the conversation ends with answered. @throws HostError `TURN_EMPTY` when nothing was said. */
  async #continue(): Promise<boolean> {
    this.#checkDirectory();
    if (!this.#hasBegun) await this.#readPast();
    if (this.history.messages().length === 0)
      throw new HostError("TURN_EMPTY", "Nothing was said that the model could answer. Send a message.");
    this.#custom.refresh();
    this.announceModel(this.model().chat.id);
    await this.#instructions.refresh(this.#host.catalog.current);
    this.#instructions.announce();
    return true;
  }

  /** Warns once of a working directory that is gone: tools fail in it, and the conversation can continue elsewhere. */
  #checkDirectory(): void {
    const { workingDirectory } = this.#host.config;
    if (this.#missingDirectory === workingDirectory || existsSync(workingDirectory)) return;
    this.#missingDirectory = workingDirectory;
    const message = `The working directory ${workingDirectory} no longer exists, so tools cannot work in it. Choose another one with setWorkingDirectory.`;
    this.#host.events.append("session.warning", { warningType: "working_directory", message });
  }

  async #readPast(): Promise<readonly RecordedEvent[] | undefined> {
    this.#hasBegun = true;
    const past = await this.#host.recording.past();
    if (past === undefined) return undefined;
    this.#host.toolset.replay(past);
    this.#instructions.replay(past);
    this.#announcedModel = past.findLast(({ type, agentId }) => type === "session.model_change" && agentId === undefined)?.data[
      "newModel"
    ] as string | undefined;
    return past;
  }

  /** What sessionStart hooks add stands before the first prompt. */
  async #start(isResumed: boolean, initialPrompt: string, { interactionId, signal }: Interaction): Promise<void> {
    const { hooks, events } = this.#host;
    const { additionalContext } = await hooks.run("sessionStart", { source: isResumed ? "resume" : "new", initialPrompt }, { signal });
    for (const content of additionalContext) events.append("user.message", { content, source: "hook", interactionId });
  }

  /** Announces which model answers from now on, unless that was announced before. */
  announceModel(newModel: string, previousModel: string | undefined = this.#announcedModel): void {
    if (newModel === this.#announcedModel) return;
    this.#announcedModel = newModel;
    const { reasoningEffort } = this.#host.config.turn;
    this.#host.events.append("session.model_change", {
      newModel,
      ...(previousModel !== undefined && { previousModel }),
      ...(reasoningEffort !== undefined && { reasoningEffort }),
    });
  }

  #noticeFor({ executables }: ToolCatalog): string | undefined {
    const announced = this.#announcedTools();
    const gone = [...announced].filter((name) => !executables.has(name));
    for (const name of gone) announced.delete(name);
    if (gone.length === 0) return undefined;
    // They may come back, and are then announced again.
    this.#advertised = undefined;
    return toolsChangedNotice(gone);
  }

  /** In a resumed session only the tools that the model has called are known. */
  #announcedTools(): Set<string> {
    this.#announced ??= new Set(
      this.history.messages().flatMap((message) => (message.role === "assistant" ? calledIn(message.toolCalls) : [])),
    );
    return this.#announced;
  }
}

interface MessageTexts {
  readonly notice: string | undefined;
  readonly now: string;
  readonly content: string;
  readonly attached: ReturnType<typeof attachmentTexts>;
  readonly reminders: readonly string[];
}

/** A message as the model reads it. Pointers stand behind the reminders, and where those would be when there are none. */
function assembleMessage({ notice = "", now, content, attached, reminders }: MessageTexts): string {
  const parts = [notice, attached.before, now, content, attached.inline, ...reminders].filter((part) => part !== "");
  const gap = reminders.length === 0 ? [""] : [];
  return (attached.after === "" ? parts : [...parts, ...gap, attached.after]).join("\n\n");
}

/** Whether the model has a tool that shows it a file. */
function canView({ executables }: ToolCatalog): boolean {
  return fileViewers.some((name) => executables.has(name));
}

const fileViewers = ["view", "read_file"];

const noCommands: ReadonlyMap<string, SessionCommand> = new Map();

function calledIn(calls: readonly { readonly name: string }[] = []): readonly string[] {
  return calls.map(({ name }) => name);
}

/** Caches a session's system message, and emits events when it or the session's skills have changed. */
class SystemPromptCache {
  readonly #host: Pick<SessionContext, "events" | "log">;
  /** What the system message is made of now. Equal parts are the same objects. */
  readonly #partsOf: () => Promise<InstructionParts>;
  /** The prompts that were announced, by skill. */
  readonly #invoked = new Map<string, string>();
  #skills: readonly SkillEntry[] | undefined;
  #parts: InstructionParts | undefined;
  #catalog: ToolCatalog | undefined;
  #text = "";
  #announced: string | undefined;

  constructor(host: Pick<SessionContext, "events" | "log">, parts: () => Promise<InstructionParts>) {
    this.#host = host;
    this.#partsOf = parts;
  }

  /** Restores what was announced before the session was resumed. */
  replay(events: Iterable<RecordedEvent>): void {
    for (const { type, data, agentId } of events) {
      if (agentId !== undefined) continue;
      if (type === "system.message") this.#announced = String(data["content"]);
      if (type === "skill.invoked" && data["trigger"] === "context-load") this.#invoked.set(String(data["name"]), String(data["content"]));
    }
  }

  /** The system message for a catalog. If it cannot be assembled, the previous one is used until something changes. */
  async refresh(catalog: ToolCatalog): Promise<string> {
    const parts = await this.#partsOf();
    if (catalog !== this.#catalog || this.#parts === undefined || !isSame(parts, this.#parts)) {
      this.#parts = parts;
      this.#catalog = catalog;
      this.#text = await this.#assemble(parts);
    }
    this.#announceSkills(parts.skills);
    return this.#text;
  }

  /** Emits the system message unless it is the one that was emitted last. It follows the message of the user that it is sent with. */
  announce(): void {
    if (this.#text === this.#announced || this.#text === "") return;
    this.#announced = this.#text;
    this.#host.events.append("system.message", { role: "system", content: this.#text });
  }

  async #assemble(parts: InstructionParts): Promise<string> {
    try {
      return await assembleInstructions(parts);
    } catch (error) {
      const { events, log } = this.#host;
      const message = "The instructions for the model could not be refreshed; the previous ones stay in use.";
      log.error(message, { error: toError(error) });
      events.append("session.info", { infoType: "instructions_refresh", message });
      // Only the session's own customizations run code of others.
      return this.#text === "" ? assembleInstructions({ ...parts, customizations: [] }) : this.#text;
    }
  }

  #announceSkills(skills: readonly SkillEntry[]): void {
    if (skills === this.#skills) return;
    this.#skills = skills;
    const { events } = this.#host;
    events.append("session.skills_loaded", () => ({ skills: skills.map(describe) }));
    for (const skill of skills) this.#announcePrompts(skill);
  }

  #announcePrompts(skill: SkillEntry): void {
    const content = eagerPrompts(skill);
    if (content === "" || this.#invoked.get(skill.name) === content) return;
    this.#invoked.set(skill.name, content);
    const { name, description, folder = "" } = skill;
    this.#host.events.append("skill.invoked", { name, path: folder, content, description, source: "custom", trigger: "context-load" });
  }
}

function isSame(parts: InstructionParts, before: InstructionParts): boolean {
  return (Object.keys(parts) as (keyof InstructionParts)[]).every((key) => parts[key] === before[key]);
}

function describe({ name, description, folder, hiddenFromModel }: SkillEntry): SkillFacts {
  const path = folder === undefined ? {} : { path: folder };
  return { name, description, source: "custom", userInvocable: true, enabled: true, ...path, ...(hiddenFromModel && { hiddenFromModel }) };
}
