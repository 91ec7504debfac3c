import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  scryptSync,
} from "node:crypto";
import { lstatSync, readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { readTextFile } from "../io/read-bounded.ts";
import type { SigningKey } from "./skill-signature.ts";
import { formatKey, type PublicKey, parseKey, publicKeyOf } from "./trusted-keys.ts";

/** A private key of the user: the public fields of its file. */
export interface StoredKey extends PublicKey {
  readonly file: string;
  /** ISO 8601. */
  readonly created: string;
  /** Whether it requires a passphrase. */
  readonly isLocked: boolean;
  /** Whether other users of this machine can read the file. */
  readonly isOpenToOthers: boolean;
}

export function keysFolderIn(directory: string): string {
  return join(directory, "keys");
}

/** Creates a key pair and stores it in a folder, readable only by its owner; encrypted if a passphrase is given. */
export async function createPrivateKeyFile(folder: string, name: string, passphrase: string | undefined): Promise<StoredKey> {
  const { privateKey } = generateKeyPairSync("ed25519");
  const key = publicKeyOf(privateKey, name);
  const file = join(folder, `${key.id}.json`);
  const secret = privateKey.export({ type: "pkcs8", format: "der" });
  const created = new Date().toISOString();
  const kept = passphrase === undefined ? { private: secret.toString("base64") } : { locked: lock(secret, passphrase) };
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFileAtomic(file, `${JSON.stringify({ format, public: formatKey(key), created, ...kept }, undefined, 2)}\n`, { mode: 0o600 });
  return { ...key, file, created, isLocked: passphrase !== undefined, isOpenToOthers: false };
}

/** The private keys in a folder, oldest first. Other files are skipped. */
export function listPrivateKeys(folder: string): readonly StoredKey[] {
  const names = namesIn(folder).filter((name) => /^[0-9a-f]{32}\.json$/.test(name));
  const keys = names.flatMap((name) => readStored(join(folder, name))?.key ?? []);
  return keys.sort((a, b) => (a.created < b.created ? -1 : 1));
}

/** Opens a private key. @throws HostError `KEY_PASSPHRASE` when the passphrase is missing or wrong; `KEY_INVALID`. */
export function openPrivateKey({ file }: StoredKey, passphrase: string | undefined): SigningKey {
  const stored = readStored(file);
  if (stored === undefined) throw new HostError("KEY_INVALID", `${file} is not a private key. Create another with "skillhost keys new".`);
  const { key, value } = stored;
  const privateKey = toPrivateKey(isRecord(value["locked"]) ? unlock(value["locked"], passphrase) : String(value["private"]), file);
  const { id, name, bytes } = key;
  // The private key may not belong to the public one of the file.
  if (publicKeyOf(privateKey, name).id !== id)
    throw new HostError("KEY_INVALID", `${file} contains a private key, but not the one of ${id}.`);
  return { publicKey: { id, name, bytes }, privateKey };
}

const format = "skillhost-key/1";
const maxBytes = 16 * 1024;
// About a tenth of a second and 64 MiB per guess.
const cost = { N: 65_536, r: 8, p: 1, maxmem: 128 * 1024 * 1024 };
const cipher = "aes-256-gcm";

function lock(secret: Buffer, passphrase: string): Readonly<Record<string, unknown>> {
  const salt = randomBytes(16);
  const iv = randomBytes(12);
  const encrypt = createCipheriv(cipher, scryptSync(passphrase.normalize("NFKC"), salt, 32, cost), iv);
  const data = Buffer.concat([encrypt.update(secret), encrypt.final()]);
  const text = (bytes: Buffer): string => bytes.toString("base64");
  return {
    kdf: "scrypt",
    N: cost.N,
    r: cost.r,
    p: cost.p,
    cipher,
    salt: text(salt),
    iv: text(iv),
    tag: text(encrypt.getAuthTag()),
    data: text(data),
  };
}

/** Only the parameters of `lock` are accepted: a file cannot request weaker ones, or excessive memory. */
function unlock(locked: Readonly<Record<string, unknown>>, passphrase: string | undefined): string {
  if (passphrase === undefined)
    throw new HostError("KEY_PASSPHRASE", "This key requires its passphrase. Enter it on the terminal, or set SKILLHOST_KEY_PASSPHRASE.");
  const bytes = (field: string): Buffer => Buffer.from(String(locked[field]), "base64");
  try {
    const decrypt = createDecipheriv(cipher, scryptSync(passphrase.normalize("NFKC"), bytes("salt"), 32, cost), bytes("iv"), {
      authTagLength: 16,
    });
    decrypt.setAuthTag(bytes("tag"));
    return Buffer.concat([decrypt.update(bytes("data")), decrypt.final()]).toString("base64");
  } catch (cause) {
    throw new HostError("KEY_PASSPHRASE", "The passphrase is wrong, or the key file was altered.", { cause });
  }
}

function toPrivateKey(base64: string, file: string): KeyObject {
  try {
    return createPrivateKey({ key: Buffer.from(base64, "base64"), format: "der", type: "pkcs8" });
  } catch (cause) {
    throw new HostError("KEY_INVALID", `${file} contains no readable private key. Create another with "skillhost keys new".`, { cause });
  }
}

function readStored(file: string): { readonly key: StoredKey; readonly value: Readonly<Record<string, unknown>> } | undefined {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) return undefined;
  try {
    const value: unknown = JSON.parse(read.text);
    if (!isRecord(value) || value["format"] !== format || typeof value["created"] !== "string") return undefined;
    const isOpenToOthers = process.platform !== "win32" && (lstatSync(file).mode & 0o077) !== 0;
    const about = { file, created: value["created"], isLocked: isRecord(value["locked"]), isOpenToOthers };
    return { key: { ...parseKey(String(value["public"])), ...about }, value };
  } catch {
    // Not a key file of skillhost, so it is not listed.
    return undefined;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // No key was created yet.
    return [];
  }
}
