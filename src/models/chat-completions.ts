import { randomUUID } from "node:crypto";
import { type NewPart, ReplyAssembly } from "./assemble-reply.ts";
import { ToolCallAssembly } from "./assemble-tool-calls.ts";
import type { Clock } from "./clock.ts";
import { type ChatDialect, encodeChatRequest } from "./encode-chat.ts";
import type { Endpoint } from "./endpoint.ts";
import type { HttpAnswer } from "./http.ts";
import { errorOfBody } from "./http-error.ts";
import type { ChatMessage, ChatModel, CompleteOptions, ModelDelta, ModelReply, ModelRequest } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { readAnswer } from "./read-answer.ts";

export interface ChatCompletionsOptions {
  readonly model: string;
  readonly address: string;
  readonly endpoint: Endpoint;
  readonly clock: Clock;
  /** Makes up ids for tool calls that have none. */
  readonly newId?: () => string;
}

/** A model behind `/chat/completions`, the protocol that most endpoints speak. */
export function createChatCompletionsModel(options: ChatCompletionsOptions): ChatModel {
  let dialect: ChatDialect = { canStreamUsage: true, maxTokensField: "max_tokens" };
  const complete = async (request: ModelRequest, how: CompleteOptions): Promise<ModelReply> => {
    const body = encodeChatRequest(options.model, request, request.stream ?? how.onDelta !== undefined, dialect);
    try {
      return await send(options, request, how, body);
    } catch (error) {
      const known = learnDialect(error, body, dialect);
      if (known === undefined) throw error;
      dialect = known;
      return complete(request, how);
    }
  };
  return { id: options.model, address: options.address, complete };
}

function send(options: ChatCompletionsOptions, request: ModelRequest, how: CompleteOptions, body: object): Promise<ModelReply> {
  const { signal, onRetry, onDelta } = how;
  const call = {
    method: "POST" as const,
    path: "/chat/completions",
    body: JSON.stringify(body),
    signal,
    ...(request.headers === undefined ? {} : { headers: request.headers }),
    ...(onRetry === undefined ? {} : { onRetry: onRetry.bind(how) }),
  };
  return options.endpoint.exchange(call, (answer) => readReply(answer, options, request, onDelta?.bind(how)));
}

// Each of these is refused by some endpoints and needed by others. What they say about it has no code in common.
function learnDialect(error: unknown, body: Readonly<Record<string, unknown>>, dialect: ChatDialect): ChatDialect | undefined {
  if (!(error instanceof ModelError) || (error.status !== 400 && error.status !== 422)) return undefined;
  const said = error.details.providerMessage ?? "";
  if (body["stream_options"] !== undefined && said.includes("stream_options")) return { ...dialect, canStreamUsage: false };
  const wantsOther = body["max_tokens"] !== undefined && said.includes("max_completion_tokens");
  return wantsOther ? { ...dialect, maxTokensField: "max_completion_tokens" } : undefined;
}

async function readReply(
  answer: HttpAnswer,
  options: ChatCompletionsOptions,
  request: ModelRequest,
  onDelta: ((delta: ModelDelta) => void) | undefined,
): Promise<ModelReply> {
  const toolCalls = new ToolCallAssembly(idsOf(request.messages), options.newId ?? newCallId);
  const reply = new ReplyAssembly(toolCalls);
  let firstToken: number | undefined;
  const tell = (part: NewPart): void => {
    firstToken ??= options.clock.now();
    if (onDelta === undefined) return;
    answer.handOn();
    onDelta({ ...part, receivedBytes: answer.receivedBytes() });
  };
  await readParts(answer, reply, tell);
  const sinceStart = (time: number): number => Math.max(0, time - answer.startedAt);
  return {
    model: options.model,
    ...reply.finish(),
    ...(answer.requestId === undefined ? {} : { requestId: answer.requestId }),
    attempts: answer.attempt,
    duration: sinceStart(options.clock.now()),
    ...(firstToken === undefined ? {} : { timeToFirstToken: sinceStart(firstToken) }),
  };
}

async function readParts(answer: HttpAnswer, reply: ReplyAssembly, tell: (part: NewPart) => void): Promise<void> {
  let isEnded = false;
  try {
    for await (const part of readAnswer(answer)) {
      isEnded = part.kind !== "event";
      if (part.kind === "end") continue;
      const trouble = errorOfBody(part.value, answer.fault);
      if (trouble !== undefined) throw trouble;
      for (const news of reply.add(part.value)) tell(news);
    }
    if (!reply.hasChoices && isEnded) throw answer.fault("MODEL_BAD_ANSWER", "sent an answer without choices.", { retryable: false });
    if (!isEnded && !reply.isFinished) throw answer.fault("MODEL_BAD_ANSWER", "stopped in the middle of its answer.", { retryable: true });
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    // Nothing but the usage comes after the model has said that it is done, and nothing at all after the end.
    if (reply.hasChoices && (isEnded || (error.code === "MODEL_UNREACHABLE" && reply.isFinished))) return;
    throw error.withPartial(reply.partial);
  }
}

function idsOf(messages: readonly ChatMessage[]): readonly string[] {
  return messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => id) : []));
}

function newCallId(): string {
  return `call_${randomUUID().replaceAll("-", "").slice(0, 24)}`;
}
