import { type KeyObject, sign } from "node:crypto";
import { join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { digestFolder, signatureFileName } from "./folder-digests.ts";
import type { PublicKey } from "./key-text.ts";
import { formatSignature, type SignatureStatement, signedBytes } from "./signature-statement.ts";

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
  /** Nothing was written. */
  | { readonly ok: false; readonly problems: readonly Diagnostic[] };

/** Signs files of a folder as they are now, and writes the signature beside them. */
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
