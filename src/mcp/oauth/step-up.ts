import type { FetchLike } from "@modelcontextprotocol/client";
import type { OAuthSession } from "./oauth-session.ts";

/** How often one request is made again with more scope. A server that asks on and on is not served for ever. */
const maxStepUps = 2;

/**
 * Notes which token each request went out with, and makes a request again that was refused for want of scope (403 with
 * `insufficient_scope`), as soon as there is a token with it.
 */
export function wrapFetch(fetch: FetchLike, session: OAuthSession): FetchLike {
  return async (url, init) => {
    let headers = new Headers(init?.headers);
    for (let stepUps = 0; ; stepUps++) {
      const token = bearerOf(headers);
      const response = await fetch(url, stepUps === 0 ? init : { ...init, headers });
      if (token === undefined) return response;
      session.note(response, token);
      const scope = response.status === 403 ? await missingScope(response) : undefined;
      if (scope === undefined || stepUps === maxStepUps) return response;
      const wider = await session.stepUp(token, scope, init?.signal ?? undefined);
      await response.body?.cancel();
      headers = new Headers(headers);
      headers.set("authorization", `Bearer ${wider}`);
    }
  };
}

function bearerOf(headers: Headers): string | undefined {
  return /^bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
}

async function missingScope(response: Response): Promise<string | undefined> {
  const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const { error, scope } = extractWWWAuthenticateParams(response);
  return error === "insufficient_scope" ? scope : undefined;
}
