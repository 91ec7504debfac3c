import { matchesWildcard } from "../../base/text.ts";
import { canonicalHost } from "../../io/net/host-address.ts";

/** Why a text cannot be a pattern here; undefined: it can. What only looks like a pattern must not pass for a name. */
export function globFault(pattern: string): string | undefined {
  if (pattern.includes("\0")) return "it contains a NUL character";
  if (/[{}[\]]/.test(pattern)) return "braces and brackets are not supported: write one rule for each, or ? for a bracket in a name";
  return pattern.startsWith("!") ? "it begins with an exclamation mark: write a rule of the opposite kind instead" : undefined;
}

/** What a url rule names: a host, and perhaps scheme, port and path. */
export interface UrlPattern {
  /** `https:`; undefined: http and https. */
  readonly protocol: string | undefined;
  /** May begin with `*.`, which stands for any names before it. */
  readonly host: string;
  /** Undefined: the scheme's own. */
  readonly port: string | undefined;
  /** Undefined: all of the host. */
  readonly path: string | undefined;
}

/** Reads `example.com`, `*.example.com`, `localhost:8080`, `https://example.com/docs/*`. Undefined: it is something else. */
export function readUrlPattern(text: string): UrlPattern | undefined {
  const [, scheme, authority = "", path] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?([^/?#@\s]+)(\/\S*)?$/i.exec(text) ?? [];
  const isWide = authority.startsWith("*.");
  const url = readUrl(`${scheme ?? "http"}://${isWide ? authority.slice(2) : authority}/`);
  if (authority.endsWith(":") || url === undefined || url.hostname === "" || url.hostname.includes("*")) return undefined;
  const [, port] = /:(\d+)$/.exec(authority) ?? [];
  return {
    protocol: scheme === undefined ? undefined : url.protocol,
    host: (isWide ? "*." : "") + hostOf(url),
    port: port === undefined ? undefined : String(Number(port)),
    path: path === undefined || path === "/" ? undefined : path,
  };
}

export function readUrl(value: unknown): URL | undefined {
  return typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
}

/** A name and password in an address are never allowed along with it. */
export function allowsUrl(pattern: UrlPattern, url: URL): boolean {
  if (url.username !== "" || url.password !== "") return false;
  // Servers differ on whether an encoded slash or dot separates: what is ambiguous is not allowed.
  if (pattern.path !== undefined && /%(2e|2f|5c|00)/i.test(url.pathname)) return false;
  const { protocol = url.protocol, port } = pattern;
  const isPort = port === undefined ? url.port === "" : port === portOf(url);
  return isWeb(url) && protocol === url.protocol && isPort && isHostOf(pattern, url) && isPathOf(pattern, url.pathname + url.search);
}

/** Neither port nor query get anything past a rule that does not name them, and `*.host` is the host itself as well. */
export function forbidsUrl(pattern: UrlPattern, url: URL): boolean {
  const { protocol = url.protocol, port = portOf(url) } = pattern;
  const isHost = forbidsHost(pattern, hostOf(url));
  const isPath = isPathOf(pattern, url.pathname) || isPathOf(pattern, url.pathname + url.search);
  return protocol === url.protocol && port === portOf(url) && isHost && isPath;
}

/** Whether a word of a command line names the host of a pattern. An address is held against the whole pattern. */
export function forbidsWord(pattern: UrlPattern, word: string): boolean {
  const url = /^https?:\/\//i.test(word) ? readUrl(word) : undefined;
  if (url !== undefined && url.username === "" && url.password === "" && !/[{}[\]\\]/.test(word)) return forbidsUrl(pattern, url);
  return hostsIn(word).some((host) => forbidsHost(pattern, host));
}

function forbidsHost({ host: wanted }: UrlPattern, host: string): boolean {
  if (isThisMachine(wanted) && isThisMachine(host)) return true;
  return wanted === `*.${host}` || (wanted.startsWith("*.") ? host.endsWith(wanted.slice(1)) : host === wanted);
}

export function hostOf({ hostname }: URL): string {
  return canonicalHost(hostname);
}

function isWeb({ protocol }: URL): boolean {
  return protocol === "http:" || protocol === "https:";
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === "https:" ? "443" : "80");
}

function isHostOf({ host }: UrlPattern, url: URL): boolean {
  return host.startsWith("*.") ? hostOf(url).endsWith(host.slice(1)) : hostOf(url) === host;
}

function isPathOf({ path }: UrlPattern, given: string): boolean {
  return path === undefined || matchesWildcard(path, given);
}

/** Whether a host is this machine, by any of its names. */
function isThisMachine(host: string): boolean {
  return (
    host === "localhost" || host.endsWith(".localhost") || host === "0.0.0.0" || host === "[::]" || host === "[::1]" || /^127\./.test(host)
  );
}

/**
 * The hosts that a word of a command line may name, in any notation: `host`, `host:80`, `user@host:path`, `//host/x`,
 * `http:host`, addresses in decimal, octal or hexadecimal, encoded ones. More may be given than the word names.
 * @internal Exported for tests.
 */
export function hostsIn(word: string): readonly string[] {
  const hosts = new Set<string>();
  for (const text of spellingsOf(word.slice(0, maxWord))) {
    for (const [address] of text.matchAll(/\[?[\da-f]*:[\da-f:.]+\]?/gi)) addHost(`[${address.replace(/^\[|\]$/g, "")}]`, hosts);
    for (const [token] of text.matchAll(/[\p{L}\p{M}\p{N}\p{Cf}._。．｡-]+/gu)) addHost(token, hosts);
  }
  return [...hosts];
}

const maxWord = 10_000;

function spellingsOf(word: string): readonly string[] {
  try {
    const decoded = decodeURIComponent(word);
    return decoded === word ? [word] : [word, decoded];
  } catch {
    // A percent sign that encodes nothing.
    return [word, word.replace(/%[\da-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))];
  }
}

function addHost(token: string, hosts: Set<string>): void {
  const name = token.replace(/^[.-]+/, "");
  if (name === "" || name.length > 300) return;
  const address = `http://${name}/`;
  if (URL.canParse(address)) hosts.add(canonicalHost(new URL(address).hostname));
}
