import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";

/** What clients are told that is their own doing; everything else that fails stays in the log. */
const callersFault: ReadonlySet<string> = new Set(["PROMPT_UNKNOWN", "PROMPT_ARGUMENTS", "RESOURCE_UNKNOWN"]);

/** Runs a handler of a request, and turns what it throws into an error that may go out. */
export async function guarded<T>(log: Logger, what: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw toWireError(error, log, what);
  }
}

/** Nothing of an error that somebody's code threw goes out: it may hold paths, addresses or secrets. */
export function toWireError(error: unknown, log: Logger, what: string): Error {
  if (error instanceof ProtocolError) return error;
  if (error instanceof HostError && callersFault.has(error.code)) return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message);
  log.error(`A request of an MCP client failed: ${what}.`, { error: toError(error) });
  return new ProtocolError(ProtocolErrorCode.InternalError, "The server could not do this. Its log says why.");
}

export function resourceNotFound(uri: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "Resource not found", { uri });
}
