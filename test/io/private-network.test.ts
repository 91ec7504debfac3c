import dns from "node:dns";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { boundedFetch, type FetchOutcome, type FetchRequest } from "../../src/io/net/bounded-fetch.ts";
import { isPrivateAddress, isPrivateHost } from "../../src/io/net/host-address.ts";
import { patience } from "../slowness.ts";

test.each([
  ...[
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
  ],
  ...[
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
  ],
])("%s is an address of a private network", (address) => {
  expect(isPrivateAddress(address)).toBe(true);
});

test.each(["93.184.216.34", "172.32.0.1", "192.169.0.1", "100.128.0.1", "2606:2800:220:1::1", "::ffff:93.184.216.34"])(
  "%s is a public address",
  (address) => {
    expect(isPrivateAddress(address)).toBe(false);
  },
);

test.each([
  ["localhost", true],
  ["a.localhost", true],
  ["intranet", true],
  ["printer.local", true],
  ["metadata.google.internal", true],
  ["[::1]", true],
  ["example.com", false],
  ["localhost.example.com", false],
])("%s is a host of a private network: %s", (host, expected) => {
  expect(isPrivateHost(host)).toBe(expected);
});

/** Each lookup returns the next of these addresses, and further lookups the last one. */
function resolveTo(...addresses: readonly string[]): void {
  const { lookup } = dns;
  let at = 0;
  dns.lookup = ((_name: string, options: { all?: boolean }, done: (error: null, ...found: unknown[]) => void) => {
    const address = addresses[Math.min(at++, addresses.length - 1)]!;
    process.nextTick(() => (options.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4)));
  }) as unknown as typeof lookup;
  syncBuiltinESMExports();
  onTestFinished(() => {
    dns.lookup = lookup;
    syncBuiltinESMExports();
  });
}

async function serve(): Promise<{ port: number; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.headers.host ?? "");
    response.writeHead(200, { "content-encoding": "gzip", "content-type": "text/plain" }).end(gzipSync("SECRET"));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, requests };
}

describe("fetching from a public host", () => {
  const fetchFrom = (url: string, more: Partial<FetchRequest> = {}): Promise<FetchOutcome> =>
    boundedFetch({
      url,
      method: "GET",
      signal: AbortSignal.timeout(patience(10_000)),
      maxBytes: 1_000,
      guardsPrivateNetworks: true,
      ...more,
    });

  test("a fetch does not connect to a private network for a public name", async () => {
    const { port, requests } = await serve();
    resolveTo("127.0.0.1");
    expect(await fetchFrom(`http://public.example:${port}/`)).toMatchObject({ kind: "failed", reason: "address-refused" });
    expect(requests).toEqual([]);
    // An address under its own name is allowed.
    expect(await fetchFrom(`http://localhost:${port}/`)).toMatchObject({ kind: "response", text: "SECRET" });
    expect(await fetchFrom(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: "response", text: "SECRET" });
  });

  test("a fetch resolves a name once, so that the checked address is the connected one", async () => {
    const { port, requests } = await serve();
    // The connection uses the checked address: a second lookup would bypass the check or connect to another address.
    resolveTo("93.184.216.34", "127.0.0.1");
    const seen: string[] = [];
    const outcome = await fetchFrom(`http://public.example:${port}/`, {
      signal: AbortSignal.timeout(500),
      allowAddress: (address) => seen.push(address) > 0,
    });
    expect(outcome.kind).toBe("failed");
    expect(seen).toEqual(["93.184.216.34"]);
    expect(requests).toEqual([]);
  });

  test("a fetch checks the address of a redirect and literal addresses", async () => {
    const { port } = await serve();
    const refuse = { allowAddress: () => false };
    expect(await fetchFrom(`http://127.0.0.1:${port}/`, refuse)).toMatchObject({ kind: "failed", reason: "address-refused" });
    const server = createServer((_, response) => response.writeHead(302, { location: `http://public.example:${port}/` }).end()).listen(
      0,
      "127.0.0.1",
    );
    await new Promise((resolve) => server.once("listening", resolve));
    onTestFinished(() => void server.close());
    resolveTo("127.0.0.1");
    const start = `http://localhost:${(server.address() as AddressInfo).port}/`;
    expect(await fetchFrom(start, { allowHost: () => true })).toMatchObject({ kind: "failed", reason: "address-refused" });
  });
});
