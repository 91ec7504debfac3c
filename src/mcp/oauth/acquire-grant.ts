import { HostError } from "../../base/errors.ts";
import type { Asks } from "../../tools/tool.ts";
import type { Grant } from "./credentials.ts";
import { readResourceMetadata } from "./read-resource-metadata.ts";
import type { Challenge, OAuthTarget } from "./target.ts";

/** Has somebody give a token of theirs. Undefined: nobody does. Rejects when the signal fires. */
export type AcquireToken = (data: Asks["accessToken"]["data"], signal: AbortSignal) => Promise<Asks["accessToken"]["answer"] | undefined>;

/** Why a token is wanted: there is none yet, the server does not take the one there is, or wants one for more. */
export type TokenReason = Asks["accessToken"]["data"]["reason"];

/** Asks whoever obtains tokens elsewhere for one. Undefined: nobody does. Rejects when they do not want to. */
export async function acquireGrant(
  target: OAuthTarget,
  challenge: Challenge,
  reason: TokenReason,
  acquire: AcquireToken,
  signal: AbortSignal,
): Promise<Grant | undefined> {
  const { server } = target;
  const { scope, resourceMetadataUrl, error } = challenge;
  const resourceMetadata = await readResourceMetadata(target, challenge, signal);
  const said = {
    ...(scope !== undefined && { scope }),
    ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl }),
    ...(error !== undefined && { error }),
  };
  const wanted = {
    serverName: server.name,
    serverUrl: server.url,
    wwwAuthenticateParams: said,
    ...(resourceMetadata !== undefined && { resourceMetadata }),
  };
  let answer = await acquire({ ...wanted, reason }, signal);
  // Who cannot renew a token may still have a person sign in again.
  if (answer?.kind === "cancelled" && reason === "refresh") answer = await acquire({ ...wanted, reason: "reauth" }, signal);
  if (answer === undefined) return undefined;
  if (answer.kind !== "token") throw new HostError("OAUTH_CANCELLED", "the client that was asked for a token returned none");
  const now = Date.now();
  return {
    // It cannot be renewed here, so whom it was issued to does not matter.
    client: { issuer: server.url, client_id: "" },
    accessToken: answer.accessToken,
    refreshToken: undefined,
    scope,
    expiresAt: answer.expiresIn === undefined ? undefined : now + answer.expiresIn * 1000,
    obtainedAt: now,
    resourceMetadataUrl,
  };
}
