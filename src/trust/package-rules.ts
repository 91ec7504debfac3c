import { mustBe, readTexts } from "../base/read-fields.ts";
import { matchesWildcard } from "../base/text.ts";

/** Where packages may come from, and which. A rule that is absent allows everything; an empty list of what is allowed allows nothing. */
export interface PackageRules {
  /** The beginnings of addresses: `https://npm.acme.com/`, `https://github.com/acme/`. */
  readonly registries?: readonly string[] | undefined;
  /** The packages that may be installed, with their dependencies: names and patterns such as `@acme/*`. */
  readonly packages?: readonly string[] | undefined;
  /** Packages that must not be installed, whatever else allows them. */
  readonly deniedPackages?: readonly string[] | undefined;
}

/** A package or a Git repository, and the address that it is fetched from. */
export interface PackageSource {
  readonly name: string;
  /** Undefined: the address is unknown, which no list of registries allows. `file:` is a tarball of this machine. */
  readonly address: string | undefined;
}

/** Why these rules do not allow a package. Undefined: they do. */
export function sourceFault({ name, address }: PackageSource, rules: PackageRules): string | undefined {
  const { registries, packages, deniedPackages = [] } = rules;
  const denied = deniedPackages.find((pattern) => matchesName(pattern, name));
  if (denied !== undefined) return `"deniedPackages" contains ${JSON.stringify(denied)}.`;
  if (packages !== undefined && !packages.some((pattern) => matchesName(pattern, name)))
    return `"packages" does not contain it. Allowed: ${listed(packages)}.`;
  if (registries === undefined) return undefined;
  const from = address === undefined ? undefined : parseAddress(address);
  if (from !== undefined && registries.some((registry) => isBelow(from, parseAddress(registry)))) return undefined;
  const where = from === undefined ? "The address that it comes from is unknown" : `It comes from ${shown(from)}`;
  return `${where}, and "registries" does not contain that. Allowed: ${listed(registries)}.`;
}

function matchesName(pattern: string, name: string): boolean {
  return matchesWildcard(pattern.toLowerCase(), name.toLowerCase());
}

function listed(allowed: readonly string[]): string {
  return allowed.length === 0 ? "nothing" : allowed.slice(0, 10).join(", ");
}

/** Without credentials and query, which an address may contain. */
function shown({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`.slice(0, 300);
}

function isBelow(address: URL, allowed: URL | undefined): boolean {
  if (allowed === undefined || address.protocol !== allowed.protocol || address.host !== allowed.host) return false;
  const prefix = allowed.pathname.endsWith("/") ? allowed.pathname : `${allowed.pathname}/`;
  // Servers may decode what the comparison does not.
  if (/%2e|%2f|%5c/i.test(address.pathname.replace(/\/@[^/]*%2f/i, "/"))) return false;
  return `${address.pathname}/`.startsWith(prefix);
}

/** Git's short form of SSH addresses, `git@host:path`, is a URL without a protocol. */
function parseAddress(text: string): URL | undefined {
  const short = /^([\w.-]+@)?([a-z0-9][\w.-]*):(?!\/\/)(.+)$/i.exec(text);
  const isShort = short?.[1] !== undefined && !text.includes("://");
  const url = isShort ? `ssh://${short![2]}/${short![3]}` : text;
  return URL.canParse(url) ? new URL(url) : undefined;
}

export function readRegistries(value: unknown, path: string): readonly string[] {
  const texts = readTexts(value, path);
  for (const [index, text] of texts.entries()) {
    const url = parseAddress(text);
    if (url === undefined || !["https:", "http:", "ssh:"].includes(url.protocol) || url.host === "")
      mustBe(`${path}[${index}]`, 'an address that begins with https:// or ssh://, such as "https://npm.acme.com/"');
    if (url !== undefined && (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== ""))
      mustBe(`${path}[${index}]`, "an address without credentials, query and fragment");
  }
  return texts;
}

const legal = /^[@a-z0-9*?_~][\w@./*?~-]{0,213}$/i;

export function readPackagePatterns(value: unknown, path: string): readonly string[] {
  const texts = readTexts(value, path);
  for (const [index, text] of texts.entries())
    if (!legal.test(text)) mustBe(`${path}[${index}]`, 'the name of a package or a pattern, such as "@acme/*"');
  return texts;
}
