import { hash, type KeyObject, sign, verify } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { canonicalJson } from "../base/canonical-json.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { isRecord } from "../base/json.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { digestFolder, type FileDigest, isDigest, signatureFileName } from "./folder-digests.ts";
import { formatKey, isKeyId, type PublicKey, type TrustedKeys, toKeyObject } from "./trusted-keys.ts";

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
function signedBytes(statement: SignatureStatement): Buffer {
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

/** The content of a folder's signature file, and its signer. The files are not compared yet. */
type CheckedSignature =
  | { readonly kind: "unsigned" }
  | { readonly kind: "valid"; readonly statement: SignatureStatement; readonly key: PublicKey }
  /** `keyId`: the key that the file names. */
  | { readonly kind: "refused"; readonly diagnostic: Diagnostic; readonly keyId?: string };

interface SignatureCheckOptions {
  readonly keys: TrustedKeys;
  /** Whether only the keys that the project names are accepted. */
  readonly isOfProject: boolean;
  readonly verified: VerifiedSignatures;
  /** Milliseconds since 1970. */
  readonly now: number;
}

// The size of a signature of 20,000 files with long names.
const maxSignatureBytes = 8 * 1024 * 1024;
// Clocks differ. A signature with a later time than this is not accepted yet.
const clockSkew = 24 * 60 * 60 * 1000;

/** Reads the signature of a folder, and checks whether a trusted key made it. */
export function checkSignature(folder: string, options: SignatureCheckOptions): CheckedSignature {
  const file = join(folder, signatureFileName);
  const read = readTextFile(file, maxSignatureBytes);
  if (!read.ok) {
    if (read.diagnostic.code === "FILE_MISSING") return { kind: "unsigned" };
    return refused(file, "TRUST_SIGNATURE_DAMAGED", `The signature cannot be read. ${read.diagnostic.message}`);
  }
  const parsed = parseSignature(read.text);
  if (!parsed.ok) {
    const code = parsed.isNewer ? "TRUST_SIGNATURE_FORMAT" : "TRUST_SIGNATURE_DAMAGED";
    const advice = parsed.isNewer ? "Update skillhost, or have it signed again." : "Have the skill signed again.";
    return refused(file, code, `The signature is not valid: ${parsed.why}. ${advice}`);
  }
  return judge(file, read.bytes, parsed.statement, parsed.signature, options);
}

function judge(
  file: string,
  text: Uint8Array,
  statement: SignatureStatement,
  signature: Buffer,
  options: SignatureCheckOptions,
): CheckedSignature {
  const { keys, isOfProject, verified, now } = options;
  const id = statement.key;
  const refuse = (code: string, message: string): CheckedSignature => ({ ...refused(file, code, message), keyId: id }) as CheckedSignature;
  const revoked = keys.revoked(id);
  if (revoked !== undefined) return refuse("TRUST_KEY_REVOKED", `It is signed with the key ${id}, which was revoked ${revoked}.`);
  const key = keys.find(id);
  if (key === undefined)
    return refuse("TRUST_KEY_UNKNOWN", `It is signed with the key ${id}, which you do not trust. ${adviceOf(id, keys)}`);
  if (
    !verified.check(
      () => memoKey(key, text),
      () => verify(null, signedBytes(statement), keyObjectOf(key), signature),
    )
  )
    return refuse(
      "TRUST_SIGNATURE_WRONG",
      `The signature was not made with ${named(key)} for these files: it was altered. Have the skill signed again.`,
    );
  if (isOfProject && !keys.isExpected(id)) {
    const message = `It is signed with ${named(key)}, which you trust, but this project expects others ("trust.onlyKeys" in its configuration).`;
    return refuse("TRUST_KEY_NOT_EXPECTED", `${message} Have it signed by one of them, or add the key there.`);
  }
  if (statement.expires !== undefined && Date.parse(statement.expires) <= now)
    return refuse("TRUST_EXPIRED", `The signature of ${named(key)} expired at ${statement.expires}. Have the skill signed again.`);
  if (Date.parse(statement.created) > now + clockSkew)
    return refuse(
      "TRUST_NOT_YET",
      `The signature of ${named(key)} is dated ${statement.created}, which is in the future. Check this machine's clock.`,
    );
  return { kind: "valid", statement, key };
}

/** If the project names the key, the user only has to trust it. */
function adviceOf(id: string, keys: TrustedKeys): string {
  const expected = keys.expected(id);
  if (expected === undefined) return 'If you know its owner, trust it with "skillhost keys trust <key>".';
  return `This project expects it, but only you can trust it. To trust it: skillhost keys trust ${JSON.stringify(formatKey(expected))}`;
}

export function named({ id, name }: PublicKey): string {
  return name === "" ? `the key ${id}` : `the key ${id} (${JSON.stringify(name)})`;
}

/** Equal only for the same key and the same signature text, which determine the result. */
function memoKey(key: PublicKey, text: Uint8Array): string {
  return hash("sha256", Buffer.concat([Buffer.from(key.bytes, "base64"), text]), "hex");
}

function keyObjectOf(key: PublicKey): KeyObject {
  const known = keyObjects.get(key) ?? toKeyObject(key);
  keyObjects.set(key, known);
  return known;
}

const keyObjects = new WeakMap<PublicKey, KeyObject>();

function refused(file: string, code: string, message: string): CheckedSignature {
  return { kind: "refused", diagnostic: { severity: "error", code, file, message } };
}

/**
 * Caches valid signatures, because verification takes longer than all other checks. Whether the key is trusted and the files
 * are the signed ones is checked each time.
 */
export interface VerifiedSignatures {
  /** `keyOf` is unique for each key, signature and statement. Failures are not cached. */
  check(keyOf: () => string, verify: () => boolean): boolean;
  /** Stores new results. Never rejects: a result that cannot be stored is computed again. */
  keep(): Promise<void>;
}

// One line per entry: 1.3 MB.
const most = 20_000;

/** `file`: the persistent cache in the user's own folder. A program that can write there could also add trusted keys. */
export function createVerifiedSignatures(file?: string): VerifiedSignatures {
  let known: Set<string> | undefined;
  let isNews = false;
  return {
    check(keyOf, verify) {
      known ??= new Set(file === undefined ? [] : readLines(file));
      const key = keyOf();
      if (known.has(key)) return true;
      if (!verify()) return false;
      known.add(key);
      isNews = true;
      return true;
    },
    async keep() {
      if (!isNews || file === undefined || known === undefined) return;
      isNews = false;
      try {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        // Includes entries that other processes have stored; losing one only costs another verification.
        const all = [...new Set([...readLines(file), ...known])].slice(-most);
        await writeFileAtomic(file, `${all.join("\n")}\n`, { mode: 0o600 });
        chmodSync(file, 0o600);
      } catch {
        // The folder is not writable: the signatures are verified again next time.
      }
    },
  };
}

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => /^[0-9a-f]{64}$/.test(line));
  } catch {
    // Missing or unreadable.
    return [];
  }
}
