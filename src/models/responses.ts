import { isPlainRecord } from "../base/read-fields.ts";
import { ResponsesAssembly } from "./assemble-responses.ts";
import { encodeResponsesRequest, type ResponsesDialect } from "./encode-responses.ts";
import { refuseThoughts } from "./reply-layout.ts";
import type { Protocol, Refusal, SentBody } from "./wire-model.ts";

/** `/responses`, the younger protocol of OpenAI: thoughts between calls are kept. `model` is its name there. */
export function responses(model: string): Protocol<ResponsesDialect> {
  return {
    path: "/responses",
    essence: "output",
    dialect: { dropped: new Set(), refused: new WeakSet() },
    encode: (request, isStream, dialect) => encodeResponsesRequest(model, request, isStream, dialect),
    learn: (refusal, dialect) => learnResponsesDialect(refusal, dialect, model),
    troubleIn,
    assemble: (toolCalls) => new ResponsesAssembly(toolCalls, model),
  };
}

type Dropped = ResponsesDialect["dropped"] extends ReadonlySet<infer Name> ? Name : never;

/** What refusals say, and what is left out then. */
const lessons: readonly (readonly [said: RegExp, name: Dropped, isSent: (body: SentBody) => boolean])[] = [
  [/\binclude\b|encrypted[ _]content/i, "include", (body) => body["include"] !== undefined],
  [/summar|verified/i, "summary", (body) => isPlainRecord(body["reasoning"]) && body["reasoning"]["summary"] !== undefined],
  [/reasoning/i, "reasoning", (body) => body["reasoning"] !== undefined],
  [/temperature/i, "temperature", (body) => body["temperature"] !== undefined],
  [/\bstore\b/i, "store", (body) => body["store"] !== undefined],
];

// A thought of another account, or that the endpoint has forgotten, or whose follower was changed.
const refusedThought =
  /invalid_encrypted_content|encrypted content.*(?:verified|decrypt)|required following item|\brs_\w|type '?reasoning/i;

function learnResponsesDialect({ said, body, request }: Refusal, dialect: ResponsesDialect, model: string): ResponsesDialect | undefined {
  const owner = { api: "responses", model } as const;
  if (refusedThought.test(said) && refuseThoughts(request.messages, owner, dialect.refused)) return dialect;
  const lesson = lessons.find(([words, , isSent]) => words.test(said) && isSent(body));
  return lesson === undefined ? undefined : { ...dialect, dropped: new Set([...dialect.dropped, lesson[1]]) };
}

// A failed response holds its error; an error event is one itself.
function troubleIn(value: unknown): unknown {
  if (!isPlainRecord(value)) return value;
  if (value["type"] === "error" && !isPlainRecord(value["error"])) return { error: value };
  return isPlainRecord(value["response"]) ? value["response"] : value;
}
