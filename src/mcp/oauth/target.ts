import type { FetchLike } from "@modelcontextprotocol/client";
import type { Logger } from "../../base/logger.ts";
import type { ServerOAuthSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { createAuthFetch } from "./auth-fetch.ts";
import type { ClientIdentity, CredentialStore, Credentials, Grant, ServerKey } from "./credentials.ts";

/** The server that is signed in to, and what signing in works with. */
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

/** The client that the configuration names. Its secret stays there: it is not stored with the tokens. */
export function configuredClient({ clientId, clientSecret }: OAuthTarget["spec"], issuer: string): ClientIdentity | undefined {
  if (clientId === undefined) return undefined;
  return { issuer, client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) };
}

/** Whether a grant is this configuration's: another client id is another client, whose tokens are not ours to use. */
export function isOurs(grant: Grant, { clientId }: OAuthTarget["spec"]): boolean {
  return clientId === undefined || grant.client.client_id === clientId;
}

/** What is left of credentials when the grant is good for nothing any more, and maybe the registration neither. */
export function withoutGrant(
  { issuer, registration }: Credentials,
  isClientUnknown: boolean,
  { clientId }: ServerOAuthSpec,
): Credentials | undefined {
  // Where a configured client was used is remembered: its secret goes to no other authorization server.
  if (clientId !== undefined) return { issuer, registration: { issuer, client_id: clientId } };
  return isClientUnknown || registration === undefined ? undefined : { issuer, registration };
}
