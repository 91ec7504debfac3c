import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { redactText } from "../../base/logger.ts";
import type { Sdk } from "./server-link.ts";

/**
 * Converts what the SDK, the transport or the network threw into the HostError that connections promise. The message is
 * for people; for an error that the server returned it is the server's own text, and the SDK's error with code and data is
 * the cause.
 */
export function toConnectionError(error: unknown, sdk: Sdk, serverName: string): HostError {
  const own = causes(error).find((cause) => cause instanceof HostError);
  if (own instanceof HostError) return own;
  if (causes(error).some((cause) => cause instanceof sdk.UnauthorizedError) || httpStatusOf(error, sdk) === 401) {
    return new HostError("MCP_UNAUTHORIZED", `The MCP server ${serverName} requires sign-in (HTTP 401).`, { cause: error });
  }
  const status = httpStatusOf(error, sdk);
  if (status !== undefined) {
    const text = `The MCP server ${serverName} answered with HTTP status ${status}: ${firstLine(toError(error))}`;
    return new HostError("MCP_ANSWER", text, { cause: error });
  }
  if (error instanceof sdk.ProtocolError) return new HostError("MCP_ERROR", error.message, { cause: error });
  if (error instanceof sdk.SdkError) {
    const { ConnectionClosed, NotConnected, RequestTimeout } = sdk.SdkErrorCode;
    if (error.code === ConnectionClosed || error.code === NotConnected) {
      return new HostError("MCP_CLOSED", `The connection to the MCP server ${serverName} has ended.`, { cause: error });
    }
    if (error.code === RequestTimeout) {
      return new HostError("MCP_TIMEOUT", `The MCP server ${serverName} did not answer in time.`, { cause: error });
    }
    return new HostError("MCP_ANSWER", `The MCP server ${serverName} sent an invalid answer: ${firstLine(error)}`, { cause: error });
  }
  const network = networkCodeOf(error);
  if (network !== undefined) {
    return new HostError("MCP_CLOSED", `The request to the MCP server ${serverName} failed (${network}).`, { cause: error });
  }
  return new HostError("MCP_ANSWER", `The MCP server ${serverName} sent an invalid response: ${errorMessage(error)}`, { cause: error });
}

/** The HTTP status behind an error. */
export function httpStatusOf(error: unknown, sdk: Sdk): number | undefined {
  for (const cause of causes(error)) {
    if (cause instanceof sdk.SdkHttpError) return cause.data.status;
    if (cause instanceof sdk.SseError && cause.code !== undefined) return cause.code;
  }
  return undefined;
}

/** Whether the request certainly did not reach a server. */
export function isUnreachable(error: unknown): boolean {
  const code = networkCodeOf(error);
  return code !== undefined && unreachable.has(code);
}

const unreachable = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

function networkCodeOf(error: unknown): string | undefined {
  for (const cause of causes(error)) {
    const { code } = cause as { code?: unknown };
    if (typeof code === "string" && /^(E[A-Z]+|UND_ERR_[A-Z_]+)$/.test(code)) return code;
  }
  return causes(error).some((cause) => cause instanceof TypeError && cause.message === "fetch failed") ? "fetch failed" : undefined;
}

/** An error and its causes, outermost first. */
function causes(error: unknown): Error[] {
  const found: Error[] = [];
  for (let next = error; next instanceof Error && found.length < 8; next = next.cause) found.push(next);
  return found;
}

function firstLine(error: Error): string {
  return redactText((error.message.split("\n")[0] ?? "").slice(0, 300));
}
