import type { AuthProvider, FetchLike } from "@modelcontextprotocol/client";
import type { Logger } from "../../base/logger.ts";
import type { ServerOAuthSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { createAuthFetch } from "./auth-fetch.ts";

/** A configured server. Two names with the same address are two sign-ins, such as two accounts. */
export interface ServerKey {
  readonly name: string;
  readonly url: string;
}

/** This client's identity at an authorization server, with the field names of RFC 7591. */
export interface ClientIdentity {
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret?: string;
  /** Seconds since 1970; 0: never. */
  readonly client_secret_expires_at?: number;
  readonly token_endpoint_auth_method?: string;
  readonly redirect_uris?: string[];
}

/** Tokens, with the client that they were issued to; no other client can renew them. */
export interface Grant {
  readonly client: ClientIdentity;
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** The granted scope, or the requested one where the server did not say. */
  readonly scope: string | undefined;
  /** Milliseconds since 1970. Undefined: unknown. */
  readonly expiresAt: number | undefined;
  readonly obtainedAt: number;
  /** The address that the server gave for its metadata. */
  readonly resourceMetadataUrl: string | undefined;
}

/** What one authorization server issued for one MCP server. */
export interface Credentials {
  readonly issuer: string;
  /** This client's own registration; absent where it did not have to register. */
  readonly registration?: ClientIdentity | undefined;
  readonly grant?: Grant | undefined;
}

export interface CredentialEntry {
  readonly current: Credentials | undefined;
  /** Undefined: removes the entry. */
  save(next: Credentials | undefined): Promise<void>;
}

/** Stores credentials by server and by the authorization server that issued them; no other server accepts them. */
export interface CredentialStore {
  /** The credentials for a server, the latest grant first. Unreadable ones are left out. */
  list(server: ServerKey): Promise<readonly Credentials[]>;
  /**
   * Changes an entry while no other user of the store does, in this process or another. Rejects with the signal's reason
   * when that fires before its turn, and with HostError `OAUTH_STORE` when nothing can be stored.
   */
  exclusively<T>(server: ServerKey, issuer: string, signal: AbortSignal, work: (entry: CredentialEntry) => Promise<T>): Promise<T>;
}

/** Latest grant first, then those without one. */
export function latestFirst(credentials: readonly Credentials[]): readonly Credentials[] {
  return credentials.toSorted((a, b) => (b.grant?.obtainedAt ?? 0) - (a.grant?.obtainedAt ?? 0));
}

/** Whether two texts name the same authorization server: RFC 8414 allows them to differ by a trailing slash. */
export function isSameIssuer(a: string, b: string): boolean {
  return withoutSlash(a) === withoutSlash(b);
}

function withoutSlash(issuer: string): string {
  return issuer.endsWith("/") ? issuer.slice(0, -1) : issuer;
}

/**
 * How the requests to one remote server are authorized. Without a sign-in they reject with HostError `MCP_UNAUTHORIZED`,
 * whose message says why and what to do; it may be the `cause` of an error of the SDK.
 */
export interface ServerAuth {
  /** For a transport's `authProvider`: adds tokens to requests, and renews them before they expire and when they are refused. */
  readonly provider: AuthProvider;
  /** For a transport's `fetch`: repeats a request that needs more scope, once a token with that scope exists. */
  wrapFetch(fetch: FetchLike): FetchLike;
  /** Called when a request starts and stops waiting for a user, so that deadlines can stand still meanwhile. */
  onWaiting(listener: (isWaiting: boolean) => void): Disposable;
}

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
