import { HostError } from "../base/errors.ts";
import type { PackageSource } from "../trust/package-rules.ts";
import type { NpmOptions } from "./npm-options.ts";
import type { WantedPackage } from "./resolve-tree.ts";
import { repositoryLabel } from "./sources/git-source.ts";

/** Why a package must not be installed. Undefined: it may. */
export type SourceCheck = (source: PackageSource) => string | undefined;

/**
 * Checks all packages before any of them is fetched. Links to folders of this machine are not fetched.
 * @throws HostError `PACKAGE_NOT_ALLOWED` naming the first ones.
 */
export function assertAllowed(
  packages: readonly Pick<WantedPackage, "name" | "version" | "resolved" | "target">[],
  { npm, checkSource }: { readonly npm: NpmOptions; readonly checkSource: SourceCheck },
): void {
  const faults = packages.flatMap(({ name, version, resolved, target }) => {
    const address = target === undefined ? addressOf(name, resolved, npm) : undefined;
    const fault = target === undefined ? checkSource({ name, address }) : undefined;
    return fault === undefined ? [] : [`${name}@${version}: ${fault}`];
  });
  if (faults.length === 0) return;
  const more = faults.length > 3 ? ` ${faults.length - 3} more packages are not allowed.` : "";
  throw new HostError("PACKAGE_NOT_ALLOWED", `Nothing was installed. ${faults.slice(0, 3).join(" ")}${more}`);
}

/**
 * Checks the address of a Git repository or website, whose name is that without `https://`. `part`: the address of something that belongs to
 * it, such as a file or the target of a redirect.
 * @throws HostError `PACKAGE_NOT_ALLOWED`
 */
export function assertAddress(url: string, { checkSource }: { readonly checkSource: SourceCheck }, part: string = url): void {
  const name = repositoryLabel(url);
  const fault = checkSource({ name, address: part });
  if (fault !== undefined) throw new HostError("PACKAGE_NOT_ALLOWED", `Nothing was installed. ${name}: ${fault}`);
}

/** The address that a tarball is really fetched from: npm replaces the host of its own registry by the configured registry. */
function addressOf(name: string, resolved: string | undefined, npm: NpmOptions): string | undefined {
  const registry = registryOf(name, npm);
  if (resolved === undefined) return registry;
  if (!URL.canParse(resolved)) return undefined;
  const url = new URL(resolved);
  if (url.host !== "registry.npmjs.org") return url.href;
  return URL.canParse(registry) ? new URL(url.pathname, registry).href : undefined;
}

function registryOf(name: string, npm: NpmOptions): string {
  const scope = name.startsWith("@") ? npm[`${name.slice(0, name.indexOf("/"))}:registry`] : undefined;
  return typeof scope === "string" ? scope : npm.registry;
}
