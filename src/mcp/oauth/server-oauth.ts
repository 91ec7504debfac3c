import type { AuthProvider, FetchLike } from "@modelcontextprotocol/client";
import { Emitter } from "../../base/emitter.ts";
import { HostError } from "../../base/errors.ts";
import { type Logger, silentLogger } from "../../base/logger.ts";
import { waitFor } from "../../base/wait.ts";
import type { ServerOAuthSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { explain, unauthorized } from "./auth-fetch.ts";
import type { Challenge, CredentialStore, OAuthTarget, ServerAuth } from "./credentials.ts";
import { type AcquireToken, acquireGrant, CurrentGrant, type TokenReason } from "./current-grant.ts";
import type { ServerProbe } from "./probe-server.ts";
import { type Authorize, signIn } from "./sign-in.ts";
import { revokeGrant } from "./token-requests.ts";

export interface OAuthOptions {
  /** The server's name in the configuration. */
  readonly serverName: string;
  readonly serverUrl: string;
  readonly spec?: ServerOAuthSpec | undefined;
  /** Configured for the server. Requests for authorization send them only to its own origin. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly store: CredentialStore;
  /** Asks the user to sign in. Without it, whatever needs a sign-in fails at once. */
  readonly authorize?: Authorize | undefined;
  /** Returns a token that was obtained elsewhere, instead of asking the user to sign in. Return undefined to ask the user. */
  readonly acquire?: AcquireToken | undefined;
  /** Whether a user can be asked now. Default: always, if there is an `authorize`. */
  readonly isAttended?: (() => boolean) | undefined;
  /** Milliseconds for the user to sign in. Default: 5 minutes. */
  readonly signInTimeout?: number | undefined;
  readonly log?: Logger;
}

/** How often one request is repeated with more scope, however often the server asks for more. */
const maxStepUps = 2;
const defaultSignInTimeout = 300_000;

/**
 * Authorizes the requests to one server: with its stored tokens, renewed when they expire or are refused, or with new ones
 * from a sign-in. Disposing cancels a pending sign-in. Reads and asks for nothing before the first request.
 */
export class ServerOAuth implements ServerAuth, Disposable {
  readonly provider: AuthProvider = {
    token: () => this.#token(),
    onUnauthorized: async ({ response }) => {
      const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
      const { scope, resourceMetadataUrl, error } = extractWWWAuthenticateParams(response);
      await this.#replaceToken(this.#sent.get(response), { scope, resourceMetadataUrl: resourceMetadataUrl?.href, error });
    },
  };
  readonly #target: OAuthTarget;
  readonly #options: OAuthOptions;
  readonly #over = new AbortController();
  readonly #current: CurrentGrant;
  readonly #events: Emitter<{ waiting: boolean }>;
  /** The token that a request was sent with; another request may have led to a new one in the meantime. */
  readonly #sent = new WeakMap<Response, string>();
  /** Scopes that the user was already asked for. They are not asked for again if the server still refuses. */
  readonly #steppedUp = new Set<string>();
  readonly #renewed = new Set<string>();
  #challenge: Challenge = {};
  #signingIn: Promise<void> | undefined;
  /** Why a request does not ask the user again. */
  #refusal: string | undefined;
  /** The user has signed in, and the server has not accepted a token since. */
  #isUnproven = false;
  #needsAuth = false;
  /** The present token came from the client. */
  #given = false;

  constructor(options: OAuthOptions) {
    const { serverName: name, serverUrl: url, store, spec = {}, headers = {}, log = silentLogger } = options;
    this.#options = options;
    this.#target = { server: { name, url }, spec, headers, store, log };
    this.#current = new CurrentGrant(this.#target, this.#over.signal);
    this.#events = new Emitter((error) => log.error("A sign-in listener failed.", { error }));
  }

  /** Whether there are tokens, as far as is known; `needs-auth`: the user must sign in first. */
  get state(): "unknown" | "signed-in" | "needs-auth" {
    if (this.#current.grant !== undefined) return "signed-in";
    return this.#needsAuth ? "needs-auth" : "unknown";
  }

  async #token(): Promise<string | undefined> {
    await this.#current.load();
    await this.#current.renewAhead(this.#challenge);
    return this.#current.grant?.accessToken;
  }

  /** Records the token of a response, and what the response says about it. */
  #note(response: Response, token: string): void {
    this.#sent.set(response, token);
    if (response.status === 401 || token !== this.#current.grant?.accessToken) return;
    this.#current.isAccepted = true;
    this.#isUnproven = false;
  }

  /** Obtains a token other than the refused one, or rejects. */
  async #replaceToken(refused: string | undefined, challenge: Challenge): Promise<void> {
    this.#challenge = { resourceMetadataUrl: this.#challenge.resourceMetadataUrl, ...withoutUndefined(challenge) };
    const { grant, isOwn, isAccepted } = this.#current;
    const token = refused ?? grant?.accessToken;
    if (await this.#hasOtherThan(token)) return;
    if (isOwn) return this.#obtainOwn(isAccepted);
    const why = await this.#renew();
    if (why === undefined) return;
    if (this.#isUnproven) throw this.#fail("it rejects tokens that its own authorization server has just issued", "Ask its operator.");
    this.#steppedUp.clear();
    await this.#askPerson(why, this.#challenge);
  }

  /** Obtains a token with more scope than the refused one, or rejects. */
  async #stepUp(refused: string, scope: string, signal: AbortSignal | undefined): Promise<string> {
    const { computeScopeUnion } = await import("@modelcontextprotocol/client");
    const before = this.#current.grant;
    if (before !== undefined && before.accessToken !== refused) return before.accessToken;
    if (this.#steppedUp.has(scope)) throw this.#fail(`it repeatedly asks for the scope "${scope}"`, "Ask its operator.");
    this.#steppedUp.add(scope);
    const wider: Challenge = { ...this.#challenge, scope: computeScopeUnion(before?.scope, scope) };
    await waitFor(this.#widen(wider, scope), { signal });
    return this.#current.grant!.accessToken;
  }

  /**
   * Asks the user to sign in, even if there are tokens. Concurrent calls share one sign-in.
   * Rejects with HostError `MCP_UNAUTHORIZED` when it fails or no user is available.
   */
  async signIn({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    this.#refusal = undefined;
    this.#isUnproven = false;
    this.#steppedUp.clear();
    await waitFor(this.#current.isOwn ? this.#obtainOwn(true) : this.#askPerson("", this.#challenge), { signal });
  }

  /** Finds out whether the server accepts the present token, or none. Nothing is renewed, and no user is asked. */
  async probe(signal: AbortSignal): Promise<ServerProbe> {
    await this.#current.load();
    const { probeServer } = await import("./probe-server.ts");
    return probeServer(this.#target, this.#current.grant?.accessToken, AbortSignal.any([signal, this.#over.signal]));
  }

  /** Revokes the tokens where the authorization server supports it, and removes them and this client's registrations. */
  async signOut({ signal = this.#over.signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { store, server } = this.#target;
    this.#current.adopt(undefined);
    for (const { issuer } of await store.list(server)) {
      await store.exclusively(server, issuer, signal, async (entry) => {
        if (entry.current?.grant) await revokeGrant(this.#target, entry.current.grant, signal);
        await entry.save(undefined);
      });
    }
  }

  /**
   * Records the token of each request, and repeats a request that was refused for want of scope (403 with
   * `insufficient_scope`) once there is a token with that scope.
   */
  wrapFetch(fetch: FetchLike): FetchLike {
    return async (url, init) => {
      let headers = new Headers(init?.headers);
      for (let stepUps = 0; ; stepUps++) {
        const token = /^bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
        const response = await fetch(url, stepUps === 0 ? init : { ...init, headers });
        if (token === undefined) return response;
        this.#note(response, token);
        const scope = response.status === 403 ? await missingScope(response) : undefined;
        if (scope === undefined || stepUps === maxStepUps) return response;
        const wider = await this.#stepUp(token, scope, init?.signal ?? undefined);
        await response.body?.cancel();
        headers = new Headers(headers);
        headers.set("authorization", `Bearer ${wider}`);
      }
    };
  }

  onWaiting(listener: (isWaiting: boolean) => void): Disposable {
    return this.#events.on("waiting", listener);
  }

  [Symbol.dispose](): void {
    this.#over.abort(new HostError("MCP_CLOSED", `The connection to MCP server "${this.#target.server.name}" is closed.`));
  }

  async #hasOtherThan(token: string | undefined): Promise<boolean> {
    const differs = (): boolean => this.#current.grant !== undefined && this.#current.grant.accessToken !== token;
    if (differs()) return true;
    await this.#current.reload();
    return differs();
  }

  /** Undefined: done. Otherwise the reason why the user must sign in. Rejects when a later attempt may succeed. */
  async #renew(): Promise<string | undefined> {
    const { grant, isAccepted } = this.#current;
    if (grant === undefined) return "";
    if (grant.refreshToken === undefined) return "the tokens have expired";
    // It was just renewed, so renewing it again would not help.
    if (!isAccepted && this.#renewed.has(grant.accessToken)) return "it rejects renewed tokens";
    const renewal = await this.#current.renew(this.#challenge);
    if (renewal.kind === "unavailable") throw this.#fail(renewal.why, "The stored tokens stay valid for the next try. Try again later.");
    if (renewal.kind !== "renewed") return `the tokens cannot be renewed: ${renewal.why}`;
    this.#renewed.clear();
    this.#renewed.add(renewal.grant.accessToken);
    return undefined;
  }

  async #obtainOwn(mayTry: boolean): Promise<void> {
    if (!mayTry && this.#current.grant !== undefined) throw this.#fail("it rejects the tokens of this client", "Ask its operator.");
    const renewal = await this.#current.renew(this.#challenge);
    if (renewal.kind !== "renewed") throw this.#fail(renewal.why, "Check oauth.clientId and oauth.clientSecret.");
  }

  #widen(challenge: Challenge, scope: string): Promise<void> {
    if (!this.#current.isOwn) return this.#askPerson(`it asks for the scope "${scope}"`, challenge, "upscope");
    this.#challenge = challenge;
    return this.#obtainOwn(true);
  }

  #askPerson(why: string, challenge: Challenge, reason: TokenReason = this.#given ? "refresh" : "initial"): Promise<void> {
    const { authorize, acquire } = this.#options;
    if ((authorize ?? acquire) === undefined || this.#options.isAttended?.() === false)
      throw this.#fail(why === "" ? "it requires sign-in" : why);
    if (this.#refusal !== undefined) throw this.#fail(this.#refusal);
    this.#signingIn ??= this.#signInNow(challenge, reason).finally(() => {
      this.#signingIn = undefined;
    });
    return this.#signingIn;
  }

  async #signInNow(challenge: Challenge, reason: TokenReason): Promise<void> {
    const { authorize, acquire } = this.#options;
    let isAsked = false;
    const ask = <Data, Answer>(question: (data: Data, signal: AbortSignal) => Promise<Answer>) => {
      return (data: Data, signal: AbortSignal): Promise<Answer> => {
        if (!isAsked) this.#events.emit("waiting", true);
        isAsked = true;
        return question(data, signal);
      };
    };
    const { signInTimeout = defaultSignInTimeout } = this.#options;
    const timeout = AbortSignal.timeout(signInTimeout);
    const signal = AbortSignal.any([this.#over.signal, timeout]);
    try {
      const given = acquire && (await acquireGrant(this.#target, challenge, reason, ask(acquire), signal));
      this.#given = given !== undefined;
      if (given === undefined && authorize === undefined) throw new HostError("ASK_UNANSWERED", "no user is available to sign in");
      this.#current.adopt(given ?? (await signIn(this.#target, challenge, ask(authorize!), signal)));
      this.#isUnproven = true;
      this.#needsAuth = false;
    } catch (error) {
      const why = timeout.aborted ? `no user signed in within ${signInTimeout / 1000} seconds` : await explain(error);
      // A refusal or a missed deadline ends asking, for all requests that follow. A user who was not available may be asked later.
      if (isAsked && !(error instanceof HostError && error.code === "ASK_UNANSWERED")) this.#refusal = why;
      throw this.#fail(why);
    } finally {
      if (isAsked) this.#events.emit("waiting", false);
    }
  }

  #fail(why: string, remedy?: string): HostError {
    this.#needsAuth = true;
    return unauthorized(this.#target.server.name, why, remedy);
  }
}

function withoutUndefined(challenge: Challenge): Challenge {
  return Object.fromEntries(Object.entries(challenge).filter(([, value]) => value !== undefined));
}

async function missingScope(response: Response): Promise<string | undefined> {
  const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const { error, scope } = extractWWWAuthenticateParams(response);
  return error === "insufficient_scope" ? scope : undefined;
}
