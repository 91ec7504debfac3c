import { errorMessage } from "../../base/errors.ts";
import type { Asks, ToolAnswer } from "../../tools/tool.ts";
import type { ResolvedSessionConfig } from "../session-config.ts";
import type { AskHandler, AskHandlers, AskInvocation } from "./client-requests.ts";
import { type AskKind, noResult } from "./request-kinds.ts";

/** The program that made a session, as a client of it: its callbacks are those of the configuration of now. */
export function createOwnClient(config: () => ResolvedSessionConfig): {
  readonly answers: readonly AskKind[];
  readonly handlers: AskHandlers;
} {
  return {
    answers: ["permission", "tool", "userInput", "elicitation", "sampling", "authorization", "exitPlanMode"],
    handlers: {
      permission: (data, invocation) => callBack(config().onPermissionRequest, data, invocation),
      userInput: (data, invocation) => callBack(config().onUserInputRequest, data, invocation),
      elicitation: (data, invocation) => callBack(config().onElicitationRequest, data, invocation),
      sampling: (data, invocation) => callBack(config().onSamplingRequest, data, invocation),
      exitPlanMode: (data, invocation) => callBack(config().options.onExitPlanModeRequest, data, invocation),
      authorization: (data, invocation) => callBack(config().onMcpAuthorization, data, invocation),
    },
  };
}

/** Whether the program that made a session answers this kind of question itself. */
export function hasOwnHandler(kind: AskKind, config: ResolvedSessionConfig): boolean {
  if (kind === "userInput") return config.onUserInputRequest !== undefined;
  if (kind === "elicitation") return config.onElicitationRequest !== undefined;
  return kind === "exitPlanMode" && config.options.onExitPlanModeRequest !== undefined;
}

/** Reads what a program gives for a pending call: `{ result }`, `{ error }`, an Error, or the result itself. */
export function toToolAnswer(answer: unknown): ToolAnswer {
  if (answer instanceof Error) return { error: errorMessage(answer) };
  const keys = typeof answer === "object" && answer !== null ? Object.keys(answer) : [];
  const only = keys.length === 1 ? keys[0] : undefined;
  if (only === "result") return answer as { readonly result: unknown };
  return only === "error" && typeof (answer as { error: unknown }).error === "string"
    ? (answer as { readonly error: string })
    : { result: answer };
}

function callBack<K extends AskKind>(handler: AskHandler<K> | undefined, data: Asks[K]["data"], invocation: AskInvocation): unknown {
  return handler === undefined ? noResult : handler(data, invocation);
}
