import type { FetchLike } from "@modelcontextprotocol/client";
import { explain } from "./auth-errors.ts";
import { type ClientIdentity, type Grant, isSameIssuer } from "./credentials.ts";
import { discoverAuthorizationServer } from "./discover.ts";
import { configuredClient, fetchFor, type OAuthTarget } from "./target.ts";

/** Takes tokens back (RFC 7009), where the authorization server has a way to. That it fails is logged: they end by themselves. */
export async function revokeGrant(target: OAuthTarget, grant: Grant, signal: AbortSignal): Promise<void> {
  const fetch = fetchFor(target, signal);
  try {
    const { issuer, metadata } = await discoverAuthorizationServer(target, grant.resourceMetadataUrl, fetch);
    const endpoints: RevocationMetadata = metadata ?? {};
    if (endpoints.revocation_endpoint === undefined || !isSameIssuer(issuer, grant.client.issuer)) return;
    const status = await revoke(endpoints, configuredClient(target.spec, issuer) ?? grant.client, grant, fetch);
    if (status >= 300) target.log.info(`Tokens of MCP server "${target.server.name}" were not taken back (HTTP ${status}).`);
  } catch (error) {
    target.log.info(`Tokens of MCP server "${target.server.name}" were not taken back: ${await explain(error)}`);
  }
}

/** What OpenID's metadata have, too, whether or not their schema knows it. */
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
