import type { KeyObject } from "node:crypto";
import { createPrivateKey } from "node:crypto";
import { signContract, toolSignatureField } from "../trust/tool-envelope.ts";
import { readDefinition, signatureOf } from "./create/tool-definition.ts";
import type { ToolLike } from "./define/define-tool.ts";

/**
 * Returns the tool with a signature of its contract in its `metadata`, for hosts that require signatures of pushed tools
 * (`trust.policy.external`). Sign last: a changed name, title, description, schema or flag needs a new signature.
 * @throws HostError `TOOL_INVALID`, `KEY_INVALID`.
 */
export function signTool<T extends ToolLike>(tool: T, { privateKey, expires }: SignToolOptions): T {
  const { definition } = readDefinition(tool, () => {});
  const key = typeof privateKey === "string" ? createPrivateKey(privateKey) : privateKey;
  const envelope = signContract(definition.name, signatureOf(definition), key, expires);
  return Object.freeze({ ...tool, metadata: { ...definition.metadata, [toolSignatureField]: envelope } });
}

/**
 * Options of `signTool`.
 *
 * @example
 * ```ts
 * const options: SignToolOptions = { privateKey: "-----BEGIN PRIVATE KEY-----…", expires: new Date("2030-01-31") };
 * ```
 */
export interface SignToolOptions {
  /** An Ed25519 key, or its PEM. */
  readonly privateKey: KeyObject | string;
  /** When the signature expires. Default: never. */
  readonly expires?: Date | undefined;
}
