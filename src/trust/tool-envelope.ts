import { type KeyObject, sign } from "node:crypto";
import { canonicalJson } from "../base/canonical-json.ts";
import { isRecord } from "../base/json.ts";
import { isKeyId, publicKeyOf } from "./trusted-keys.ts";

/** The key of a pushed tool's signature in its `metadata`. */
export const toolSignatureField = "skillhost/signature";

/** The signature of a tool's contract. */
export interface ToolEnvelope {
  /** The id of the key. */
  readonly key: string;
  /** ISO 8601. */
  readonly created: string;
  readonly expires?: string;
  /** Ed25519, base64. */
  readonly signature: string;
}

/** The signed bytes: the tool's name and the signature of its definition. */
export function toolEnvelopeBytes(tool: string, contract: string, { key, created, expires }: Omit<ToolEnvelope, "signature">): Buffer {
  const statement = { tool, contract, key, created, ...(expires !== undefined && { expires }) };
  return Buffer.from(`skillhost-tool-signature/1\n${canonicalJson(statement)}`, "utf8");
}

/** @throws HostError `KEY_INVALID` for a key that is not Ed25519. */
export function signContract(tool: string, contract: string, privateKey: KeyObject, expires: Date | undefined): ToolEnvelope {
  const about = {
    key: publicKeyOf(privateKey, "").id,
    created: new Date().toISOString(),
    ...(expires !== undefined && { expires: expires.toISOString() }),
  };
  return { ...about, signature: sign(null, toolEnvelopeBytes(tool, contract, about), privateKey).toString("base64") };
}

/** Undefined: it has no readable signature. */
export function readToolEnvelope(metadata: unknown): ToolEnvelope | undefined {
  const value = isRecord(metadata) && Object.hasOwn(metadata, toolSignatureField) ? metadata[toolSignatureField] : undefined;
  if (!isRecord(value)) return undefined;
  const { key, created, expires, signature } = value;
  if (!isKeyId(key) || !isTime(created) || !(expires === undefined || isTime(expires)) || typeof signature !== "string") return undefined;
  return signature.length > 100 ? undefined : { key, created, signature, ...(expires !== undefined && { expires }) };
}

function isTime(value: unknown): value is string {
  return typeof value === "string" && value.length <= 40 && !Number.isNaN(Date.parse(value));
}
