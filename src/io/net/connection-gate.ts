import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { isIP, type Socket } from "node:net";

interface ConnectionLimits {
  /** Connections that are open at the same time. */
  readonly maxConnections: number;
  /** Milliseconds until a connection that was not admitted is closed. */
  readonly admissionMs: number;
}

/** Turns of the event loop: enough for what a client sent at once to be read and answered. */
const graceTurns = 5;

/**
 * Counts the connections of a listener. A connection is pending until its client has shown that it may call. Where there
 * are too many connections, pending ones make room, and those of the address that has most of them come first: nobody
 * can keep others out by connections that say nothing.
 */
export class ConnectionGate {
  readonly #limits: ConnectionLimits;
  readonly #admitted = new Set<Socket>();
  /** By address; each in the order in which they came. */
  readonly #pending = new Map<string, Map<Socket, NodeJS.Timeout>>();
  #pendingCount = 0;
  #isTrimming = false;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Takes a new connection in as a pending one. False: admitted ones have used all room, and it was closed. */
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

  /** The client of a connection has shown that it may call. */
  admit(socket: Socket): void {
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

  /** Not at once: of many connections that came in one turn, each is read from before any has to go. */
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

/** What one peer has addresses of: an address of IPv4, or a network of IPv6 (/64). */
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

/** A token that nobody guesses. */
export function createConnectionToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Gives a comparison with one token. Its time tells nothing about how much of a wrong token was right. */
export function createTokenCheck(expected: string): (given: string) => boolean {
  const known = digest(expected);
  // Digests have one length, whatever the length of the text.
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
