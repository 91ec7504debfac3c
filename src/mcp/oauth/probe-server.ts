import { errorMessage } from "../../base/errors.ts";
import { fetchFor, type OAuthTarget } from "./credentials.ts";

/** What a server answered to a request that was sent to find out whether it requires a sign-in. */
export type ServerProbe =
  | { readonly kind: "accepted"; readonly withToken: boolean; readonly response: ProbedResponse }
  | {
      readonly kind: "refused";
      /** There was no token, it was refused, or it has too little scope. */
      readonly reason: "initial" | "refresh" | "upscope";
      readonly response: ProbedResponse;
      readonly challenge: { readonly scope?: string; readonly resourceMetadataUrl?: string; readonly error?: string };
    }
  /** The server was not reached, or its answer does not say whether it requires a sign-in. */
  | { readonly kind: "failed"; readonly message: string; readonly response?: ProbedResponse };

export interface ProbedResponse {
  readonly status: number;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  /** Absent: it is not UTF-8. */
  readonly body?: string;
}

/** Sends a ping outside of any MCP session. It changes nothing at the server, even if the server answers it. */
export async function probeServer(target: OAuthTarget, token: string | undefined, signal: AbortSignal): Promise<ServerProbe> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  let answer: Response;
  try {
    answer = await fetchFor(target, signal)(target.server.url, { method: "POST", headers, body });
  } catch (error) {
    signal.throwIfAborted();
    return { kind: "failed", message: errorMessage(error) };
  }
  const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const { scope, resourceMetadataUrl, error } = extractWWWAuthenticateParams(answer);
  const challenge = {
    ...(scope !== undefined && { scope }),
    ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl: resourceMetadataUrl.href }),
    ...(error !== undefined && { error }),
  };
  const response = await read(answer);
  const { status } = response;
  if (status === 401) return { kind: "refused", reason: token === undefined ? "initial" : "refresh", response, challenge };
  if (status === 403 && error === "insufficient_scope") return { kind: "refused", reason: "upscope", response, challenge };
  // A server that requires a session refuses a ping outside of one, but only after it has accepted the token.
  if (status < 300 || status === 400 || status === 405 || status === 406)
    return { kind: "accepted", withToken: token !== undefined, response };
  return { kind: "failed", message: `The server answered with status ${status}.`, response };
}

async function read(answer: Response): Promise<ProbedResponse> {
  const headers = [...answer.headers].map(([name, value]) => ({ name, value }));
  const bytes = new Uint8Array(await answer.arrayBuffer());
  try {
    return { status: answer.status, headers, body: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { status: answer.status, headers };
  }
}
