import { ErrorCodes, ResponseError } from "vscode-jsonrpc/node.js";
import { errorMessage, HostError } from "../../../base/errors.ts";

/** What a client sent is not what its method takes. */
export function badParams(method: string, problem: string): Error {
  return new ResponseError(ErrorCodes.InvalidParams, `Request ${method} failed with message: ${problem}`);
}

/** There is no such method, or none that does anything here; the message says which. */
export function notSupported(message: string): Error {
  return new ResponseError(ErrorCodes.MethodNotFound, message);
}

/** What went wrong while a request was answered, in the form that clients of the Copilot SDK look into. */
export function toRpcError(method: string, error: unknown): Error {
  if (error instanceof ResponseError) return error;
  const data = error instanceof HostError ? { code: error.code } : undefined;
  return new ResponseError(ErrorCodes.InternalError, `Request ${method} failed with message: ${errorMessage(error)}`, data);
}
