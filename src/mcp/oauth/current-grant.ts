import { errorMessage, HostError } from "../../base/errors.ts";
import type { Asks } from "../../tools/tool.ts";
import {
  type Challenge,
  type CredentialEntry,
  type Credentials,
  type Grant,
  isOurs,
  type OAuthTarget,
  withoutGrant,
} from "./credentials.ts";
import { readResourceMetadata } from "./discover.ts";
import { obtainOwnGrant, type Renewal, renewGrant } from "./token-requests.ts";

/** The grant that requests are sent with. Concurrent renewals are one. */
export class CurrentGrant {
  /** Whether the server has accepted the present token. */
  isAccepted = false;
  readonly #target: OAuthTarget;
  readonly #signal: AbortSignal;
  #grant: Grant | undefined;
  #loading: Promise<void> | undefined;
  #renewing: Promise<Renewal> | undefined;
  /** After renewing ahead of time failed, it is not tried again until then. */
  #notBefore = 0;

  constructor(target: OAuthTarget, signal: AbortSignal) {
    this.#target = target;
    this.#signal = signal;
  }

  get grant(): Grant | undefined {
    return this.#grant;
  }

  /** The client signs in as itself when necessary: nothing is stored, and no user is asked. */
  get isOwn(): boolean {
    return this.#target.spec.grantType === "client_credentials";
  }

  adopt(grant: Grant | undefined): void {
    if (grant?.accessToken !== this.#grant?.accessToken) this.isAccepted = false;
    this.#grant = grant;
  }

  /** Loads what is stored, once. */
  load(): Promise<void> {
    this.#loading ??= this.reload();
    return this.#loading;
  }

  /** Loads what is stored now: another process may have signed in, or renewed. */
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

  /** Renews a grant that expires soon. If that fails, the server will refuse the token. */
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
      // The store is locked for too long, or cannot be written to.
      return { kind: "unavailable", why: errorMessage(error) };
    }
  }

  /** Exclusively: servers that issue a new refresh token with every use take the reuse of an old one for theft, and revoke both. */
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

  /** A grant that cannot be stored is still used by this process. */
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
/** A token is renewed this long before it expires, so that it does not expire in transit; short-lived ones after nine tenths. */
const aheadMs = 60_000;

const signedOut: Renewal = { kind: "rejected", why: "the user signed out", isClientUnknown: false };

function endsSoon({ expiresAt, obtainedAt }: Grant): boolean {
  return expiresAt !== undefined && Date.now() > expiresAt - Math.min(aheadMs, (expiresAt - obtainedAt) / 10);
}

/** Asks the client for a token. Undefined: no client provides one. Rejects when the signal fires. */
export type AcquireToken = (data: Asks["accessToken"]["data"], signal: AbortSignal) => Promise<Asks["accessToken"]["answer"] | undefined>;

/** Why a token is requested: there is none yet, the server refuses the present one, or it requires more scope. */
export type TokenReason = Asks["accessToken"]["data"]["reason"];

/** Asks the clients that obtain tokens for one. Undefined: no client provides one. Rejects when they refuse. */
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
  // A client that cannot renew a token may still let the user sign in again.
  if (answer?.kind === "cancelled" && reason === "refresh") answer = await acquire({ ...wanted, reason: "reauth" }, signal);
  if (answer === undefined) return undefined;
  if (answer.kind !== "token") throw new HostError("OAUTH_CANCELLED", "the client did not return a token");
  const now = Date.now();
  return {
    // It cannot be renewed here, so it does not matter which client it was issued to.
    client: { issuer: server.url, client_id: "" },
    accessToken: answer.accessToken,
    refreshToken: undefined,
    scope,
    expiresAt: answer.expiresIn === undefined ? undefined : now + answer.expiresIn * 1000,
    obtainedAt: now,
    resourceMetadataUrl,
  };
}
