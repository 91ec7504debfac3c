import type { AuthorizationServerMetadata, FetchLike, OAuthProtectedResourceMetadata } from "@modelcontextprotocol/client";
import { HostError, toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { type Challenge, fetchFor, isSameIssuer, type OAuthTarget } from "./credentials.ts";

/** The authorization server that an MCP server names. */
export interface AuthorizationServer {
  readonly issuer: string;
  readonly url: string;
  /** Undefined: it has none, so its endpoints have the default names of the first revision of MCP. */
  readonly metadata: AuthorizationServerMetadata | undefined;
  readonly resourceMetadata: OAuthProtectedResourceMetadata | undefined;
  /** The resource that tokens are requested for (RFC 8707), as the server spells it. */
  readonly resource: string | undefined;
}

/**
 * Finds the authorization server of a server. Never cached, since a server may change it at any time. Rejects when the
 * metadata belongs to another issuer or describes another resource.
 */
export async function discoverAuthorizationServer(
  target: OAuthTarget,
  resourceMetadataUrl: string | undefined,
  fetch: FetchLike,
): Promise<AuthorizationServer> {
  const { discoverOAuthServerInfo, checkResourceAllowed, resourceUrlFromServerUrl } = await import("@modelcontextprotocol/client");
  const found = await discoverOAuthServerInfo(target.server.url, {
    fetchFn: fetch,
    ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl: new URL(resourceMetadataUrl) }),
  });
  const { authorizationServerUrl: url, authorizationServerMetadata: metadata, resourceMetadata } = found;
  const requestedResource = resourceUrlFromServerUrl(target.server.url);
  const chosen = chosenResource(target);
  // A configured resource is used as it is; a resource that the server names must be the server itself.
  const isChosen = resourceMetadata !== undefined && new URL(resourceMetadata.resource).href === chosen;
  if (resourceMetadata && !isChosen && !checkResourceAllowed({ requestedResource, configuredResource: resourceMetadata.resource })) {
    throw new HostError(
      "OAUTH_RESOURCE",
      `its metadata describes ${resourceMetadata.resource}, so no token is requested for ${requestedResource.href}`,
    );
  }
  return { issuer: metadata?.issuer ?? url, url, metadata, resourceMetadata, resource: chosen ?? resourceMetadata?.resource };
}

/** @throws HostError `OAUTH_RESOURCE` */
function chosenResource({ spec: { resource } }: OAuthTarget): string | undefined {
  if (resource === undefined || URL.canParse(resource)) return resource && new URL(resource).href;
  throw new HostError("OAUTH_RESOURCE", "oauth.resource is not a URL");
}

/**
 * Restricts a configured client to its authorization server, so that a server which names another one does not receive the
 * secret.
 * @throws HostError `OAUTH_ISSUER`
 */
export async function checkIssuer(target: OAuthTarget, issuer: string): Promise<void> {
  const { clientId, clientSecret, issuer: expected } = target.spec;
  if (clientId === undefined) return;
  if (expected !== undefined) {
    if (isSameIssuer(expected, issuer)) return;
    throw new HostError("OAUTH_ISSUER", `it names ${issuer} as its authorization server, but oauth.issuer allows only ${expected}`);
  }
  if (clientSecret === undefined) return;
  const kept = await target.store.list(target.server);
  const before = kept.find(({ grant, registration }) => (grant?.client ?? registration)?.client_id === clientId)?.issuer;
  if (before === undefined || isSameIssuer(before, issuer)) return;
  throw new HostError(
    "OAUTH_ISSUER",
    `it names ${issuer} as its authorization server, but oauth.clientSecret was used at ${before} before. If the change is right, set oauth.issuer`,
  );
}

// The client that obtains the token can work without it, so the wait is short.
const patienceMs = 5_000;
const maxCharacters = 64 * 1024;

/** The protected resource metadata of a server (RFC 9728), as it wrote it. Undefined: absent or unreadable. */
export async function readResourceMetadata(
  target: OAuthTarget,
  { resourceMetadataUrl }: Challenge,
  signal: AbortSignal,
): Promise<string | undefined> {
  const fetch = fetchFor(target, AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]));
  for (const address of resourceMetadataUrl === undefined ? wellKnownAddresses(target.server.url) : [resourceMetadataUrl]) {
    try {
      const response = await fetch(address, { headers: { accept: "application/json" } });
      const text = response.ok ? await response.text() : "";
      if (text.length <= maxCharacters && isRecord(parse(text))) return text;
    } catch (error) {
      signal.throwIfAborted();
      target.log.debug(`The protected resource metadata of MCP server "${target.server.name}" cannot be read.`, { error: toError(error) });
    }
  }
  return undefined;
}

/** Below the path of the server first, as RFC 9728 requires for several resources of one origin. */
function wellKnownAddresses(serverUrl: string): readonly string[] {
  const { origin, pathname } = new URL(serverUrl);
  const root = `${origin}/.well-known/oauth-protected-resource`;
  return pathname === "/" ? [root] : [`${root}${pathname}`, root];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: counts as absent.
    return undefined;
  }
}
