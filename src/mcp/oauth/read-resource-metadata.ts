import { toError } from "../../base/errors.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { type Challenge, fetchFor, type OAuthTarget } from "./target.ts";

// The client that obtains the token can work without it, so a slow server is not waited for.
const patienceMs = 5_000;
const maxCharacters = 64 * 1024;

/** What a server publishes about itself as a protected resource (RFC 9728), as it wrote it. Undefined: nothing that can be read. */
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
      if (text.length <= maxCharacters && isPlainRecord(parse(text))) return text;
    } catch (error) {
      signal.throwIfAborted();
      target.log.debug(`The protected resource metadata of MCP server "${target.server.name}" cannot be read.`, { error: toError(error) });
    }
  }
  return undefined;
}

/** Below the path of the server first, as RFC 9728 has it for several resources of one origin. */
function wellKnownAddresses(serverUrl: string): readonly string[] {
  const { origin, pathname } = new URL(serverUrl);
  const root = `${origin}/.well-known/oauth-protected-resource`;
  return pathname === "/" ? [root] : [`${root}${pathname}`, root];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The same as none.
    return undefined;
  }
}
