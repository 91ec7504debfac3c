import type { Logger } from "../../base/logger.ts";
import { silentLogger } from "../../base/logger.ts";
import type { ServerOAuthSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { AcquireToken } from "./acquire-grant.ts";
import type { Authorize } from "./await-callback.ts";
import type { CredentialStore } from "./credentials.ts";
import { OAuthSession } from "./oauth-session.ts";
import type { ServerAuth } from "./server-auth.ts";
import { wrapFetch } from "./step-up.ts";

export interface OAuthOptions {
  /** What the configuration calls the server. */
  readonly serverName: string;
  readonly serverUrl: string;
  readonly spec?: ServerOAuthSpec | undefined;
  /** Configured for the server: they go to its own origin when signing in is talked over with it. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly store: CredentialStore;
  /** Has a person sign in. Without it nobody can, and what needs it fails at once. */
  readonly authorize?: Authorize | undefined;
  /** Gives a token that somebody else obtained, instead of having a person sign in. Undefined comes of it: a person has to. */
  readonly acquire?: AcquireToken | undefined;
  /** Whether there is somebody to ask at this moment. Default: always, where there is `authorize`. */
  readonly isAttended?: (() => boolean) | undefined;
  /** How long a person has to sign in, in milliseconds. Default: 5 minutes. */
  readonly signInTimeout?: number | undefined;
  readonly log?: Logger;
}

/**
 * Authorizes the requests to one server: with the tokens that are stored for it, renewed when they end or are refused,
 * or with new ones that a person signs in for. Disposing of it gives up a sign-in that is waited for.
 */
export interface ServerOAuth extends ServerAuth, Disposable {
  /** Whether there are tokens, as far as is known by now; `needs-auth`: a person must sign in before it can be used. */
  readonly state: "unknown" | "signed-in" | "needs-auth";
  /**
   * Has a person sign in, whatever tokens there are. Several calls at a time share one sign-in.
   * Rejects with HostError `MCP_UNAUTHORIZED` when nobody does or it fails.
   */
  signIn(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Takes the tokens back where the authorization server allows it, and forgets them and this client's registrations. */
  signOut(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
}

/** Makes what a connection to a remote server is authorized with. Nothing is read or asked for before the first request. */
export function createOAuth(options: OAuthOptions): ServerOAuth {
  const { serverName: name, serverUrl: url, store, spec = {}, headers = {}, log = silentLogger } = options;
  const session = new OAuthSession(
    { server: { name, url }, spec, headers, store, log },
    {
      authorize: options.authorize,
      acquire: options.acquire,
      isAttended: options.isAttended ?? (() => true),
      timeout: options.signInTimeout ?? 300_000,
    },
  );
  return {
    provider: {
      token: () => session.token(),
      async onUnauthorized({ response }) {
        const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
        const { scope, resourceMetadataUrl, error } = extractWWWAuthenticateParams(response);
        await session.recover(session.sentWith(response), { scope, resourceMetadataUrl: resourceMetadataUrl?.href, error });
      },
    },
    wrapFetch: (fetch) => wrapFetch(fetch, session),
    onWaiting: (listener) => session.onWaiting(listener),
    get state() {
      return session.state;
    },
    signIn: ({ signal } = {}) => session.signIn(signal),
    signOut: ({ signal } = {}) => session.signOut(signal),
    [Symbol.dispose]: () => session.end(),
  };
}
