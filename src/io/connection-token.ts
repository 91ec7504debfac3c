import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";

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
