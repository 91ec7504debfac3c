import { createHash, createPublicKey, type KeyObject } from "node:crypto";
import { errorMessage, HostError } from "../base/errors.ts";

/** The trusted keys. */
export interface TrustedKeys {
  readonly all: readonly PublicKey[];
  /** The trusted key with an id. */
  find(id: string): PublicKey | undefined;
  /** The reason and time of a revocation; undefined: not revoked. */
  revoked(id: string): string | undefined;
  /** Whether the project accepts this key: it names the key, or names none. */
  isExpected(id: string): boolean;
  /** The key with an id that the project names. */
  expected(id: string): PublicKey | undefined;
}

export interface Revocation {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly reason?: string | undefined;
}

interface TrustedKeysParts {
  readonly keys: readonly PublicKey[];
  readonly revoked: readonly Revocation[];
  /** The only keys accepted for the skills of a project; undefined: all trusted keys. */
  readonly onlyKeys?: readonly PublicKey[] | undefined;
}

export function createTrustedKeys({ keys, revoked, onlyKeys }: TrustedKeysParts): TrustedKeys {
  const byId = new Map(keys.map((key) => [key.id, key]));
  const revocations = new Map(revoked.map((each) => [each.id, each]));
  const expected = onlyKeys === undefined ? undefined : new Map(onlyKeys.map((key) => [key.id, key]));
  return {
    all: [...byId.values()].filter(({ id }) => !revocations.has(id)),
    find: (id) => byId.get(id),
    revoked(id) {
      const found = revocations.get(id);
      return found && `on ${found.at.slice(0, 10)}${found.reason === undefined ? "" : ` (${found.reason})`}`;
    },
    isExpected: (id) => expected?.has(id) ?? true,
    expected: (id) => expected?.get(id),
  };
}

/** Keys from options. @throws HostError `KEY_INVALID` naming the option. */
export function parseKeyList(texts: readonly string[], place: string): readonly PublicKey[] {
  return texts.map((text, index) => {
    try {
      return parseKey(text);
    } catch (error) {
      throw error instanceof HostError ? new HostError(error.code, `${place}[${index}]: ${error.message}`) : error;
    }
  });
}

/** A public key for verifying signatures. */
export interface PublicKey {
  /** 32 hex digits: the first half of the sha256 of the key. */
  readonly id: string;
  /** A descriptive name without effect. */
  readonly name: string;
  /** The 32 bytes of the key, base64. */
  readonly bytes: string;
}

const line = /^ed25519 ([A-Za-z0-9+/]{43}=)(?: ([^\r\n]{0,200}))?$/;
// The prefix of the 32 bytes in the DER encoding of an Ed25519 key (RFC 8410).
const prefix: Buffer = Buffer.from("302a300506032b6570032100", "hex");

/** A key as one line: `ed25519 <base64> <name>`. */
export function formatKey({ bytes, name }: PublicKey): string {
  return `ed25519 ${bytes} ${name}`.trimEnd();
}

/**
 * Reads a public key: a line in the format of `formatKey`, or PEM.
 * @throws HostError `KEY_INVALID`.
 */
export function parseKey(text: string): PublicKey {
  const trimmed = text.trim();
  if (trimmed.startsWith("-----BEGIN PUBLIC KEY-----")) {
    try {
      return publicKeyOf(createPublicKey(trimmed), "");
    } catch (error) {
      if (error instanceof HostError) throw error;
      throw new HostError("KEY_INVALID", `Not a public key: ${errorMessage(error)}. Use one as "skillhost keys export" prints it.`);
    }
  }
  const [, bytes, name = ""] = line.exec(trimmed) ?? [];
  if (bytes === undefined || Buffer.from(bytes, "base64").toString("base64") !== bytes) throw invalid();
  return toPublicKey(Buffer.from(bytes, "base64"), name.trim());
}

/** The keys of a text, one per line; empty lines and lines that begin with # are ignored. @throws HostError `KEY_INVALID`. */
export function parseKeys(text: string): readonly PublicKey[] {
  if (text.trimStart().startsWith("-----BEGIN")) return [parseKey(text)];
  const lines = text.split(/\r?\n/).map((each) => each.trim());
  return lines.filter((each) => each !== "" && !each.startsWith("#")).map(parseKey);
}

function toPublicKey(bytes: Buffer, name: string): PublicKey {
  return Object.freeze({ id: keyIdOf(bytes), name, bytes: bytes.toString("base64") });
}

/** The key of a `KeyObject`. @throws HostError `KEY_INVALID` for a key that is not Ed25519. */
export function publicKeyOf(key: KeyObject, name: string): PublicKey {
  if (key.asymmetricKeyType !== "ed25519") throw invalid();
  const spki = (key.type === "private" ? createPublicKey(key.export({ type: "pkcs8", format: "pem" })) : key).export({
    type: "spki",
    format: "der",
  });
  return toPublicKey(spki.subarray(prefix.length), name);
}

/** The `KeyObject` for verification in Node.js. */
export function toKeyObject({ bytes }: PublicKey): KeyObject {
  return createPublicKey({ key: Buffer.concat([prefix, Buffer.from(bytes, "base64")]), format: "der", type: "spki" });
}

export function isKeyId(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{32}$/.test(value);
}

function keyIdOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}

function invalid(): HostError {
  return new HostError("KEY_INVALID", 'Not an Ed25519 public key. Use one as "skillhost keys export" prints it: ed25519 <base64> <name>.');
}
