import { type CallProgress, type Fields, isFields, textOf } from "./wire.ts";

/** The current state of a call in the turn. */
export interface AgentCall {
  readonly id: string;
  readonly name: string;
  /** `client` for tools of the session, `shared` and `mcp` for those of the server. */
  readonly type: string;
  readonly status: "running" | "completed" | "error" | "cancelled";
  readonly input: unknown;
  /** The text of the result that the model received. */
  readonly result?: string;
  readonly error?: string;
  readonly roundId: number;
  readonly turnId: string;
}

/** Why a turn failed. The server's response does not show it, so this is the only place that does. */
export interface TurnError {
  readonly message: string;
  /** The status of the model's answer, such as 402 for a quota that is used up. */
  readonly code?: number | string;
  /** Seconds, or the value that the service sent. */
  readonly retryAfter?: unknown;
}

/** The result of a turn. */
export interface AgentTurn {
  readonly outcome: "completed" | "failed" | "cancelled";
  /** All text of the model. */
  readonly text: string;
  /** The final state of each call, in start order. */
  readonly calls: readonly AgentCall[];
  /** Present if the turn failed. */
  readonly error?: TurnError;
  readonly conversationId: string;
  readonly turnId: string;
  readonly model?: string;
}

export interface TurnListener {
  /** Receives the answer piece by piece. */
  readonly onText?: ((text: string) => void) | undefined;
  /** Called when a call begins and when its state changes. */
  readonly onCall?: ((call: AgentCall) => void) | undefined;
  /** Receives notices of the server about the turn, such as that it retries. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** Assembles a turn from the progress notifications of the server. Ignores what arrives after its end. */
export class TurnProgress {
  readonly #listener: TurnListener;
  readonly #pieces: string[] = [];
  readonly #calls = new Map<string, AgentCall>();
  readonly #onBegin: (conversationId: string) => void;
  #lastRound = -1;
  #end: Fields | undefined;
  #turnId = "";

  constructor(listener: TurnListener, onBegin: (conversationId: string) => void) {
    this.#listener = listener;
    this.#onBegin = onBegin;
  }

  hear(value: unknown): void {
    if (!isFields(value) || this.#end !== undefined) return;
    this.#turnId ||= textOf(value["turnId"]);
    if (value["kind"] === "begin") this.#onBegin(textOf(value["conversationId"]));
    if (value["kind"] === "report") this.#report(value);
    if (value["kind"] === "end") this.#end = value;
  }

  /** The turn, once the server has answered its request. */
  finish(answer: unknown, isCancelled: boolean): AgentTurn {
    const fields = isFields(answer) ? answer : {};
    const error = errorOf(this.#end?.["error"]);
    const wasCancelled = isCancelled || this.#end?.["cancellationReason"] === "CancelledByUser";
    const { modelName } = fields;
    return {
      outcome: wasCancelled ? "cancelled" : error === undefined ? "completed" : "failed",
      text: this.#pieces.join(""),
      calls: [...this.#calls.values()],
      ...(error !== undefined && !wasCancelled && { error }),
      conversationId: textOf(fields["conversationId"]),
      turnId: textOf(fields["turnId"]) || this.#turnId,
      ...(typeof modelName === "string" && { model: modelName }),
    };
  }

  #report({ reply, editAgentRounds, notifications }: Fields): void {
    for (const notice of listOf(notifications)) {
      if (isFields(notice) && typeof notice["message"] === "string") this.#listener.onNotice?.(notice["message"]);
    }
    const rounds = listOf(editAgentRounds).filter(isFields);
    // Some servers send the reply here, others in the rounds; use only one of them.
    const isInRounds = rounds.some((round) => round["reply"] !== "" && typeof round["reply"] === "string");
    if (!isInRounds && typeof reply === "string") this.#say(reply, this.#lastRound);
    for (const round of rounds) {
      const roundId = typeof round["roundId"] === "number" ? round["roundId"] : 0;
      if (typeof round["reply"] === "string") this.#say(round["reply"], roundId);
      for (const call of listOf(round["toolCalls"])) if (isCall(call)) this.#merge(call, roundId);
    }
  }

  #say(text: string, roundId: number): void {
    if (text === "") return;
    const isNewRound = roundId !== this.#lastRound && this.#pieces.length > 0;
    this.#lastRound = roundId;
    // Text after calls starts a new paragraph.
    const piece = isNewRound && !this.#pieces.at(-1)!.endsWith("\n") ? `\n\n${text}` : text;
    this.#pieces.push(piece);
    this.#listener.onText?.(piece);
  }

  /** The server repeats a call with each change: new values replace the old ones. */
  #merge({ id, name, toolType, status, input, result, error }: CallProgress, roundId: number): void {
    const before = this.#calls.get(id);
    const text = result?.flatMap(({ value }) => (typeof value === "string" ? value : [])).join("\n");
    const call: AgentCall = {
      ...before,
      id,
      name,
      type: toolType ?? before?.type ?? "client",
      status: statusOf(status),
      input: input ?? before?.input,
      ...(text !== undefined && { result: text }),
      ...(error !== undefined && { error }),
      roundId,
      turnId: this.#turnId,
    };
    this.#calls.set(id, call);
    this.#listener.onCall?.(call);
  }
}

function isCall(value: unknown): value is CallProgress {
  return isFields(value) && typeof value["id"] === "string" && typeof value["name"] === "string";
}

function statusOf(status: unknown): AgentCall["status"] {
  return status === "completed" || status === "error" || status === "cancelled" ? status : "running";
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function errorOf(value: unknown): TurnError | undefined {
  if (!isFields(value)) return undefined;
  const { message, code, retryAfter } = value;
  return {
    message: typeof message === "string" ? message : "The turn failed without giving a reason.",
    ...((typeof code === "number" || typeof code === "string") && { code }),
    ...(retryAfter !== undefined && { retryAfter }),
  };
}
