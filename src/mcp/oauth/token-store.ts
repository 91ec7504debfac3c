import { errorMessage, HostError } from "../../base/errors.ts";
import type { Asks } from "../../tools/tool.ts";
import type { CredentialEntry, Credentials, Grant } from "./credentials.ts";
import { readResourceMetadata } from "./discover.ts";
import { obtainOwnGrant, type Renewal, renewGrant } from "./exchange-tokens.ts";
import { type Challenge, isOurs, type OAuthTarget, withoutGrant } from "./target.ts";

/** The grant that requests go out with, and how it is renewed. Many requests at a time are one renewal. */
export class TokenStore {
  /** Whether the server has taken the present token. */
  isAccepted = false;
  readonly #target: OAuthTarget;
  readonly #signal: AbortSignal;
  #grant: Grant | undefined;
  #loading: Promise<void> | undefined;
  #renewing: Promise<Renewal> | undefined;
  /** Until when renewing ahead of time is not tried again, after it could not be done. */
  #notBefore = 0;

  constructor(target: OAuthTarget, signal: AbortSignal) {
    this.#target = target;
    this.#signal = signal;
  }

  get grant(): Grant | undefined {
    return this.#grant;
  }

  /** The client signs in as itself, whenever it needs to: nothing is stored, and nobody asked. */
  get isOwn(): boolean {
    return this.#target.spec.grantType === "client_credentials";
  }

  adopt(grant: Grant | undefined): void {
    if (grant?.accessToken !== this.#grant?.accessToken) this.isAccepted = false;
    this.#grant = grant;
  }

  /** What is stored, the first time that it is asked for. */
  load(): Promise<void> {
    this.#loading ??= this.reload();
    return this.#loading;
  }

  /** What is stored by now: another process may have signed in, or renewed. */
  async reload(): Promise<void> {
    if (this.isOwn) return;
    const { store, server, spec, log } = this.#target;
    try {
      const kept = await store.list(server);
      const found = kept.find(({ grant }) => grant !== undefined && isOurs(grant, spec))?.grant;
      if (found !== undefined) this.adopt(found);
    } catch (error) {
      log.warning(errorMessage(error));
    }
  }

  /** Renews a grant that is about to end. That it cannot be done is found out by the server's refusal. */
  async renewAhead(challenge: Challenge): Promise<void> {
    if (this.#grant === undefined || !endsSoon(this.#grant) || Date.now() < this.#notBefore) return;
    if (!this.isOwn && this.#grant.refreshToken === undefined) return;
    const renewal = await this.renew(challenge);
    if (renewal.kind !== "renewed")
      this.#target.log.info(`Tokens of MCP server "${this.#target.server.name}" were not renewed: ${renewal.why}`);
  }

  renew(challenge: Challenge): Promise<Renewal> {
    this.#renewing ??= this.#renewNow(challenge).finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewNow(challenge: Challenge): Promise<Renewal> {
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(patienceMs)]);
    try {
      const renewal = this.isOwn ? await obtainOwnGrant(this.#target, challenge, signal) : await this.#exchange(signal);
      if (renewal.kind === "renewed") this.adopt(renewal.grant);
      if (renewal.kind === "rejected") this.adopt(undefined);
      if (renewal.kind === "unavailable") this.#notBefore = Date.now() + retryAheadMs;
      return renewal;
    } catch (error) {
      // The store: locked by somebody who does not come to an end, or not to be written to.
      return { kind: "unavailable", why: errorMessage(error) };
    }
  }

  /**
   * While nobody else does: servers that give out a new refresh token with every use take the use of an old one for a
   * theft, and then nobody has any.
   */
  async #exchange(signal: AbortSignal): Promise<Renewal> {
    const mine = this.#grant!;
    const { store, server, spec } = this.#target;
    return store.exclusively(server, mine.client.issuer, signal, async (entry) => {
      const kept = entry.current?.grant;
      if (kept === undefined || !isOurs(kept, spec)) return signedOut;
      if (kept.accessToken !== mine.accessToken) return { kind: "renewed", grant: kept };
      const renewal = await renewGrant(this.#target, kept, signal);
      if (renewal.kind === "renewed") await this.#keep(entry, { ...entry.current!, grant: renewal.grant });
      if (renewal.kind === "rejected") await this.#keep(entry, withoutGrant(entry.current!, renewal.isClientUnknown, spec));
      return renewal;
    });
  }

  /** What cannot be stored still serves as long as this process runs. */
  async #keep(entry: CredentialEntry, next: Credentials | undefined): Promise<void> {
    try {
      await entry.save(next);
    } catch (error) {
      this.#target.log.error(errorMessage(error));
    }
  }
}

const patienceMs = 60_000;
const retryAheadMs = 30_000;
/** A token is renewed this long before it ends, so that it does not end on its way; short-lived ones at nine tenths. */
const aheadMs = 60_000;

const signedOut: Renewal = { kind: "rejected", why: "the user signed out", isClientUnknown: false };

function endsSoon({ expiresAt, obtainedAt }: Grant): boolean {
  return expiresAt !== undefined && Date.now() > expiresAt - Math.min(aheadMs, (expiresAt - obtainedAt) / 10);
}

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
  if (answer.kind !== "token") throw new HostError("OAUTH_CANCELLED", "the client did not return a token");
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
