import type { FeedRequests } from "../../src/servers/inspector/feed-messages.ts";

/** The host refused a request, or did not answer. The message is for people. */
class RequestError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** @throws RequestError */
export async function requestHost<Method extends keyof FeedRequests>(
  method: Method,
  params: FeedRequests[Method]["params"],
  signal?: AbortSignal,
): Promise<FeedRequests[Method]["result"]> {
  const response = await fetch("request", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ method, params }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    throw new RequestError("UNREACHABLE", `The host does not answer: ${error instanceof Error ? error.message : String(error)}`);
  });
  const answer = (await response.json().catch(() => ({}))) as {
    readonly result?: FeedRequests[Method]["result"];
    readonly error?: { readonly code: string; readonly message: string };
  };
  if (answer.result !== undefined) return answer.result;
  throw new RequestError(answer.error?.code ?? "FAILED", answer.error?.message ?? `The host answered with status ${response.status}.`);
}

/**
 * Exchanges the token of the address for a cookie, and removes it from the address, the history and the title of the page.
 * False: the host does not accept it.
 */
export async function exchangeToken(): Promise<boolean> {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get("token");
  if (token === null) return (await fetch("session", { cache: "no-store" })).ok;
  history.replaceState(null, "", `#${fragment.get("view") ?? "/skills"}`);
  const { ok } = await fetch("session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  return ok;
}
