import type { FetchLike, OAuthTokens } from "@modelcontextprotocol/client";
import { explain } from "./auth-fetch.ts";
import {
  type Challenge,
  type ClientIdentity,
  configuredClient,
  fetchFor,
  type Grant,
  isSameIssuer,
  type OAuthTarget,
} from "./credentials.ts";
import { checkIssuer, discoverAuthorizationServer } from "./discover.ts";

export type Renewal =
  | { readonly kind: "renewed"; readonly grant: Grant }
  /** The refresh token is invalid for good. `isClientUnknown`: the server does not know this client either. */
  | { readonly kind: "rejected"; readonly why: string; readonly isClientUnknown: boolean }
  /** The server names another authorization server, which must not receive the refresh token. It stays stored. */
  | { readonly kind: "moved"; readonly why: string }
  /** Temporary: the refresh token may work later. */
  | { readonly kind: "unavailable"; readonly why: string };

/** Exchanges a refresh token, once. Failures are values. */
export async function renewGrant(target: OAuthTarget, grant: Grant, signal: AbortSignal): Promise<Renewal> {
  const { OAuthError, refreshAuthorization } = await import("@modelcontextprotocol/client");
  const fetch = fetchFor(target, signal);
  try {
    const server = await discoverAuthorizationServer(target, grant.resourceMetadataUrl, fetch);
    if (!isSameIssuer(server.issuer, grant.client.issuer)) {
      return { kind: "moved", why: `it now names ${server.issuer} as its authorization server` };
    }
    const tokens = await refreshAuthorization(server.url, {
      ...(server.metadata && { metadata: server.metadata }),
      clientInformation: configuredClient(target.spec, server.issuer) ?? grant.client,
      refreshToken: grant.refreshToken!,
      ...(server.resource !== undefined && { resource: server.resource }),
      fetchFn: fetch,
    });
    return { kind: "renewed", grant: toGrant(tokens, grant.client, grant) };
  } catch (error) {
    const why = await explain(error);
    const code = error instanceof OAuthError ? error.code : "";
    if (!finalCodes.has(code)) return { kind: "unavailable", why };
    return { kind: "rejected", why, isClientUnknown: code !== "invalid_grant" };
  }
}

/** Signs in as the client itself (`client_credentials`). Failures are values. */
export async function obtainOwnGrant(target: OAuthTarget, challenge: Challenge, signal: AbortSignal): Promise<Renewal> {
  const { ClientCredentialsProvider, computeScopeUnion, fetchToken } = await import("@modelcontextprotocol/client");
  const fetch = fetchFor(target, signal);
  try {
    const server = await discoverAuthorizationServer(target, challenge.resourceMetadataUrl, fetch);
    await checkIssuer(target, server.issuer);
    const { clientId = "", clientSecret = "", scopes } = target.spec;
    const scope = computeScopeUnion(scopes?.join(" "), challenge.scope);
    const provider = new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: server.issuer });
    const tokens = await fetchToken(provider, server.url, {
      ...(server.metadata && { metadata: server.metadata }),
      ...(server.resource !== undefined && { resource: server.resource }),
      ...(scope !== undefined && { scope }),
      fetchFn: fetch,
    });
    const request = { scope, resourceMetadataUrl: challenge.resourceMetadataUrl };
    return { kind: "renewed", grant: toGrant(tokens, { issuer: server.issuer, client_id: clientId }, request) };
  } catch (error) {
    return { kind: "unavailable", why: await explain(error) };
  }
}

/** The requested scope, which an answer need not repeat. */
interface GrantRequest {
  readonly scope: string | undefined;
  readonly resourceMetadataUrl: string | undefined;
}

export function toGrant(tokens: OAuthTokens, client: ClientIdentity, request: GrantRequest): Grant {
  const now = Date.now();
  return {
    client,
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token,
    scope: tokens.scope ?? request.scope,
    expiresAt: tokens.expires_in === undefined ? undefined : now + tokens.expires_in * 1000,
    obtainedAt: now,
    resourceMetadataUrl: request.resourceMetadataUrl,
  };
}

// Errors of RFC 6749 by which a token endpoint rejects a refresh token, or the client, for good.
const finalCodes: ReadonlySet<string> = new Set(["invalid_grant", "invalid_client", "unauthorized_client"]);

/** Revokes tokens (RFC 7009), if the authorization server supports it. A failure is only logged, since tokens expire. */
export async function revokeGrant(target: OAuthTarget, grant: Grant, signal: AbortSignal): Promise<void> {
  const fetch = fetchFor(target, signal);
  try {
    const { issuer, metadata } = await discoverAuthorizationServer(target, grant.resourceMetadataUrl, fetch);
    const endpoints: RevocationMetadata = metadata ?? {};
    if (endpoints.revocation_endpoint === undefined || !isSameIssuer(issuer, grant.client.issuer)) return;
    const status = await revoke(endpoints, configuredClient(target.spec, issuer) ?? grant.client, grant, fetch);
    if (status >= 300) target.log.info(`Tokens of MCP server "${target.server.name}" were not revoked (HTTP ${status}).`);
  } catch (error) {
    target.log.info(`Tokens of MCP server "${target.server.name}" were not revoked: ${await explain(error)}`);
  }
}

/** A field of OpenID's metadata as well, whether or not the SDK's schema has it. */
interface RevocationMetadata {
  readonly revocation_endpoint?: unknown;
  readonly revocation_endpoint_auth_methods_supported?: unknown;
  readonly token_endpoint_auth_methods_supported?: unknown;
}

async function revoke(metadata: RevocationMetadata, client: ClientIdentity, grant: Grant, fetch: FetchLike): Promise<number> {
  const { assertSecureTokenEndpoint, selectClientAuthMethod } = await import("@modelcontextprotocol/client");
  const methods = metadata.revocation_endpoint_auth_methods_supported ?? metadata.token_endpoint_auth_methods_supported;
  const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
  const body = new URLSearchParams({
    token: grant.refreshToken ?? grant.accessToken,
    token_type_hint: grant.refreshToken === undefined ? "access_token" : "refresh_token",
  });
  const { client_id: id, client_secret: secret = "" } = client;
  if (selectClientAuthMethod(client, textsOf(methods)) === "client_secret_basic") {
    headers.set("authorization", `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`);
  } else {
    body.set("client_id", id);
    if (secret !== "") body.set("client_secret", secret);
  }
  const response = await fetch(assertSecureTokenEndpoint(String(metadata.revocation_endpoint)), { method: "POST", headers, body });
  return response.status;
}

function textsOf(values: unknown): string[] {
  return Array.isArray(values) ? values.filter((value) => typeof value === "string") : [];
}
