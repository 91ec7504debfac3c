import { errorMessage, HostError } from "../../base/errors.ts";
import { redactText } from "../../base/logger.ts";

/** A request that is not authorized, with why, and with what to do about it. */
export function unauthorized(serverName: string, why: string, remedy = `Run "skillhost login ${serverName}".`): HostError {
  return new HostError("MCP_UNAUTHORIZED", `MCP server "${serverName}" is not signed in to: ${sentence(why)} ${remedy}`);
}

/**
 * Why signing in or renewing failed, for people, without what the other side may have put into it: errors of the SDK
 * quote whole answers, which may hold tokens.
 */
export async function explain(error: unknown): Promise<string> {
  const { IssuerMismatchError, OAuthError, RegistrationRejectedError } = await import("@modelcontextprotocol/client");
  if (error instanceof RegistrationRejectedError) {
    return `the authorization server does not register this program by itself (HTTP ${error.status}); register it there and configure oauth.clientId`;
  }
  if (error instanceof IssuerMismatchError) {
    const what = error.kind === "metadata" ? "the metadata of the authorization server" : "the answer to the sign-in";
    const issuer = error.received === undefined ? "none" : oneLine(error.received);
    return `${what} must be from the issuer ${error.expected}, but the response names ${issuer}`;
  }
  if (!(error instanceof OAuthError)) return oneLine(errorMessage(error));
  if (error.message.includes("Raw body:")) return "the authorization server answered with an error that it does not explain";
  const description = error.message === error.code ? "" : ` (${oneLine(error.message)})`;
  return `the authorization server answered "${oneLine(error.code)}"${description}`;
}

function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a stranger's text must not steer a terminal.
  const line = redactText(text.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, " ")).trim();
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
