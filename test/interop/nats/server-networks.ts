import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";

/** Whether this process may make network namespaces, or the reason why not. */
export function namespacesReason(): string {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "network namespaces need Linux and the superuser";
  const probe = `sh-${process.pid}`;
  try {
    accessSync("/usr/sbin/ip", constants.X_OK);
    ip("netns", "add", probe);
    ip("netns", "del", probe);
    ip("link", "add", probe, "type", "bridge");
    ip("link", "del", probe);
    return "";
  } catch {
    return "this machine cannot make network namespaces and bridges with ip (Debian: apt-get install iproute2)";
  }
}

function ip(...args: readonly string[]): void {
  execFileSync("/usr/sbin/ip", args, { stdio: "pipe" });
}

/**
 * Servers of which each has a network of its own, with two cables: one to the other servers, and one to this process. So those of a cluster can be parted
 * while clients reach all of them.
 */
export class ServerNetworks implements Disposable {
  readonly #id: string = (process.pid % 100_000).toString(36);
  readonly #count: number;
  /** Of 10.x.1.0 (between servers) and 10.x.2.0 (to this process). */
  readonly #net: number = 100 + (process.pid % 100);

  private constructor(count: number) {
    this.#count = count;
  }

  static make(count: number): ServerNetworks {
    const networks = new ServerNetworks(count);
    try {
      networks.#make();
      return networks;
    } catch (error) {
      networks[Symbol.dispose]();
      throw error;
    }
  }

  namespace(at: number): string {
    return `sh${this.#id}n${at}`;
  }

  /** Where this process reaches a server. */
  host(at: number): string {
    return `10.${this.#net}.2.${at + 1}`;
  }

  /** Where the other servers reach it. */
  peerHost(at: number): string {
    return `10.${this.#net}.1.${at + 1}`;
  }

  /** Parts a server from the others, or joins it again. What is sent meanwhile is lost; no connection is closed. */
  part(at: number, isParted: boolean): void {
    ip("link", "set", this.#cable("p", at), isParted ? "down" : "up");
  }

  [Symbol.dispose](): void {
    const remove = (...args: readonly string[]): void => {
      try {
        ip(...args);
      } catch {
        // It was not made.
      }
    };
    for (let at = 0; at < this.#count; at++) {
      for (const kind of ["p", "c"] as const) remove("link", "del", this.#cable(kind, at));
      remove("netns", "del", this.namespace(at));
    }
    for (const kind of ["p", "c"] as const) remove("link", "del", this.#bridge(kind));
  }

  #make(): void {
    for (const kind of ["p", "c"] as const) {
      ip("link", "add", this.#bridge(kind), "type", "bridge");
      ip("link", "set", this.#bridge(kind), "up");
    }
    ip("addr", "add", `10.${this.#net}.2.254/24`, "dev", this.#bridge("c"));
    for (let at = 0; at < this.#count; at++) {
      ip("netns", "add", this.namespace(at));
      ip("-n", this.namespace(at), "link", "set", "lo", "up");
      this.#plug("p", at, this.peerHost(at));
      this.#plug("c", at, this.host(at));
    }
  }

  #plug(kind: "p" | "c", at: number, address: string): void {
    const [outside, inside] = [this.#cable(kind, at), `${kind}0`];
    ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", this.namespace(at));
    ip("link", "set", outside, "master", this.#bridge(kind), "up");
    ip("-n", this.namespace(at), "addr", "add", `${address}/24`, "dev", inside);
    ip("-n", this.namespace(at), "link", "set", inside, "up");
  }

  #cable(kind: "p" | "c", at: number): string {
    return `sh${this.#id}${kind}${at}`;
  }

  #bridge(kind: "p" | "c"): string {
    return `sh${this.#id}${kind}`;
  }
}
