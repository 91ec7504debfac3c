import { canonicalHost } from "../../io/net/pinned-fetch.ts";

/** Whether a host is this machine, by any of its names. */
export function isThisMachine(host: string): boolean {
  return (
    host === "localhost" || host.endsWith(".localhost") || host === "0.0.0.0" || host === "[::]" || host === "[::1]" || /^127\./.test(host)
  );
}

/**
 * The hosts that a word of a command line may name, in any notation: `host`, `host:80`, `user@host:path`, `//host/x`,
 * `http:host`, addresses in decimal, octal or hexadecimal, encoded ones. More may be given than the word names.
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
