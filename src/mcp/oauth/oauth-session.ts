import { Emitter } from "../../base/emitter.ts";
import { HostError } from "../../base/errors.ts";
import { waitFor } from "../../base/wait-for.ts";
import { type AcquireToken, acquireGrant, type TokenReason } from "./acquire-grant.ts";
import { explain, unauthorized } from "./auth-errors.ts";
import type { Authorize } from "./await-callback.ts";
import { GrantKeeper } from "./grant-keeper.ts";
import { revokeGrant } from "./revoke-grant.ts";
import { signIn } from "./sign-in.ts";
import type { Challenge, OAuthTarget } from "./target.ts";

/** Who signs in. */
export interface SignInPeople {
  readonly authorize: Authorize | undefined;
  readonly acquire: AcquireToken | undefined;
  isAttended(): boolean;
  /** Milliseconds that they have. */
  readonly timeout: number;
}

/** Decides what is to be done when a server refuses a request: use what others renewed, renew, or have a person sign in. */
export class OAuthSession {
  readonly #target: OAuthTarget;
  readonly #people: SignInPeople;
  readonly #over = new AbortController();
  readonly #keeper: GrantKeeper;
  readonly #events: Emitter<{ waiting: boolean }>;
  readonly #sent = new WeakMap<Response, string>();
  /** Scopes that a person was asked for already: a server that goes on refusing does not have them asked again. */
  readonly #steppedUp = new Set<string>();
  #challenge: Challenge = {};
  #signingIn: Promise<void> | undefined;
  /** Why nobody is asked again by a mere request. */
  #refusal: string | undefined;
  /** Somebody signed in, and the server has not taken a token since. */
  #isUnproven = false;
  #needsAuth = false;
  /** The present token was somebody else's to obtain. */
  #given = false;

  constructor(target: OAuthTarget, people: SignInPeople) {
    this.#target = target;
    this.#people = people;
    this.#keeper = new GrantKeeper(target, this.#over.signal);
    this.#events = new Emitter((error) => target.log.error("A listener to a sign-in failed.", { error }));
  }

  get state(): "unknown" | "signed-in" | "needs-auth" {
    if (this.#keeper.grant !== undefined) return "signed-in";
    return this.#needsAuth ? "needs-auth" : "unknown";
  }

  async token(): Promise<string | undefined> {
    await this.#keeper.load();
    await this.#keeper.renewAhead(this.#challenge);
    return this.#keeper.grant?.accessToken;
  }

  /** Which token a request went out with: another request may have led to a new one meanwhile. */
  note(response: Response, token: string): void {
    this.#sent.set(response, token);
    if (response.status === 401 || token !== this.#keeper.grant?.accessToken) return;
    this.#keeper.isAccepted = true;
    this.#isUnproven = false;
  }

  sentWith(response: Response): string | undefined {
    return this.#sent.get(response);
  }

  /** Comes to a token other than the one that the server refused, or rejects. */
  async recover(refused: string | undefined, challenge: Challenge): Promise<void> {
    this.#challenge = { resourceMetadataUrl: this.#challenge.resourceMetadataUrl, ...withoutUndefined(challenge) };
    const { grant, isOwn, isAccepted } = this.#keeper;
    const token = refused ?? grant?.accessToken;
    if (await this.#hasOtherThan(token)) return;
    if (isOwn) return this.#obtainOwn(isAccepted);
    const why = await this.#renew();
    if (why === undefined) return;
    if (this.#isUnproven) throw this.#fail("it refuses tokens that its own authorization server has just issued", "Ask those who run it.");
    this.#steppedUp.clear();
    await this.#askPerson(why, this.#challenge);
  }

  /** Comes to a token with more scope than the one that was refused for want of it, or rejects. */
  async stepUp(refused: string, scope: string, signal: AbortSignal | undefined): Promise<string> {
    const { computeScopeUnion } = await import("@modelcontextprotocol/client");
    const before = this.#keeper.grant;
    if (before !== undefined && before.accessToken !== refused) return before.accessToken;
    if (this.#steppedUp.has(scope)) throw this.#fail(`it asks for the scope "${scope}" again and again`, "Ask those who run it.");
    this.#steppedUp.add(scope);
    const wider: Challenge = { ...this.#challenge, scope: computeScopeUnion(before?.scope, scope) };
    await waitFor(this.#widen(wider, scope), { signal });
    return this.#keeper.grant!.accessToken;
  }

  async signIn(signal: AbortSignal | undefined): Promise<void> {
    this.#refusal = undefined;
    this.#isUnproven = false;
    this.#steppedUp.clear();
    await waitFor(this.#keeper.isOwn ? this.#obtainOwn(true) : this.#askPerson("", this.#challenge), { signal });
  }

  async signOut(signal: AbortSignal = this.#over.signal): Promise<void> {
    const { store, server } = this.#target;
    this.#keeper.adopt(undefined);
    for (const { issuer } of await store.list(server)) {
      await store.exclusively(server, issuer, signal, async (entry) => {
        if (entry.current?.grant) await revokeGrant(this.#target, entry.current.grant, signal);
        await entry.save(undefined);
      });
    }
  }

  onWaiting(listener: (isWaiting: boolean) => void): Disposable {
    return this.#events.on("waiting", listener);
  }

  end(): void {
    this.#over.abort(new HostError("MCP_CLOSED", `The connection to MCP server "${this.#target.server.name}" is closed.`));
  }

  async #hasOtherThan(token: string | undefined): Promise<boolean> {
    const differs = (): boolean => this.#keeper.grant !== undefined && this.#keeper.grant.accessToken !== token;
    if (differs()) return true;
    await this.#keeper.reload();
    return differs();
  }

  /** Undefined: done. Otherwise why a person must sign in. Rejects when it may be done later. */
  async #renew(): Promise<string | undefined> {
    const { grant, isAccepted } = this.#keeper;
    if (grant === undefined) return "";
    if (grant.refreshToken === undefined) return "the tokens have ended";
    // It was renewed and is refused all the same: once more would not help.
    if (!isAccepted && this.#renewed.has(grant.accessToken)) return "it refuses renewed tokens";
    const renewal = await this.#keeper.renew(this.#challenge);
    if (renewal.kind === "unavailable") throw this.#fail(renewal.why, "The tokens are kept: try again later.");
    if (renewal.kind !== "renewed") return `the tokens cannot be renewed, since ${renewal.why}`;
    this.#renewed.clear();
    this.#renewed.add(renewal.grant.accessToken);
    return undefined;
  }

  readonly #renewed = new Set<string>();

  async #obtainOwn(mayTry: boolean): Promise<void> {
    if (!mayTry && this.#keeper.grant !== undefined)
      throw this.#fail("it refuses the tokens that this client is given", "Ask those who run it.");
    const renewal = await this.#keeper.renew(this.#challenge);
    if (renewal.kind !== "renewed") throw this.#fail(renewal.why, "Check oauth.clientId and oauth.clientSecret.");
  }

  #widen(challenge: Challenge, scope: string): Promise<void> {
    if (!this.#keeper.isOwn) return this.#askPerson(`it asks for the scope "${scope}"`, challenge, "upscope");
    this.#challenge = challenge;
    return this.#obtainOwn(true);
  }

  #askPerson(why: string, challenge: Challenge, reason: TokenReason = this.#given ? "refresh" : "initial"): Promise<void> {
    const { authorize, acquire } = this.#people;
    if ((authorize ?? acquire) === undefined || !this.#people.isAttended()) throw this.#fail(why === "" ? "it asks for a sign-in" : why);
    if (this.#refusal !== undefined) throw this.#fail(this.#refusal);
    this.#signingIn ??= this.#signInNow(challenge, reason).finally(() => {
      this.#signingIn = undefined;
    });
    return this.#signingIn;
  }

  async #signInNow(challenge: Challenge, reason: TokenReason): Promise<void> {
    const { authorize, acquire } = this.#people;
    let isAsked = false;
    const ask = <Data, Answer>(question: (data: Data, signal: AbortSignal) => Promise<Answer>) => {
      return (data: Data, signal: AbortSignal): Promise<Answer> => {
        if (!isAsked) this.#events.emit("waiting", true);
        isAsked = true;
        return question(data, signal);
      };
    };
    const patience = AbortSignal.timeout(this.#people.timeout);
    const signal = AbortSignal.any([this.#over.signal, patience]);
    try {
      const given = acquire && (await acquireGrant(this.#target, challenge, reason, ask(acquire), signal));
      this.#given = given !== undefined;
      if (given === undefined && authorize === undefined) throw new HostError("ASK_UNANSWERED", "no user is available to sign in");
      this.#keeper.adopt(given ?? (await signIn(this.#target, challenge, ask(authorize!), signal)));
      this.#isUnproven = true;
      this.#needsAuth = false;
    } catch (error) {
      const why = patience.aborted ? `no user signed in within ${this.#people.timeout / 1000} seconds` : await explain(error);
      // Who has said no, or nothing, is not asked again by every request that follows; who was not there may come yet.
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
