import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that reached the endpoint. */
interface ModelRequestSeen {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body parsed as JSON; undefined when it is not valid JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly body: any;
  /** The client's port: one for each connection. */
  readonly port: number;
  /** Settles when the client or the endpoint has closed the exchange. */
  readonly closed: Promise<void>;
}

/** One step of an answer: send a piece, wait for something, break the connection, or stall forever. */
type AnswerStep = string | Uint8Array | { readonly until: Promise<unknown> } | "reset" | "silence";

export interface ScriptedAnswer {
  /** Default: 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent piece by piece; the answer ends after the last. */
  readonly steps?: readonly AnswerStep[];
  /** Before status and headers are sent. */
  readonly before?: Promise<unknown>;
  /** The connection breaks instead of an answer. */
  readonly refuse?: boolean;
}

export type ModelScript = (request: ModelRequestSeen, number: number) => ScriptedAnswer | undefined;

/** An OpenAI-compatible endpoint on loopback that sends scripted answers. Dispose of it to close it. */
export interface ScriptedModel extends AsyncDisposable {
  /** Does not include `/v1`: the endpoint answers every path. */
  readonly url: string;
  /** All requests, in the order in which they came. */
  readonly requests: readonly ModelRequestSeen[];
  /** Adds answers for the next requests, in order. */
  answer(...answers: readonly ScriptedAnswer[]): void;
  /** Resolves with the request at an index (0 is the first) once it has arrived. */
  request(number: number): Promise<ModelRequestSeen>;
  close(): Promise<void>;
}

/**
 * Starts an endpoint. Requests get the added answers, in order. When the queue is empty the script decides; without a
 * script the endpoint answers with status 418, which no client retries.
 */
export async function startScriptedModel(script?: ModelScript): Promise<ScriptedModel> {
  const requests: ModelRequestSeen[] = [];
  const waiting: { number: number; resolve: (request: ModelRequestSeen) => void }[] = [];
  const answers: ScriptedAnswer[] = [];
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const seen = await receive(request, response);
      const number = requests.push(seen) - 1;
      for (const wait of waiting) if (wait.number === number) wait.resolve(seen);
      await play(answers.shift() ?? script?.(seen, number) ?? unscripted(seen), response);
    };
    // The client disconnected while it sent, or the script threw: the error cannot be reported to any client.
    serve().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: (...more) => void answers.push(...more),
    request: (number) => {
      const seen = requests[number];
      return seen === undefined ? new Promise((resolve) => waiting.push({ number, resolve })) : Promise.resolve(seen);
    },
    close: () => close(server),
    [Symbol.asyncDispose]: () => close(server),
  };
}

export interface ScriptedToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: object | string;
}

export interface ScriptedReply {
  readonly content?: string;
  readonly toolCalls?: readonly ScriptedToolCall[];
  readonly reasoning?: string;
  readonly finishReason?: string;
  readonly usage?: object;
  readonly model?: string;
}

const countedUsage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** An answer in one piece, as of `/chat/completions` without `stream`. */
export function chatAnswer(reply: ScriptedReply): ScriptedAnswer {
  const { content = null, toolCalls = [], reasoning, usage = countedUsage, model = "scripted-model" } = reply;
  const message = {
    role: "assistant",
    content,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(wireCall) }),
  };
  const choices = [{ index: 0, message, finish_reason: finishReason(reply) }];
  return jsonAnswer({ id: "chatcmpl-1", object: "chat.completion", model, choices, usage });
}

/** The same reply as a stream: one chunk per word, arguments in pieces, usage at the end. */
export function chatStreamAnswer(reply: ScriptedReply): ScriptedAnswer {
  return streamAnswer([...chatChunks(reply).map(sse), sse("[DONE]")]);
}

/** The chunks of a streamed reply. */
export function chatChunks(reply: ScriptedReply): readonly object[] {
  const { content = "", toolCalls = [], reasoning = "", usage = countedUsage, model = "scripted-model" } = reply;
  const chunk = (delta: object, finish: string | null = null): object => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    model,
    choices: [{ index: 0, delta, finish_reason: finish }],
    usage: null,
  });
  return [
    chunk({ role: "assistant", content: "" }),
    ...words(reasoning).map((word) => chunk({ reasoning_content: word })),
    ...words(content).map((word) => chunk({ content: word })),
    ...toolCalls.flatMap((call, index) => callDeltas(call, index).map((delta) => chunk({ tool_calls: [delta] }))),
    chunk({}, finishReason(reply)),
    { id: "chatcmpl-1", object: "chat.completion.chunk", model, choices: [], usage },
  ];
}

export function jsonAnswer(body: unknown, more: ScriptedAnswer = {}): ScriptedAnswer {
  return { headers: { "content-type": "application/json" }, steps: [JSON.stringify(body)], ...more };
}

/** One event of a stream. */
export function sse(data: object | string): string {
  return `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** One event of a stream that names its events by the `type` of their data. */
export function namedSse(data: { readonly type: string }): string {
  return `event: ${data.type}\n${sse(data)}`;
}

export function streamAnswer(events: readonly string[]): ScriptedAnswer {
  return { headers: { "content-type": "text/event-stream" }, steps: events };
}

/** Something to wait for in a script: `{ until: gate.opened }`. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function createGate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<ModelRequestSeen> {
  const closed = new Promise<void>((resolve) => response.once("close", resolve));
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString();
  const { method = "", url: path = "", headers, socket } = request;
  return { method, path, headers, text, body: parse(text), port: socket.remotePort ?? 0, closed };
}

async function play(answer: ScriptedAnswer, response: ServerResponse): Promise<void> {
  await answer.before;
  if (answer.refuse === true) return void response.destroy();
  response.writeHead(answer.status ?? 200, answer.headers);
  response.flushHeaders();
  for (const step of answer.steps ?? []) {
    if (response.destroyed || step === "silence") return;
    if (step === "reset") return void response.destroy();
    if (typeof step === "object" && "until" in step) await step.until;
    else await new Promise<void>((resolve) => response.write(step, () => resolve()));
  }
  response.end();
}

function unscripted({ method, path }: ModelRequestSeen): ScriptedAnswer {
  return jsonAnswer({ error: { message: `Nothing is scripted for ${method} ${path}.`, type: "unscripted" } }, { status: 418 });
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

function finishReason({ finishReason: reason, toolCalls = [] }: ScriptedReply): string {
  return reason ?? (toolCalls.length > 0 ? "tool_calls" : "stop");
}

/** Splits a text into words, each with its trailing space. */
export function words(text: string): readonly string[] {
  return text.match(/\S*\s*/g)?.filter((word) => word !== "") ?? [];
}

/** The arguments as the model writes them. */
export function argumentsText({ arguments: given }: ScriptedToolCall): string {
  return typeof given === "string" ? given : JSON.stringify(given);
}

/** A text in small pieces. */
export function piecesOf(text: string): readonly string[] {
  return text.match(/[\s\S]{1,5}/g) ?? [];
}

function wireCall(call: ScriptedToolCall): object {
  return { id: call.id, type: "function", function: { name: call.name, arguments: argumentsText(call) } };
}

function callDeltas(call: ScriptedToolCall, index: number): readonly object[] {
  return [
    { index, id: call.id, type: "function", function: { name: call.name, arguments: "" } },
    ...piecesOf(argumentsText(call)).map((piece) => ({ index, function: { arguments: piece } })),
  ];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Tests of invalid bodies read the text.
    return undefined;
  }
}
