import { HostError } from "../base/errors.ts";
import { packageVersion } from "../base/package-root.ts";
import type { NpmOptions } from "./npm-options.ts";
import type { PackedPackage } from "./pack.ts";

export interface PublishRequest {
  readonly access?: "public" | "restricted" | undefined;
  /** The distribution tag. Default: latest. */
  readonly tag?: string | undefined;
  /** Creates a provenance attestation of the build service. */
  readonly provenance?: boolean | undefined;
}

/**
 * Publishes a packed package to the registry that npm's configuration determines, with the token for it.
 * @throws HostError `PUBLISH_PRIVATE`, `PUBLISH_EXISTS`, `PUBLISH_DENIED`; npm's own errors.
 */
export async function publishPackage(packed: PackedPackage, { access, tag, provenance }: PublishRequest, npm: NpmOptions): Promise<void> {
  if (packed.manifest["private"] === true) {
    throw new HostError("PUBLISH_PRIVATE", 'Its package.json says "private": true. Remove that to publish it.');
  }
  const { publish } = await import("libnpmpublish");
  const { publishConfig } = packed.manifest as { publishConfig?: Record<string, unknown> };
  const options = {
    ...npm,
    npmVersion: `skillhost/${packageVersion}`,
    ...(publishConfig && fromManifest(publishConfig)),
    ...(access !== undefined && { access }),
    ...(tag !== undefined && { defaultTag: tag }),
    ...(provenance !== undefined && { provenance }),
  };
  try {
    await publish(packed.manifest as unknown as Parameters<typeof publish>[0], packed.tarball, options as Parameters<typeof publish>[2]);
  } catch (error) {
    throw explain(error, packed, registryOf(packed, options));
  }
}

/** The registry for a package of this name. */
export function registryOf({ name, manifest }: Pick<PackedPackage, "name" | "manifest">, npm: Readonly<Record<string, unknown>>): string {
  const [scope] = name.startsWith("@") ? name.split("/") : [];
  const ofScope = scope === undefined ? undefined : npm[`${scope}:registry`];
  const named = (manifest["publishConfig"] as { registry?: unknown } | undefined)?.registry;
  return String(named ?? ofScope ?? npm["registry"]);
}

/** Only publishing options: package.json is the package's own file. */
function fromManifest({ registry, access, tag }: Record<string, unknown>): Record<string, unknown> {
  return {
    ...(typeof registry === "string" && { registry }),
    ...(typeof access === "string" && { access }),
    ...(typeof tag === "string" && { defaultTag: tag }),
  };
}

function explain(error: unknown, { name, version }: PackedPackage, registry: string): unknown {
  const code = String((error as { code?: unknown }).code ?? "");
  const options = { cause: error };
  if (code === "E401" || code === "ENEEDAUTH" || code === "E403") {
    const isThere = /previously published|cannot modify|already (?:exists|present)/i.test((error as Error).message);
    if (isThere)
      return new HostError("PUBLISH_EXISTS", `${name}@${version} is already published. Increase "version" in package.json.`, options);
    return new HostError(
      "PUBLISH_DENIED",
      `${registry} does not let you publish ${name}: ${(error as Error).message}. Sign in with "npm login", or check the token in your .npmrc.`,
      options,
    );
  }
  if (code === "E409" || code === "EPUBLISHCONFLICT") {
    return new HostError("PUBLISH_EXISTS", `${name}@${version} is already published. Increase "version" in package.json.`, options);
  }
  return error;
}
