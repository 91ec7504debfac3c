import { HostError } from "../../base/errors.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { askerOf } from "./in-flight.ts";
import type { PendingRequest } from "./pending-request.ts";
import type { ServerRequests } from "./server-requests.ts";

type Json = Readonly<Record<string, unknown>>;

export const mostRounds = 16;
const mostQuestions = 32;
// A server that only wants to be asked again later is not asked again at once.
const pace = 250;

/** An answer of the stateless protocol that is none yet: the server wants something of its client first. */
export function isInputRequired(result: unknown): result is Json {
  return isPlainRecord(result) && result["resultType"] === "input_required";
}

/** Gets what the server wants; the result is what the request is sent again with. */
export async function answerInput(result: Json, requests: ServerRequests, pending: PendingRequest): Promise<Json> {
  const { inputRequests, requestState } = result;
  const questions = isPlainRecord(inputRequests) ? Object.entries(inputRequests) : [];
  if (questions.length > mostQuestions) throw new HostError("MCP_ANSWER", `The server asks ${questions.length} things at once.`);
  if (questions.length === 0) await pause(pending.signal);
  const answers = await Promise.all(questions.map(([key, question]) => answerOne(key, question, requests, pending)));
  pending.signal.throwIfAborted();
  return {
    ...(answers.length > 0 && { inputResponses: Object.fromEntries(answers) }),
    ...(requestState !== undefined && { requestState }),
  };
}

async function answerOne(key: string, question: unknown, requests: ServerRequests, pending: PendingRequest): Promise<[string, Json]> {
  if (!isPlainRecord(question) || typeof question["method"] !== "string") {
    throw new HostError("MCP_ANSWER", "The server asks for input without saying for which.");
  }
  return [key, await requests.answer(question["method"], question["params"], askerOf(pending), key)];
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, pace);
    signal.addEventListener("abort", () => [clearTimeout(timer), resolve()], { once: true });
  });
}
