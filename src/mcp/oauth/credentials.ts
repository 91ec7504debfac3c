import type { AuthProvider, FetchLike } from "@modelcontextprotocol/client";

/** A server as a configuration has it. Two names for one address are two sign-ins, such as two accounts. */
export interface ServerKey {
  readonly name: string;
  readonly url: string;
}

/** What an authorization server knows this client by, with the fields' names of RFC 7591. */
export interface ClientIdentity {
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret?: string;
  /** Seconds since 1970; 0: never. */
  readonly client_secret_expires_at?: number;
  readonly token_endpoint_auth_method?: string;
  readonly redirect_uris?: string[];
}

/** Tokens, with the client that they were issued to: no other can renew them. */
export interface Grant {
  readonly client: ClientIdentity;
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** What was granted, or what was asked for where the server did not say. */
  readonly scope: string | undefined;
  /** Milliseconds since 1970. Undefined: the server did not say. */
  readonly expiresAt: number | undefined;
  readonly obtainedAt: number;
  /** Where the server said that its metadata lies. */
  readonly resourceMetadataUrl: string | undefined;
}

/** What one authorization server issued for the use of one MCP server. */
export interface Credentials {
  readonly issuer: string;
  /** This client as it registered itself; absent where it did not have to. */
  readonly registration?: ClientIdentity | undefined;
  readonly grant?: Grant | undefined;
}

export interface CredentialEntry {
  readonly current: Credentials | undefined;
  /** Undefined: nothing is kept any more. */
  save(next: Credentials | undefined): Promise<void>;
}

/** Keeps credentials, by server and by the authorization server that issued them: they are never good for another. */
export interface CredentialStore {
  /** What is kept for a server; the latest grant first. What cannot be read is left out. */
  list(server: ServerKey): Promise<readonly Credentials[]>;
  /**
   * Changes an entry while nobody else does who uses the same store, in this process or another. Rejects with the
   * signal's reason when that fires before it is this one's turn, and with HostError `OAUTH_STORE` when nothing can be kept.
   */
  exclusively<T>(server: ServerKey, issuer: string, signal: AbortSignal, work: (entry: CredentialEntry) => Promise<T>): Promise<T>;
}

/** Latest grant first, then those without one. */
export function latestFirst(credentials: readonly Credentials[]): readonly Credentials[] {
  return credentials.toSorted((a, b) => (b.grant?.obtainedAt ?? 0) - (a.grant?.obtainedAt ?? 0));
}

/** Whether two texts name the same authorization server: RFC 8414 lets them differ by a slash at the end. */
export function isSameIssuer(a: string, b: string): boolean {
  return withoutSlash(a) === withoutSlash(b);
}

function withoutSlash(issuer: string): string {
  return issuer.endsWith("/") ? issuer.slice(0, -1) : issuer;
}

/**
 * How the requests to one remote server are authorized. What fails for want of a sign-in rejects with HostError
 * `MCP_UNAUTHORIZED`, whose message says why and what to do; it may arrive as the `cause` of an error of the SDK.
 */
export interface ServerAuth {
  /** For a transport's `authProvider`: puts tokens on requests, renews them before they expire and when they are refused. */
  readonly provider: AuthProvider;
  /** For a transport's `fetch`: what it fetches with, wrapped so that a request which needs more scope is made again with it. */
  wrapFetch(fetch: FetchLike): FetchLike;
  /**
   * Hears when a person is waited for in the midst of a request, and when no longer: deadlines of requests should stand
   * still meanwhile.
   */
  onWaiting(listener: (isWaiting: boolean) => void): Disposable;
}
