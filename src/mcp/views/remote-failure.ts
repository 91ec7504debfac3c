import { errorMessage, HostError } from "../../base/errors.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { failureResult } from "../../tools/tool-result.ts";

/**
 * What a call comes to that brought no result. The model learns what kind of trouble it was; what was said about it, such
 * as a path, an address or the server's own words for an error of the protocol, is for the log.
 * @throws what is no HostError of a request: it was thrown by a fault of ours.
 */
export function failureOf(error: unknown, server: string): ToolResult {
  if (!(error instanceof HostError) || !error.code.startsWith("MCP_")) throw error;
  const sentence = sentences[error.code as keyof typeof sentences] ?? sentences.MCP_ERROR;
  return failureResult(sentence(server, numberOf(error)), {
    ...(error.code === "MCP_TIMEOUT" && { resultType: "timeout" }),
    error: `${error.code}: ${errorMessage(error)}`,
  });
}

const sentences = {
  MCP_TIMEOUT: (server) => `MCP server "${server}" did not answer in time. Whether it did what it was asked to is not known.`,
  MCP_CANCELLED: (server) => `The call of MCP server "${server}" was cancelled.`,
  MCP_CLOSED: (server) =>
    `The connection to MCP server "${server}" ended before it answered. Whether it did what it was asked to is not known.`,
  MCP_NOT_RUN: notCalled,
  MCP_NOT_STARTED: notCalled,
  MCP_UNAVAILABLE: notCalled,
  MCP_UNAUTHORIZED: (server) => `MCP server "${server}" wants the user to sign in first, so the tool was not called.`,
  MCP_ANSWER: (server) => `MCP server "${server}" answered with something that is not a result. Detailed information is not available.`,
  MCP_ERROR: (server, code) => {
    if (code === invalidParams) return `MCP server "${server}" refused the call: it does not take these arguments, or has no such tool.`;
    if (code === methodNotFound) return `MCP server "${server}" refused the call: it has no tools any more.`;
    return `MCP server "${server}" answered with an error. Detailed information is not available.`;
  },
} satisfies Readonly<Record<string, (server: string, code: number | undefined) => string>>;

function notCalled(server: string): string {
  return `MCP server "${server}" is not running, so the tool was not called. Continue without it, or inform the user.`;
}

// As JSON-RPC numbers them.
const methodNotFound = -32601;
const invalidParams = -32602;

/** The number that the server gave its error. */
function numberOf({ cause }: HostError): number | undefined {
  if (typeof cause !== "object" || cause === null) return undefined;
  const { code } = cause as { readonly code?: unknown };
  return typeof code === "number" ? code : undefined;
}
