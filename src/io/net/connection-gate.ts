import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { isIP, type Socket } from "node:net";

interface ConnectionLimits {
  /** The maximum of open connections. */
  readonly maxConnections: number;
  /** Milliseconds until a connection that was not admitted is closed. */
  readonly admissionMs: number;
}

/** Turns of the event loop: enough to read and answer what a client sent immediately. */
const graceTurns = 5;

/**
 * Counts the connections of a listener. A connection is pending until its client has authenticated. When there are too many
 * connections, pending ones are closed, first those of the address that has most, so that silent connections cannot keep other
 * clients out.
 */
export class ConnectionGate {
  readonly #limits: ConnectionLimits;
  readonly #admitted = new Set<Socket>();
  /** By address, each in order of arrival. */
  readonly #pending = new Map<string, Map<Socket, NodeJS.Timeout>>();
  #pendingCount = 0;
  #isTrimming = false;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Adds a new connection as pending. Returns false when admitted connections fill the limit; the new one was closed then. */
  add(socket: Socket): boolean {
    if (this.#admitted.size >= this.#limits.maxConnections) {
      socket.destroy();
      return false;
    }
    const address = networkOf(socket.remoteAddress ?? "");
    const late = setTimeout(() => socket.destroy(), this.#limits.admissionMs);
    late.unref();
    const ofAddress = this.#pending.get(address) ?? new Map<Socket, NodeJS.Timeout>();
    this.#pending.set(address, ofAddress.set(socket, late));
    this.#pendingCount++;
    socket.once("close", () => {
      this.#admitted.delete(socket);
      this.#removePending(socket, address);
    });
    this.#trimSoon();
    return true;
  }

  /** Marks a connection as admitted: its client has authenticated. */
  admit(socket: Socket): void {
    if (this.#admitted.has(socket)) return;
    if (this.#removePending(socket, networkOf(socket.remoteAddress ?? ""))) this.#admitted.add(socket);
  }

  #removePending(socket: Socket, address: string): boolean {
    const ofAddress = this.#pending.get(address);
    const late = ofAddress?.get(socket);
    if (ofAddress === undefined || late === undefined) return false;
    clearTimeout(late);
    ofAddress.delete(socket);
    this.#pendingCount--;
    if (ofAddress.size === 0) this.#pending.delete(address);
    return true;
  }

  /** Delayed: of many connections that arrive in one turn, each is read from before any is closed. */
  #trimSoon(): void {
    if (this.#isTrimming || this.#excess <= 0) return;
    this.#isTrimming = true;
    afterTurns(graceTurns, () => {
      this.#isTrimming = false;
      while (this.#excess > 0 && this.#pendingCount > 0) this.#closeOldest();
    });
  }

  get #excess(): number {
    return this.#admitted.size + this.#pendingCount - this.#limits.maxConnections;
  }

  #closeOldest(): void {
    let [address, most] = ["", new Map<Socket, NodeJS.Timeout>()];
    for (const [other, sockets] of this.#pending) if (sockets.size > most.size) [address, most] = [other, sockets];
    const [oldest] = most.keys();
    if (oldest === undefined) return;
    this.#removePending(oldest, address);
    oldest.destroy();
  }
}

/** The unit that one peer controls: an IPv4 address, or an IPv6 network (/64). */
function networkOf(address: string): string {
  const ipv4 = /(?:^|:)(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [head = "", tail] = address.split("%", 1)[0]!.split("::");
  const [first, last] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array.from({ length: Math.max(0, 8 - first!.length - last!.length) }, () => "0");
  return [...first!, ...zeros, ...last!].slice(0, 4).join(":");
}

function afterTurns(turns: number, run: () => void): void {
  if (turns === 0) run();
  else setImmediate(afterTurns, turns - 1, run);
}

/** A random token that cannot be guessed. */
export function createConnectionToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Returns a constant-time comparison with a token. */
export function createTokenCheck(expected: string): (given: string) => boolean {
  const known = digest(expected);
  // timingSafeEqual requires equal lengths, which digests have.
  return (given) => timingSafeEqual(digest(given), known);
}

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || (isIP(bare) === 4 && bare.startsWith("127."));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
