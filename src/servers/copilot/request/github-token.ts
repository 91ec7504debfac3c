import { isPlainRecord } from "../../../base/read-fields.ts";
import type { Client } from "../clients/client.ts";

/** A token is asked for anew so long before it ends. */
const aheadMs = 60 * 60 * 1000;

/**
 * Gives the tokens that a client acquires for a session: asks for the first when it is needed, and for another shortly
 * before that ends. Those who ask meanwhile share one request. Rejects when the client gives none.
 */
export function createTokenSource(client: Client, sessionId: string, registrationId: string): () => Promise<string> {
  let current: { readonly token: string; readonly until: number } | undefined;
  let asking: Promise<string> | undefined;
  const ask = async (): Promise<string> => {
    const reason = current === undefined ? "initial" : "refresh";
    const answer = await client.wire.request("gitHubToken.getToken", { registrationId, host: "github.com", sessionId, reason });
    const given = isPlainRecord(answer) && answer["kind"] === "token" ? answer : {};
    const { accessToken: token, expiresIn } = given;
    if (typeof token !== "string" || token === "") throw new Error("The client did not return a token for the models.");
    current = { token, until: Date.now() + (typeof expiresIn === "number" ? expiresIn * 1000 : 0) - aheadMs };
    return token;
  };
  return () => {
    if (current !== undefined && Date.now() < current.until) return Promise.resolve(current.token);
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };
}
