import { randomBytes, timingSafeEqual } from "node:crypto";
import type { OAuthClientMetadata, OAuthClientProvider, OAuthDiscoveryState } from "@modelcontextprotocol/client";
import { HostError } from "../../base/errors.ts";
import { type LoopbackCallback, openLoopbackCallback } from "../../io/net/loopback-callback.ts";
import type { Asks } from "../../tools/tool.ts";
import { mayContact } from "./auth-fetch.ts";
import {
  type Challenge,
  type ClientIdentity,
  type Credentials,
  configuredClient,
  fetchFor,
  type Grant,
  type OAuthTarget,
} from "./credentials.ts";
import { type AuthorizationServer, checkIssuer, discoverAuthorizationServer } from "./discover.ts";
import { toGrant } from "./token-requests.ts";

/**
 * Lets the user sign in, and stores the tokens. The client registers itself only if the server does not know it. Rejects
 * with the reason, phrased as part of a sentence.
 */
export async function signIn(target: OAuthTarget, challenge: Challenge, authorize: Authorize, signal: AbortSignal): Promise<Grant> {
  const authorizationServer = await discoverAuthorizationServer(target, challenge.resourceMetadataUrl, fetchFor(target, signal));
  await checkIssuer(target, authorizationServer.issuer);
  const attempt: Attempt = { target, challenge, authorize, authorizationServer };
  const known = await knownRegistration(attempt);
  if (known === undefined) return signInAs(attempt, undefined, signal);
  try {
    return await signInAs(attempt, known, signal);
  } catch (error) {
    if (!(await isClientForgotten(error))) throw error;
    target.log.info(`The authorization server of MCP server "${target.server.name}" no longer knows this client; registering again.`);
    return signInAs(attempt, undefined, signal);
  }
}

interface Attempt {
  readonly target: OAuthTarget;
  readonly challenge: Challenge;
  readonly authorize: Authorize;
  readonly authorizationServer: AuthorizationServer;
}

async function signInAs(attempt: Attempt, known: ClientIdentity | undefined, signal: AbortSignal): Promise<Grant> {
  const callback = await openCallback(attempt.target, known);
  try {
    return await signInAt(callback, attempt, known, signal);
  } finally {
    await callback[Symbol.asyncDispose]();
  }
}

async function signInAt(
  callback: LoopbackCallback,
  attempt: Attempt,
  known: ClientIdentity | undefined,
  signal: AbortSignal,
): Promise<Grant> {
  const client = new SignInClient({
    target: attempt.target,
    authorizationServer: attempt.authorizationServer,
    redirectUrl: callback.url,
    // Only another port was free: for the server that is another client.
    registration: known?.redirect_uris?.includes(callback.url) ? known : undefined,
    keepRegistration: (registration) => change(attempt, signal, (kept) => ({ ...kept, registration })),
  });
  await prepare(attempt, client, signal);
  const address = checkAddress(client.address, attempt.target);
  const request = { serverName: attempt.target.server.name, url: address.href, state: client.state(), callback };
  const params = await awaitCallback(request, attempt.authorize, signal);
  const grant = await redeem(attempt, client, params, signal);
  await change(attempt, signal, (kept) => ({ ...kept, grant }));
  return grant;
}

/** Everything up to the address for the user's browser, by the SDK. */
async function prepare({ target, challenge, authorizationServer }: Attempt, client: SignInClient, signal: AbortSignal): Promise<void> {
  const { auth, computeScopeUnion } = await import("@modelcontextprotocol/client");
  const scope = computeScopeUnion(target.spec.scopes?.join(" "), challenge.scope);
  await auth(client, {
    serverUrl: target.server.url,
    ...(scope !== undefined && { scope }),
    ...(challenge.resourceMetadataUrl !== undefined &&
      authorizationServer.resourceMetadata && { resourceMetadataUrl: new URL(challenge.resourceMetadataUrl) }),
    fetchFn: fetchFor(target, signal),
  });
}

/** Exchanges the code for tokens. The issuer of the answer is checked first (RFC 9207). */
async function redeem(
  { authorizationServer, challenge, target }: Attempt,
  client: SignInClient,
  params: URLSearchParams,
  signal: AbortSignal,
) {
  const { OAuthError, exchangeAuthorization, validateAuthorizationResponseIssuer } = await import("@modelcontextprotocol/client");
  const { issuer, metadata, resource, url } = authorizationServer;
  const iss = params.get("iss") ?? undefined;
  validateAuthorizationResponseIssuer({
    iss,
    expectedIssuer: metadata?.issuer,
    issParameterSupported: metadata?.authorization_response_iss_parameter_supported === true,
  });
  const refusal = params.get("error");
  if (refusal !== null) throw new OAuthError(refusal, params.get("error_description") ?? refusal);
  const code = params.get("code");
  if (code === null) throw new HostError("OAUTH_CALLBACK", "the authorization server returned neither a code nor an error");
  const identity = client.client!;
  const tokens = await exchangeAuthorization(url, {
    ...(metadata && { metadata }),
    clientInformation: identity,
    authorizationCode: code,
    ...(iss !== undefined && { iss }),
    codeVerifier: client.codeVerifier(),
    redirectUri: client.redirectUrl,
    ...(resource !== undefined && { resource }),
    fetchFn: fetchFor(target, signal),
  });
  const scope = client.address?.searchParams.get("scope") ?? undefined;
  const keeper = target.spec.clientId === undefined ? identity : { issuer, client_id: identity.client_id };
  return toGrant(tokens, keeper, { scope, resourceMetadataUrl: challenge.resourceMetadataUrl });
}

/** This client's registration, unless it has expired or another kind of identity is configured. */
async function knownRegistration({ target, authorizationServer }: Attempt): Promise<ClientIdentity | undefined> {
  const { spec, store, server } = target;
  const takesAddress = authorizationServer.metadata?.client_id_metadata_document_supported === true;
  if (spec.clientId !== undefined || (spec.clientMetadataUrl !== undefined && takesAddress)) return undefined;
  const registration = (await store.list(server)).find(({ issuer }) => issuer === authorizationServer.issuer)?.registration;
  const ends = registration?.client_secret_expires_at ?? 0;
  return ends !== 0 && ends * 1000 < Date.now() ? undefined : registration;
}

async function openCallback({ spec }: OAuthTarget, known: ClientIdentity | undefined): Promise<LoopbackCallback> {
  const options = { path: "/callback", thanks: "Signed in. You can close this window." };
  // For clients registered by hand, instructions say "localhost"; otherwise the loopback address is safer (RFC 8252).
  const hostname = spec.clientId === undefined ? "127.0.0.1" : "localhost";
  if (spec.callbackPort !== undefined) return await openConfigured({ ...options, hostname, port: spec.callbackPort });
  const before = known?.redirect_uris?.[0];
  try {
    return await openLoopbackCallback({ ...options, hostname, port: before === undefined ? 0 : Number(new URL(before).port) });
  } catch {
    // The port is in use: any other will do, at the price of another registration.
    return await openLoopbackCallback({ ...options, hostname });
  }
}

async function openConfigured(options: Parameters<typeof openLoopbackCallback>[0]): Promise<LoopbackCallback> {
  try {
    return await openLoopbackCallback(options);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    throw new HostError("OAUTH_PORT", `cannot listen on port ${options.port} of oauth.callbackPort (${code})`, { cause: error });
  }
}

function checkAddress(address: URL | undefined, { server }: OAuthTarget): URL {
  if (address !== undefined && mayContact(address, new URL(server.url))) return address;
  throw new HostError(
    "OAUTH_ADDRESS",
    `the sign-in page ${address?.origin} is not opened: it must use https, and must not be on this machine or in a private network`,
  );
}

function change({ target, authorizationServer }: Attempt, signal: AbortSignal, next: (kept: Credentials) => Credentials): Promise<void> {
  const { issuer } = authorizationServer;
  return target.store.exclusively(target.server, issuer, signal, (entry) => entry.save(next(entry.current ?? { issuer })));
}

async function isClientForgotten(error: unknown): Promise<boolean> {
  const { OAuthError } = await import("@modelcontextprotocol/client");
  return error instanceof OAuthError && (error.code === "invalid_client" || error.code === "unauthorized_client");
}

/**
 * Lets the user sign in at an address. The result is the address that the browser came back to; it is not needed when the
 * browser runs on this machine, where a listener receives it: then the signal fires, and the request can be withdrawn.
 * Rejecting means that no user signs in.
 */
export type Authorize = (data: Asks["authorization"]["data"], signal: AbortSignal) => Promise<Asks["authorization"]["answer"]>;

/**
 * Waits until the user has signed in, and returns the parameters of the answer. The first answer counts, from the listener
 * or from `authorize`.
 */
async function awaitCallback(
  request: { readonly serverName: string; readonly url: string; readonly state: string; readonly callback: LoopbackCallback },
  authorize: Authorize,
  signal: AbortSignal,
): Promise<URLSearchParams> {
  const { serverName, url, state, callback } = request;
  const over = new AbortController();
  const waiting = AbortSignal.any([signal, over.signal]);
  const byBrowser = callback.received((address) => hasState(address.searchParams, state), waiting);
  const byAnswer = authorize({ serverName, url, redirectUrl: callback.url }, waiting).then((answer) =>
    checkAnswer(answer, callback.url, state),
  );
  // The signal cancels the other one, whose rejection does not matter.
  for (const loser of [byBrowser, byAnswer]) loser.catch(() => {});
  try {
    return (await Promise.race([byBrowser, byAnswer])).searchParams;
  } finally {
    over.abort(new HostError("OAUTH_ANSWERED", "The sign-in has ended."));
  }
}

function checkAnswer(answer: unknown, redirectUrl: string, state: string): URL {
  const text = (answer as { callbackUrl?: unknown } | undefined)?.callbackUrl;
  const address = typeof text === "string" && URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  const expected = new URL(redirectUrl);
  if (address?.origin !== expected.origin || address.pathname !== expected.pathname) {
    throw new HostError("OAUTH_CALLBACK", `the answer is not a URL that begins with ${redirectUrl}`);
  }
  if (!hasState(address.searchParams, state))
    throw new HostError("OAUTH_CALLBACK", "the answer belongs to another sign-in (its state differs)");
  return address;
}

function hasState(params: URLSearchParams, state: string): boolean {
  const [given, ...more] = params.getAll("state").map((text) => Buffer.from(text));
  const expected = Buffer.from(state);
  return given !== undefined && more.length === 0 && given.length === expected.length && timingSafeEqual(given, expected);
}

interface SignInSetup {
  readonly target: OAuthTarget;
  readonly authorizationServer: AuthorizationServer;
  readonly redirectUrl: string;
  /** From an earlier sign-in, if it may be reused. */
  readonly registration: ClientIdentity | undefined;
  keepRegistration(registration: ClientIdentity): Promise<void>;
}

/**
 * One sign-in, as the SDK needs it: this client's identity, and where to store the result. It has no tokens, so the SDK
 * neither renews nor deletes any; that is decided elsewhere.
 */
class SignInClient implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly clientMetadata: OAuthClientMetadata;
  readonly clientMetadataUrl?: string;
  readonly validateResourceURL?: () => Promise<URL>;
  readonly #setup: SignInSetup;
  readonly #state = randomBytes(32).toString("base64url");
  #client: ClientIdentity | undefined;
  #verifier = "";
  #address: URL | undefined;

  constructor(setup: SignInSetup) {
    const { target, redirectUrl, authorizationServer } = setup;
    this.#setup = setup;
    this.redirectUrl = redirectUrl;
    this.clientMetadata = describeClient(setup);
    if (target.spec.clientMetadataUrl !== undefined) this.clientMetadataUrl = target.spec.clientMetadataUrl;
    if (target.spec.resource !== undefined) this.validateResourceURL = async () => new URL(authorizationServer.resource!);
  }

  /** Where the user signs in; undefined until the SDK has determined it. */
  get address(): URL | undefined {
    return this.#address;
  }

  get client(): ClientIdentity | undefined {
    return this.#client;
  }

  state(): string {
    return this.#state;
  }

  /** Known already, so that the SDK does not discover it again. */
  discoveryState(): OAuthDiscoveryState {
    const { url, metadata, resourceMetadata } = this.#setup.authorizationServer;
    return {
      authorizationServerUrl: url,
      ...(metadata && { authorizationServerMetadata: metadata }),
      ...(resourceMetadata && { resourceMetadata }),
    };
  }

  clientInformation(): ClientIdentity | undefined {
    const { target, authorizationServer, registration } = this.#setup;
    this.#client ??= configuredClient(target.spec, authorizationServer.issuer) ?? registration;
    return this.#client;
  }

  async saveClientInformation(client: ClientIdentity): Promise<void> {
    const { redirectUrl, keepRegistration } = this.#setup;
    this.#client = { ...client, redirect_uris: [redirectUrl] };
    // A client id that is a URL is not a registration; it comes from the configuration.
    if (client.client_id !== this.clientMetadataUrl) await keepRegistration(this.#client);
  }

  tokens(): undefined {}

  saveTokens(): void {}

  redirectToAuthorization(address: URL): void {
    this.#address = address;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

function describeClient({ target, authorizationServer, redirectUrl }: SignInSetup): OAuthClientMetadata {
  const method = authMethodFor(authorizationServer);
  return {
    client_name: "skillhost",
    redirect_uris: [redirectUrl],
    // Also allows the SDK to request offline access.
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    ...(method !== undefined && { token_endpoint_auth_method: method }),
    ...(target.spec.scopes && { scope: target.spec.scopes.join(" ") }),
  };
}

/** A program on a user's machine cannot keep a secret, so it has none where the server allows that. Undefined: unknown. */
function authMethodFor({ metadata }: AuthorizationServer): string | undefined {
  const supported = metadata?.token_endpoint_auth_methods_supported;
  return ["none", "client_secret_basic", "client_secret_post"].find((method) => supported?.includes(method));
}
