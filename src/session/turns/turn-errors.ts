import { errorMessage, HostError } from "../../base/errors.ts";
import { redactText } from "../../base/logger.ts";
import { ModelError, type ModelErrorCode } from "../../models/model-error.ts";

/** The data of `session.error`. Its `errorType` is of the Copilot SDK's words; `errorCode` is ours. */
export function toErrorData(error: Error): object {
  if (!(error instanceof ModelError)) {
    const code = error instanceof HostError ? { errorCode: error.code } : {};
    return { errorType: "unknown", message: redactText(errorMessage(error)), ...code };
  }
  const { code, status, details } = error;
  return {
    errorType: errorTypes[code],
    errorCode: code,
    message: error.message,
    ...(status !== undefined && { statusCode: status }),
    ...(details.requestId !== undefined && { providerCallId: details.requestId }),
  };
}

const errorTypes: { readonly [Code in ModelErrorCode]: string } = {
  MODEL_AUTH: "authentication",
  MODEL_RATE_LIMITED: "rate_limit",
  MODEL_CONTEXT_TOO_LONG: "context_limit",
  MODEL_HTTP: "query",
  MODEL_UNREACHABLE: "query",
  MODEL_BAD_ANSWER: "query",
  MODEL_ABORTED: "query",
};

/** Whether the same message may do better another time. */
export function isRecoverable(error: Error): boolean {
  return error instanceof ModelError && error.retryable;
}

export function abortedError(): HostError {
  return new HostError("TURN_ABORTED", "The turn was stopped before the model had answered. Send the message again.");
}
