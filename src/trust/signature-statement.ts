import { type KeyObject, sign } from "node:crypto";
import { join } from "node:path";
import { canonicalJson } from "../base/canonical-json.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { isRecord } from "../base/json.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { digestFolder, type FileDigest, isDigest, signatureFileName } from "./folder-digests.ts";
import { isKeyId, type PublicKey } from "./trusted-keys.ts";

/** The signed statement about a skill: its name, its files, and the contracts of its tools. */
export interface SignatureStatement {
  readonly skill: string;
  /** Absent: its manifest has no version. */
  readonly version?: string;
  /** ISO 8601, by the signer's clock. */
  readonly created: string;
  readonly expires?: string;
  /** The id of the signing key. */
  readonly key: string;
  /** Signatures of the definitions of its tools, by name. */
  readonly tools: ReadonlyMap<string, string>;
  readonly files: ReadonlyMap<string, FileDigest>;
}

type ReadSignature =
  | { readonly ok: true; readonly statement: SignatureStatement; readonly signature: Buffer }
  /** `isNewer`: its format or algorithm is unknown to this version. */
  | { readonly ok: false; readonly isNewer: boolean; readonly why: string };

const format = "skillhost-signature/1";
const algorithm = "ed25519";
const fields = ["format", "algorithm", "skill", "version", "created", "expires", "key", "tools", "files", "signature"];

/** The signed bytes. They begin with the format, so that no other text signed with the key can be mistaken for a statement. */
export function signedBytes(statement: SignatureStatement): Buffer {
  return Buffer.from(`${format}\n${canonicalJson(toFields(statement))}`, "utf8");
}

/** The text of a signature file. */
function formatSignature(statement: SignatureStatement, signature: Uint8Array): string {
  const { files, ...rest } = toFields(statement);
  return `${JSON.stringify({ ...rest, files, signature: Buffer.from(signature).toString("base64") }, undefined, 1)}\n`;
}

/** Reads the text of a signature file, without verifying it. */
export function parseSignature(text: string): ReadSignature {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message about an untrusted text is not helpful.
    return damaged("it is not valid JSON, or is incomplete");
  }
  if (!isRecord(value)) return damaged("it is not an object");
  if (value["format"] !== format || value["algorithm"] !== algorithm) {
    const { format: given, algorithm: how } = value;
    const isOurs = typeof given === "string" && given.startsWith("skillhost-signature/");
    if (!isOurs || typeof how !== "string") return damaged(`its format must be ${shown(format)} and its algorithm ${shown(algorithm)}`);
    return {
      ok: false,
      isNewer: true,
      why: `its format is ${shown(given)} with ${shown(how)}, but only ${format} with ${algorithm} is supported`,
    };
  }
  const unknown = Object.keys(value).find((key) => !fields.includes(key));
  if (unknown !== undefined) return damaged(`it has the unknown key ${shown(unknown)}`);
  return readFields(value);
}

function readFields(value: Readonly<Record<string, unknown>>): ReadSignature {
  const { skill, version, created, expires, key, signature } = value;
  if (!isText(skill, 256) || !(version === undefined || isText(version, 256))) return damaged("skill and version must be strings");
  if (!isTime(created) || !(expires === undefined || isTime(expires))) return damaged("created and expires must be timestamps");
  if (!isKeyId(key)) return damaged("key must be the id of a key");
  const bytes = isText(signature, 100) ? Buffer.from(signature, "base64") : undefined;
  if (bytes?.length !== 64 || bytes.toString("base64") !== signature) return damaged("signature must be 64 bytes, base64");
  const tools = readMap(value["tools"], (digest) => (typeof digest === "string" && /^[0-9a-f]{64}$/.test(digest) ? digest : undefined));
  const files = readMap(value["files"], readDigest);
  if (tools === undefined) return damaged("tools must contain the signature of each tool by its name");
  if (files === undefined) return damaged("files must contain size and digest of each file by its path");
  const optional = { ...(version !== undefined && { version }), ...(expires !== undefined && { expires }) };
  return { ok: true, statement: { skill, created, key, tools, files, ...optional }, signature: bytes };
}

function readDigest(value: unknown): FileDigest | undefined {
  if (!isRecord(value) || Object.keys(value).length !== 2) return undefined;
  const { size, digest } = value;
  return typeof size === "number" && Number.isSafeInteger(size) && size >= 0 && isDigest(digest) ? { size, digest } : undefined;
}

function readMap<T>(value: unknown, read: (item: unknown) => T | undefined): ReadonlyMap<string, T> | undefined {
  if (!isRecord(value)) return undefined;
  const map = new Map<string, T>();
  for (const name of Object.keys(value)) {
    const item = read(value[name]);
    if (item === undefined || name.length > 4096) return undefined;
    map.set(name, item);
  }
  return map;
}

function toFields({ skill, version, created, expires, key, tools, files }: SignatureStatement) {
  return {
    format,
    algorithm,
    skill,
    ...(version !== undefined && { version }),
    created,
    ...(expires !== undefined && { expires }),
    key,
    tools: Object.fromEntries(tools),
    files: Object.fromEntries([...files].map(([path, { size, digest }]) => [path, { size, digest }])),
  };
}

function damaged(why: string): ReadSignature {
  return { ok: false, isNewer: false, why };
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 60));
}

function isText(value: unknown, most: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= most;
}

function isTime(value: unknown): value is string {
  return isText(value, 40) && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value));
}

export interface SigningKey {
  readonly publicKey: PublicKey;
  readonly privateKey: KeyObject;
}

export interface SignRequest {
  readonly skill: string;
  readonly version?: string | undefined;
  /** Signatures of the definitions of its tools, by name. */
  readonly tools: ReadonlyMap<string, string>;
  readonly created: Date;
  readonly expires?: Date | undefined;
  /** The files to sign, by path from the folder with forward slashes. Default: all. */
  readonly only?: ReadonlySet<string> | undefined;
}

export type Signed =
  | { readonly ok: true; readonly file: string; readonly statement: SignatureStatement }
  /** No signature was written. */
  | { readonly ok: false; readonly problems: readonly Diagnostic[] };

/** Signs the current files of a folder, and writes the signature into it. */
export async function signFolder(folder: string, request: SignRequest, { publicKey, privateKey }: SigningKey): Promise<Signed> {
  const { files, problems } = digestFolder(folder, { only: request.only });
  if (problems.length > 0) return { ok: false, problems };
  const { skill, version, tools, created, expires } = request;
  const statement: SignatureStatement = {
    skill,
    ...(version !== undefined && { version }),
    created: created.toISOString(),
    ...(expires !== undefined && { expires: expires.toISOString() }),
    key: publicKey.id,
    tools: new Map([...tools].sort(([a], [b]) => (a < b ? -1 : 1))),
    files,
  };
  const file = join(folder, signatureFileName);
  await writeFileAtomic(file, formatSignature(statement, sign(null, signedBytes(statement), privateKey)), { inside: folder });
  return { ok: true, file, statement };
}
