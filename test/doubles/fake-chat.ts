import type { ChatModel, CompleteOptions, ModelReply, ModelRequest, ModelToolCall } from "../../src/models/model.ts";

export interface FakeCall {
  readonly id?: string;
  readonly name: string;
  readonly args?: unknown;
  /** What the model wrote, when it is not valid JSON. */
  readonly error?: { readonly text: string; readonly message: string };
}

export interface FakeReply extends Partial<Omit<ModelReply, "toolCalls">> {
  readonly calls?: readonly FakeCall[];
}

/** A reply, or a function that returns one. A string is an answer without tool calls. */
export type FakeAnswer =
  | string
  | FakeReply
  | ((request: ModelRequest, options: CompleteOptions) => string | FakeReply | Promise<string | FakeReply>);

/** A chat model in this process that sends scripted answers. */
export interface FakeChat extends ChatModel {
  readonly requests: readonly ModelRequest[];
  /** Resolves with the request at an index (0 is the first) once it has arrived. */
  request(number: number): Promise<ModelRequest>;
  answer(...answers: readonly FakeAnswer[]): void;
}

/** Sends the answers in order, then repeats the last one. */
export function fakeChat(...initial: readonly FakeAnswer[]): FakeChat {
  const answers = [...initial];
  const requests: ModelRequest[] = [];
  const waiting: { readonly number: number; readonly resolve: (request: ModelRequest) => void }[] = [];
  let made = 0;
  return {
    id: "fake-model",
    address: "fake.test",
    requests,
    answer: (...more) => void answers.push(...more),
    request(number) {
      const seen = requests[number];
      return seen === undefined ? new Promise((resolve) => waiting.push({ number, resolve })) : Promise.resolve(seen);
    },
    async complete(request, options) {
      const number = requests.push(request) - 1;
      for (const wait of waiting) if (wait.number === number) wait.resolve(request);
      const answer = answers.length > 1 ? answers.shift()! : (answers[0] ?? "");
      const reply = typeof answer === "function" ? await answer(request, options) : answer;
      const { calls = [], ...rest } = typeof reply === "string" ? { content: reply } : reply;
      return {
        content: "",
        finishReason: calls.length > 0 ? "tool-calls" : "stop",
        model: "fake-model",
        chunkCount: 1,
        attempts: 1,
        duration: 1,
        ...rest,
        toolCalls: calls.map((call) => toCall(call, () => `call-${++made}`)),
      };
    },
  };
}

function toCall({ id, name, args = {}, error }: FakeCall, newId: () => string): ModelToolCall {
  if (error !== undefined) {
    return { id: id ?? newId(), name, arguments: error.text, argumentsText: error.text, argumentsError: error.message };
  }
  return { id: id ?? newId(), name, arguments: args, argumentsText: JSON.stringify(args) };
}
