import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { HostError, type Session, type SkillEntry } from "skillhost";
import { type AgentTurn, type TurnListener, TurnProgress } from "./agent-turn.ts";
import type { RunningServer } from "./running-server.ts";
import { workspaceFolder } from "./server-requests.ts";
import { isFields, textOf } from "./wire.ts";

export interface SendOptions extends TurnListener {
  /** Default: the model of the options of the server, else the one that it says is its default. */
  readonly model?: string | undefined;
  /** `Agent`, the default, works with tools; `Ask` only talks. */
  readonly mode?: "Agent" | "Ask" | undefined;
  /** A conversation to go on with: that of an earlier turn. Default: a new one. */
  readonly conversationId?: string | undefined;
  /** Stops the turn and the calls in it. */
  readonly signal?: AbortSignal | undefined;
}

export interface TurnTarget {
  readonly server: RunningServer;
  readonly folder: string;
  readonly model: string;
  /** What a new conversation begins with. */
  readonly context: string | undefined;
}

/** A turn that runs. */
export class RunningTurn {
  readonly token: string = randomUUID();
  conversationId = "";
  readonly #server: RunningServer;
  readonly #progress: TurnProgress;
  #isStopped = false;
  /** What the turn is, when it was one of its calls that ended it. */
  /** A tool that ends turns has succeeded. */
  #isComplete = false;

  constructor(server: RunningServer, { onText, onCall, onNotice, conversationId = "" }: SendOptions) {
    this.#server = server;
    this.conversationId = conversationId;
    this.#progress = new TurnProgress({ onText, onCall, onNotice }, (id) => {
      this.conversationId = id;
      // It was stopped before there was anything to stop.
      if (this.#isStopped) this.#cancel();
    });
  }

  hear(value: unknown): void {
    this.#progress.hear(value);
  }

  /** Stops the turn. The server does not cancel calls that run, so that they are ended here. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancel();
  }

  /** Ends the turn after the answer to the call that is being answered. */
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
      // Newer servers know the first, older ones the second.
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
 * The model that the server would take for an agent.
 * @throws HostError `LANGUAGE_SERVER_NO_MODEL`.
 */
export async function defaultModel({ rpc }: RunningServer): Promise<string> {
  const answer = await rpc.request("copilot/models", {});
  const models = (Array.isArray(answer) ? answer : []).filter(isFields);
  const forAgents = models.filter(({ scopes }) => Array.isArray(scopes) && scopes.includes("agent-panel"));
  const chosen = forAgents.find(({ isChatDefault }) => isChatDefault === true) ?? forAgents[0];
  const id = textOf(chosen?.["id"]);
  if (id !== "") return id;
  throw new HostError("LANGUAGE_SERVER_NO_MODEL", "The language server lists no model that works with tools. Name one.");
}

/** The turns that run, by what the server calls them. */
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

  /** A call of a conversation was the last one of its turn. */
  endAfter(conversationId: string): void {
    for (const turn of this.#open.values()) if (turn.conversationId === conversationId) turn.endAfterCall();
  }

  stop(): void {
    for (const turn of this.#open.values()) turn.stop();
  }
}

const maxListing = 8_000;

/**
 * What the server's agent is told of the session's skills when a conversation begins: texts that are context for every turn,
 * and of the others name, description and file, which it reads when it needs one. Undefined: there is nothing to tell.
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
  return `<available_skills>\nRead the file of a skill with read_file before you work on what it is about, and do as it says.\n${text}${more}</available_skills>`;
}
