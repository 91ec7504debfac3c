import { hash, type KeyObject, verify } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { signatureFileName } from "./folder-digests.ts";
import { parseSignature, type SignatureStatement, signedBytes } from "./signature-statement.ts";
import { formatKey, type PublicKey, type TrustedKeys, toKeyObject } from "./trusted-keys.ts";

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
