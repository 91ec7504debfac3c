import { createHash, createPublicKey, type KeyObject } from "node:crypto";
import { errorMessage, HostError } from "../base/errors.ts";

/** A public key that signatures can be held against. */
export interface PublicKey {
  /** 32 hex digits: the first half of the sha256 of the key. */
  readonly id: string;
  /** What its owner calls it; nothing depends on it. */
  readonly name: string;
  /** The 32 bytes of the key, base64. */
  readonly bytes: string;
}

const line = /^ed25519 ([A-Za-z0-9+/]{43}=)(?: ([^\r\n]{0,200}))?$/;
// What stands before the 32 bytes in the usual encoding of an Ed25519 key (RFC 8410).
const prefix: Buffer = Buffer.from("302a300506032b6570032100", "hex");

/** A key as one line: `ed25519 <base64> <name>`. */
export function formatKey({ bytes, name }: PublicKey): string {
  return `ed25519 ${bytes} ${name}`.trimEnd();
}

/**
 * Reads a public key: a line as `formatKey` makes it, or PEM.
 * @throws HostError `KEY_INVALID`.
 */
export function parseKey(text: string): PublicKey {
  const trimmed = text.trim();
  if (trimmed.startsWith("-----BEGIN PUBLIC KEY-----")) return fromPem(trimmed);
  const [, bytes, name = ""] = line.exec(trimmed) ?? [];
  if (bytes === undefined || Buffer.from(bytes, "base64").toString("base64") !== bytes) throw invalid();
  return toPublicKey(Buffer.from(bytes, "base64"), name.trim());
}

/** The keys in a text of one a line; empty lines and those that begin with # do not count. @throws HostError `KEY_INVALID`. */
export function parseKeys(text: string): readonly PublicKey[] {
  if (text.trimStart().startsWith("-----BEGIN")) return [parseKey(text)];
  const lines = text.split(/\r?\n/).map((each) => each.trim());
  return lines.filter((each) => each !== "" && !each.startsWith("#")).map(parseKey);
}

function toPublicKey(bytes: Buffer, name: string): PublicKey {
  return Object.freeze({ id: keyIdOf(bytes), name, bytes: bytes.toString("base64") });
}

/** The key of a `KeyObject`. @throws HostError `KEY_INVALID` when it is no Ed25519 key. */
export function publicKeyOf(key: KeyObject, name: string): PublicKey {
  if (key.asymmetricKeyType !== "ed25519") throw invalid();
  const spki = (key.type === "private" ? createPublicKey(key.export({ type: "pkcs8", format: "pem" })) : key).export({
    type: "spki",
    format: "der",
  });
  return toPublicKey(spki.subarray(prefix.length), name);
}

/** What Node.js verifies with. */
export function toKeyObject({ bytes }: PublicKey): KeyObject {
  return createPublicKey({ key: Buffer.concat([prefix, Buffer.from(bytes, "base64")]), format: "der", type: "spki" });
}

export function isKeyId(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{32}$/.test(value);
}

function keyIdOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}

function fromPem(text: string): PublicKey {
  try {
    return publicKeyOf(createPublicKey(text), "");
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw new HostError("KEY_INVALID", `This is not a public key: ${errorMessage(error)}. Give one as "skillhost keys export" prints it.`);
  }
}

function invalid(): HostError {
  return new HostError(
    "KEY_INVALID",
    'This is not an Ed25519 public key. Give one as "skillhost keys export" prints it: ed25519 <base64> <name>.',
  );
}
