import { BlockList, isIPv4, isIPv6 } from "node:net";

/** A host name resolves to an address that is not allowed. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/** The canonical form of a host for rules: lower case, no trailing dot, and an embedded IPv4 address as IPv4. */
export function canonicalHost(hostname: string): string {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  const inner = /^\[(.*)\]$/.exec(host)?.[1];
  const embedded = inner === undefined ? undefined : embeddedIPv4(inner);
  return embedded ?? host;
}

/** IPv4-mapped, IPv4-compatible, and by the well-known prefix of NAT64 (RFC 4291, 6052). URLs have them in eight groups at most. */
function embeddedIPv4(address: string): string | undefined {
  const [, high, low] = /^(?:::ffff:|::|64:ff9b::)([\da-f]{1,4}):([\da-f]{1,4})$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return undefined;
  const bits = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return bits.flatMap((each) => [each >> 8, each & 0xff]).join(".");
}

const networks4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const;
const networks6 = [
  ["::", 127],
  ["64:ff9b:1::", 48],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const;

let known: BlockList | undefined;

function privateNetworks(): BlockList {
  if (known !== undefined) return known;
  known = new BlockList();
  for (const [network, prefix] of networks4) known.addSubnet(network, prefix, "ipv4");
  for (const [network, prefix] of networks6) known.addSubnet(network, prefix, "ipv6");
  return known;
}

/** Whether an IP address is not public: private networks, this machine, link-local, multicast (RFC 6890). */
export function isPrivateAddress(address: string): boolean {
  const host = canonicalHost(
    address.includes(":") && !address.startsWith("[") ? new URL(`http://[${address.replace(/%.*$/, "")}]/`).hostname : address,
  );
  if (isIPv4(host)) return privateNetworks().check(host, "ipv4");
  const inner = host.replace(/^\[|\]$/g, "");
  if (!isIPv6(inner)) return false;
  const [, tunnel] = /^2002:([\da-f:]+?)::?/.exec(`${inner}:`) ?? [];
  if (tunnel !== undefined) return true;
  return privateNetworks().check(inner, "ipv6");
}

/** Whether a host, by its name or as an address, belongs to a private network or is this machine. */
export function isPrivateHost(hostname: string): boolean {
  const host = canonicalHost(hostname);
  if (isIPv4(host) || host.startsWith("[")) return isPrivateAddress(host);
  // A name without a dot belongs to the local network.
  return !host.includes(".") || /\.(?:localhost|local|internal|intranet|lan|home|corp|home\.arpa)$/.test(host);
}
