import type { FetchLike } from "@modelcontextprotocol/client";
import type { Logger } from "../../base/logger.ts";
import type { ServerOAuthSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { createAuthFetch } from "./auth-fetch.ts";
import type { ClientIdentity, CredentialStore, Credentials, Grant, ServerKey } from "./credentials.ts";

/** The server to sign in to, and what that requires. */
export interface OAuthTarget {
  readonly server: ServerKey;
  readonly spec: ServerOAuthSpec;
  /** Configured for the server. */
  readonly headers: Readonly<Record<string, string>>;
  readonly store: CredentialStore;
  readonly log: Logger;
}

/** What a server said when it refused a request. */
export interface Challenge {
  readonly scope?: string | undefined;
  readonly resourceMetadataUrl?: string | undefined;
  /** Why the server refused, such as `invalid_token`. */
  readonly error?: string | undefined;
}

export function fetchFor({ server, headers }: OAuthTarget, signal: AbortSignal): FetchLike {
  return createAuthFetch({ serverUrl: new URL(server.url), headers, signal });
}

/** The configured client. Its secret is not stored with the tokens. */
export function configuredClient({ clientId, clientSecret }: OAuthTarget["spec"], issuer: string): ClientIdentity | undefined {
  if (clientId === undefined) return undefined;
  return { issuer, client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) };
}

/** Whether a grant belongs to the configured client: tokens of another client id must not be used. */
export function isOurs(grant: Grant, { clientId }: OAuthTarget["spec"]): boolean {
  return clientId === undefined || grant.client.client_id === clientId;
}

/** The credentials without a grant that is invalid, and without the registration if that is invalid as well. */
export function withoutGrant(
  { issuer, registration }: Credentials,
  isClientUnknown: boolean,
  { clientId }: ServerOAuthSpec,
): Credentials | undefined {
  // Where a configured client was used is stored: its secret must not go to another authorization server.
  if (clientId !== undefined) return { issuer, registration: { issuer, client_id: clientId } };
  return isClientUnknown || registration === undefined ? undefined : { issuer, registration };
}
