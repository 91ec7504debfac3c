import type { AuthProvider, FetchLike } from "@modelcontextprotocol/client";

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
