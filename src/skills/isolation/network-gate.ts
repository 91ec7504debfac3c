import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeclaredHost } from "../../formats/skills/skill-permissions.ts";
import { addressRefused, checkedLookup } from "../../io/net/checked-lookup.ts";
import { canonicalHost, isPrivateAddress, isPrivateHost } from "../../io/net/host-address.ts";

/** Open connections of one child. */
const maxConnections = 256;
/** The child must take over a connection within this time. */
const takeOverMs = 10_000;

/**
 * The network of a child that has none: it asks for each connection, and the host makes those to declared hosts and hands them over through
 * a local socket. A name must not resolve to an address of a private network, unless it is declared as it is written and is private itself.
 */
export class NetworkGate {
  /** The folder of the sockets, which the child must be able to see. */
  readonly folder: string;
  readonly #hosts: readonly string[];
  readonly #open = new Set<Socket | Server>();
  #count = 0;

  constructor(hosts: readonly string[]) {
    this.#hosts = hosts;
    this.folder = mkdtempSync(join(tmpdir(), "skillhost-net-"));
    chmodSync(this.folder, 0o700);
  }

  /** Connects to a host, and settles with the path of a socket that one connection can be made to. Rejects with a reason for the child's code. */
  async connect(host: string, port: number): Promise<string> {
    const name = canonicalHost(host.includes(":") && !host.startsWith("[") ? `[${host}]` : host);
    if (!isDeclaredHost(this.#hosts, name)) throw new ConnectionRefused(undeclared(name));
    if (this.#open.size >= 2 * maxConnections) throw new ConnectionRefused(`More than ${maxConnections} connections are open.`);
    const outer = await this.#reach(name, port);
    return this.#handOver(outer);
  }

  #reach(name: string, port: number): Promise<Socket> {
    const mayBePrivate = isPrivateHost(name) && this.#hosts.includes(name);
    const isAllowed = (address: string): boolean => mayBePrivate || !isPrivateAddress(address);
    const bare = name.replace(/^\[|\]$/g, "");
    // A literal address is not resolved.
    if (isPrivateHost(name) && !mayBePrivate) return Promise.reject(addressRefused(name));
    return new Promise((resolve, reject) => {
      const outer = connect({ host: bare, port, lookup: checkedLookup(name, isAllowed), allowHalfOpen: true });
      this.#track(outer);
      outer.once("error", reject);
      outer.once("connect", () => {
        outer.off("error", reject);
        resolve(outer);
      });
    });
  }

  #handOver(outer: Socket): Promise<string> {
    const path = join(this.folder, `${++this.#count}`);
    const server = createServer({ allowHalfOpen: true });
    this.#track(server);
    const end = (): void => {
      clearTimeout(late);
      server.close();
      rmSync(path, { force: true });
    };
    const late = setTimeout(() => {
      end();
      outer.destroy();
    }, takeOverMs);
    outer.once("close", end);
    outer.on("error", () => outer.destroy());
    server.once("connection", (inner) => {
      end();
      this.#track(inner);
      splice(inner, outer);
    });
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, () => resolve(path));
    });
  }

  #track(each: Socket | Server): void {
    this.#open.add(each);
    each.once("close", () => this.#open.delete(each));
  }

  /** Ends all connections. */
  close(): void {
    for (const each of this.#open) {
      if ("destroy" in each) each.destroy();
      else each.close();
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A connection that is not made. */
class ConnectionRefused extends Error {
  override readonly name = "ConnectionRefused";
  readonly code = "EACCES";
}

function undeclared(host: string): string {
  const shown = host.slice(0, 200);
  return `The skill does not declare the host ${JSON.stringify(shown)}, so its code cannot connect to it. Add it to "hosts" of "permissions" in skill.json.`;
}

function splice(inner: Socket, outer: Socket): void {
  inner.on("error", () => outer.destroy());
  outer.on("error", () => inner.destroy());
  inner.on("close", () => outer.destroy());
  outer.on("close", () => inner.destroySoon());
  inner.pipe(outer);
  outer.pipe(inner);
}
