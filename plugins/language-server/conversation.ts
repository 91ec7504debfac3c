import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { HostError, type Session, type SkillEntry } from "skillhost";
import { type AgentTurn, type TurnListener, TurnProgress } from "./agent-turn.ts";
import type { RunningServer } from "./running-server.ts";
import { workspaceFolder } from "./server-requests.ts";
import { isFields, textOf } from "./wire.ts";

export interface SendOptions extends TurnListener {
  /** Default: the model in the server's options, else the default of the server. */
  readonly model?: string | undefined;
  /** `Agent`, the default, works with tools; `Ask` only talks. */
  readonly mode?: "Agent" | "Ask" | undefined;
  /** The conversation of an earlier turn to continue. Default: a new one. */
  readonly conversationId?: string | undefined;
  /** Stops the turn and its calls. */
  readonly signal?: AbortSignal | undefined;
}

export interface TurnTarget {
  readonly server: RunningServer;
  readonly folder: string;
  readonly model: string;
  /** Text at the start of a new conversation. */
  readonly context: string | undefined;
}

/** A running turn. */
export class RunningTurn {
  readonly token: string = randomUUID();
  conversationId = "";
  readonly #server: RunningServer;
  readonly #progress: TurnProgress;
  #isStopped = false;
  /** A tool that ends turns has succeeded. */
  #isComplete = false;

  constructor(server: RunningServer, { onText, onCall, onNotice, conversationId = "" }: SendOptions) {
    this.#server = server;
    this.conversationId = conversationId;
    this.#progress = new TurnProgress({ onText, onCall, onNotice }, (id) => {
      this.conversationId = id;
      // It was stopped before the server named the conversation.
      if (this.#isStopped) this.#cancel();
    });
  }

  hear(value: unknown): void {
    this.#progress.hear(value);
  }

  /** Stops the turn and its running calls, which the server does not cancel. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancel();
  }

  /** Ends the turn once the current call is answered. */
  endAfterCall(): void {
    this.#isComplete = true;
    setImmediate(() => this.stop());
  }

  async run(prompt: string, { folder, model, context }: TurnTarget, options: SendOptions): Promise<AgentTurn> {
    const { mode = "Agent", conversationId } = options;
    const { uri, name } = workspaceFolder(folder);
    const common = {
      workDoneToken: this.token,
      source: "panel",
      chatMode: mode,
      needToolCallConfirmation: true,
      // Newer servers read the first, older ones the second.
      modelInfo: { id: model },
      model,
      workspaceFolder: uri,
      workspaceFolders: [{ uri, name }],
    };
    const opening = context === undefined ? prompt : `${context}\n\n${prompt}`;
    const answer =
      conversationId === undefined
        ? await this.#server.rpc.request("conversation/create", { ...common, turns: [{ request: opening }], capabilities: {} })
        : await this.#server.rpc.request("conversation/turn", { ...common, conversationId, message: prompt });
    const turn = this.#progress.finish(answer, this.#isStopped);
    return this.#isComplete && turn.outcome !== "failed" ? { ...turn, outcome: "completed" } : turn;
  }

  #cancel(): void {
    this.#server.rpc.notify("window/workDoneProgress/cancel", { token: this.token });
    if (this.conversationId !== "") this.#server.toolCalls.stop(this.conversationId);
  }
}

/**
 * The model that the server uses for an agent by default.
 * @throws HostError `LANGUAGE_SERVER_NO_MODEL`.
 */
export async function defaultModel({ rpc }: RunningServer): Promise<string> {
  const answer = await rpc.request("copilot/models", {});
  const models = (Array.isArray(answer) ? answer : []).filter(isFields);
  const forAgents = models.filter(({ scopes }) => Array.isArray(scopes) && scopes.includes("agent-panel"));
  const chosen = forAgents.find(({ isChatDefault }) => isChatDefault === true) ?? forAgents[0];
  const id = textOf(chosen?.["id"]);
  if (id !== "") return id;
  throw new HostError("LANGUAGE_SERVER_NO_MODEL", "The language server lists no model for agents. Set the option `model`.");
}

/** The running turns by progress token. */
export class RunningTurns {
  readonly #open = new Map<string | number, RunningTurn>();

  async run(prompt: string, place: TurnTarget, options: SendOptions): Promise<AgentTurn> {
    const { signal } = options;
    const turn = new RunningTurn(place.server, options);
    this.#open.set(turn.token, turn);
    const stop = (): void => turn.stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return await turn.run(prompt, place, options);
    } finally {
      signal?.removeEventListener("abort", stop);
      this.#open.delete(turn.token);
      place.server.toolCalls.stop(turn.conversationId);
    }
  }

  hear(token: string | number, value: unknown): void {
    this.#open.get(token)?.hear(value);
  }

  /** Ends the turn of a conversation after the current call. */
  endAfter(conversationId: string): void {
    for (const turn of this.#open.values()) if (turn.conversationId === conversationId) turn.endAfterCall();
  }

  stop(): void {
    for (const turn of this.#open.values()) turn.stop();
  }
}

const maxListing = 8_000;

/**
 * Describes the session's skills to the server's agent at the start of a conversation: the texts of eager skills, and the
 * name, description and file of the others, which it reads on demand. Undefined: there are no skills.
 */
export function skillContext(session: Session): string | undefined {
  const skills = session.listSkills().filter(({ hiddenFromModel }) => hiddenFromModel !== true);
  const eager = skills.flatMap(({ name, promptMode, prompts = [] }) =>
    promptMode === "eager" ? prompts.map(({ text }) => `<skill name="${name}">\n${text.trim()}\n</skill>`) : [],
  );
  const listing = listed(skills.flatMap((skill) => lineFor(skill) ?? []));
  const parts = [...eager, ...(listing === "" ? [] : [listing])];
  return parts.length === 0 ? undefined : parts.join("\n\n");
}

function lineFor({ name, description, folder, hasInstructions }: SkillEntry): string | undefined {
  const file = folder === undefined ? undefined : join(folder, "SKILL.md");
  if (hasInstructions === false || file === undefined || !existsSync(file)) return undefined;
  return `- ${name}: ${description.replaceAll(/\s+/g, " ").trim()} (${file})`;
}

function listed(lines: readonly string[]): string {
  let [text, count] = ["", 0];
  for (const line of lines) {
    if (text.length + line.length > maxListing) break;
    text += `${line}\n`;
    count++;
  }
  if (count === 0) return "";
  const more = count < lines.length ? `and ${lines.length - count} more\n` : "";
  return `<available_skills>\nBefore you work on a task that a skill covers, read its file with read_file and follow it.\n${text}${more}</available_skills>`;
}
