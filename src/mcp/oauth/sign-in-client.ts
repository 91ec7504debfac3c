import { randomBytes } from "node:crypto";
import type { OAuthClientMetadata, OAuthClientProvider, OAuthDiscoveryState } from "@modelcontextprotocol/client";
import type { ClientIdentity } from "./credentials.ts";
import type { AuthorizationServer } from "./discover.ts";
import { configuredClient, type OAuthTarget } from "./target.ts";

export interface SignInSetup {
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
export class SignInClient implements OAuthClientProvider {
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
