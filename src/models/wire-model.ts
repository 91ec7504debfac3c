import { randomUUID } from "node:crypto";
import type { Clock } from "../base/wait.ts";
import { toJsonBody } from "./encode-parts.ts";
import type { HttpAnswer } from "./http.ts";
import { errorOfBody } from "./http-error.ts";
import type { ChatMessage, ChatModel, CompleteOptions, ModelDelta, ModelReply, ModelRequest } from "./model.ts";
import { ModelError } from "./model-error.ts";
import type { Endpoint } from "./provider-endpoint.ts";
import { readAnswer, timeToClose } from "./read-answer.ts";
import type { NewPart, ReplyAssembly } from "./reply-assembly.ts";
import { ToolCallAssembly } from "./tool-call-assembly.ts";

/** The request and response formats of one API. */
export interface Protocol<Dialect> {
  /** Relative to the endpoint's base, with a leading slash. */
  readonly path: string;
  /** The API over HTTP, and over a WebSocket connection, as endpoints list it. */
  readonly api: { readonly http: ApiEndpoint; readonly socket?: ApiEndpoint };
  /** The required content of a response, for messages. */
  readonly requiredField: string;
  /** The assumed features of an endpoint until it refuses one. */
  readonly dialect: Dialect;
  encode(request: ModelRequest, isStream: boolean, dialect: Dialect): SentBody;
  /** The dialect to try after a refusal; undefined if no other would help. */
  learn(refusal: Refusal, dialect: Dialect): Dialect | undefined;
  /** The part of an event or response with the `error` field. Default: the value itself. */
  errorIn?(value: unknown): unknown;
  assemble(toolCalls: ToolCallAssembly): ReplyAssembly;
}

type ApiEndpoint = Exclude<ModelReply["apiEndpoint"], undefined>;

export type SentBody = Readonly<Record<string, unknown>>;

/** A refused request body, and the endpoint's message. Endpoints have no common codes for refusals. */
export interface Refusal {
  readonly said: string;
  readonly body: SentBody;
  readonly request: ModelRequest;
}

export interface WireModelOptions {
  /** The model's name in skillhost. */
  readonly id: string;
  readonly address: string;
  readonly contextWindow?: number | undefined;
  readonly endpoint: Endpoint;
  readonly clock: Clock;
  /** Generates ids for tool calls without one. */
  readonly newId?: (() => string) | undefined;
}

/** A model at an endpoint with this protocol. */
export function createWireModel<Dialect>(options: WireModelOptions, protocol: Protocol<Dialect>): ChatModel {
  let dialect = protocol.dialect;
  const complete = async (request: ModelRequest, how: CompleteOptions): Promise<ModelReply> => {
    for (let adaptations = 0; ; adaptations++) {
      const body = protocol.encode(request, request.stream ?? how.onDelta !== undefined, dialect);
      try {
        return await send(options, protocol, request, how, body);
      } catch (error) {
        const refusal = adaptations < maxAdaptations ? refusalOf(error, body, request) : undefined;
        const known = refusal === undefined ? undefined : protocol.learn(refusal, dialect);
        if (known === undefined) throw error;
        dialect = known;
      }
    }
  };
  const bodyOf = (request: ModelRequest): string => toJsonBody(protocol.encode(request, request.stream ?? false, dialect));
  const { id, address, contextWindow } = options;
  return { id, address, ...(contextWindow === undefined ? {} : { contextWindow }), complete, bodyOf };
}

// The limit prevents endless retries against an endpoint that refuses something else each time.
const maxAdaptations = 6;

function refusalOf(error: unknown, body: SentBody, request: ModelRequest): Refusal | undefined {
  if (!(error instanceof ModelError) || error.code !== "MODEL_HTTP" || ![400, 404, 422].includes(error.status ?? 0)) return undefined;
  const { providerMessage = "", providerCode = "" } = error.details;
  return { said: `${providerMessage} ${providerCode}`, body, request };
}

function send<Dialect>(
  options: WireModelOptions,
  protocol: Protocol<Dialect>,
  request: ModelRequest,
  how: CompleteOptions,
  body: SentBody,
): Promise<ModelReply> {
  const { signal, onRetry, onDelta, origin } = how;
  const call = {
    method: "POST" as const,
    path: protocol.path,
    body: toJsonBody(body),
    signal,
    origin,
    ...(request.headers === undefined ? {} : { headers: request.headers }),
    ...(onRetry === undefined ? {} : { onRetry: onRetry.bind(how) }),
  };
  return options.endpoint.request(call, (answer) => readReply(answer, options, protocol, request, onDelta?.bind(how)));
}

async function readReply<Dialect>(
  answer: HttpAnswer,
  { id, clock, newId = newCallId }: WireModelOptions,
  protocol: Protocol<Dialect>,
  request: ModelRequest,
  onDelta: ((delta: ModelDelta) => void) | undefined,
): Promise<ModelReply> {
  const reply = protocol.assemble(new ToolCallAssembly(idsOf(request.messages), newId));
  let firstToken: number | undefined;
  const emit = (part: NewPart): void => {
    firstToken ??= clock.now();
    if (onDelta === undefined) return;
    answer.markPassedOn();
    onDelta({ ...part, receivedBytes: answer.receivedBytes() });
  };
  await readParts(answer, protocol, reply, emit);
  const apiEndpoint = answer.isFromSocket ? protocol.api.socket : protocol.api.http;
  const sinceStart = (time: number): number => Math.max(0, time - answer.startedAt);
  return {
    model: id,
    ...reply.finish(),
    ...(apiEndpoint === undefined ? {} : { apiEndpoint }),
    ...(answer.requestId === undefined ? {} : { requestId: answer.requestId }),
    attempts: answer.attempt,
    duration: sinceStart(clock.now()),
    ...(firstToken === undefined ? {} : { timeToFirstToken: sinceStart(firstToken) }),
  };
}

async function readParts<Dialect>(
  answer: HttpAnswer,
  { requiredField, errorIn = itself }: Protocol<Dialect>,
  reply: ReplyAssembly,
  emit: (part: NewPart) => void,
): Promise<void> {
  let isEnded = false;
  try {
    for await (const part of readAnswer(answer)) {
      if (isEnded) continue;
      isEnded = part.kind !== "event";
      if (part.kind === "end") continue;
      const problem = errorOfBody(errorIn(part.value), answer.fault);
      if (problem !== undefined) throw problem;
      for (const added of reply.add(part.value)) emit(added);
      if (part.kind === "whole" || !reply.isOver) continue;
      isEnded = true;
      answer.expectEnd(timeToClose);
    }
    if (!reply.hasBegun && isEnded)
      throw answer.fault("MODEL_BAD_ANSWER", `sent an answer without ${requiredField}.`, { retryable: false });
    if (!isEnded && !reply.isFinished) throw answer.fault("MODEL_BAD_ANSWER", "stopped in the middle of its answer.", { retryable: true });
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    // Only usage may follow the finish reason, and nothing may follow the end.
    if (reply.hasBegun && (isEnded || (error.code === "MODEL_UNREACHABLE" && reply.isFinished))) return;
    throw error.withPartial(reply.partial);
  }
}

function itself(value: unknown): unknown {
  return value;
}

function idsOf(messages: readonly ChatMessage[]): readonly string[] {
  return messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => id) : []));
}

function newCallId(): string {
  return `call_${randomUUID().replaceAll("-", "").slice(0, 24)}`;
}
