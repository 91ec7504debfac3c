import { type CallProgress, type Fields, isFields, textOf } from "./wire.ts";

/** A call of the turn, as it stands. */
export interface AgentCall {
  readonly id: string;
  readonly name: string;
  /** `client` for tools of the session, `shared` and `mcp` for the server's. */
  readonly type: string;
  readonly status: "running" | "completed" | "error" | "cancelled";
  readonly input: unknown;
  /** What the model was given, as far as it is text. */
  readonly result?: string;
  readonly error?: string;
  readonly roundId: number;
  readonly turnId: string;
}

/** Why a turn failed. The server answers as usual then, so that this is the only place where it says so. */
export interface TurnError {
  readonly message: string;
  /** The status of the model's answer, such as 402 for a quota that is used up. */
  readonly code?: number | string;
  /** Seconds, or whatever the service said. */
  readonly retryAfter?: unknown;
}

/** What a turn came to. */
export interface AgentTurn {
  readonly outcome: "completed" | "failed" | "cancelled";
  /** Everything that the model said in it. */
  readonly text: string;
  /** One entry for each call, in the order in which they began, as it ended. */
  readonly calls: readonly AgentCall[];
  /** For a turn that failed. */
  readonly error?: TurnError;
  readonly conversationId: string;
  readonly turnId: string;
  readonly model?: string;
}

export interface TurnListener {
  /** Hears the answer piece by piece. */
  readonly onText?: ((text: string) => void) | undefined;
  /** Hears of each call when it begins and when anything about it changes. */
  readonly onCall?: ((call: AgentCall) => void) | undefined;
  /** Hears what the server says about the turn, such as that it tries again. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** Puts a turn together from the progress that the server tells of it. What comes after its end is ignored. */
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

  /** The turn as it stands, once the server has answered the request for it. */
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
    // Some servers say it here, others there, and none may be heard twice.
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
    // What the model says after its calls is a paragraph of its own.
    const piece = isNewRound && !this.#pieces.at(-1)!.endsWith("\n") ? `\n\n${text}` : text;
    this.#pieces.push(piece);
    this.#listener.onText?.(piece);
  }

  /** One call is told of again with each change: what is new takes the place of what was. */
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
    message: typeof message === "string" ? message : "The turn failed without a reason.",
    ...((typeof code === "number" || typeof code === "string") && { code }),
    ...(retryAfter !== undefined && { retryAfter }),
  };
}
