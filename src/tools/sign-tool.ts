import { createPrivateKey, type KeyObject } from "node:crypto";
import { signContract, toolSignatureField } from "../trust/tool-envelope.ts";
import type { ToolLike } from "./define-tool.ts";
import { signatureOf } from "./signature.ts";
import { readDefinition } from "./tool-definition.ts";

export interface SignToolOptions {
  /** An Ed25519 key, or its PEM. */
  readonly privateKey: KeyObject | string;
  /** Until when the signature is good. Default: for ever. */
  readonly expires?: Date | undefined;
}

/**
 * The tool with a signature of its contract in its `metadata`, for hosts that want those of pushed tools
 * (`trust.policy.external`). Sign it last: another name, title, description, schema or flag needs another signature.
 * @throws HostError `TOOL_INVALID`, `KEY_INVALID`.
 */
export function signTool<T extends ToolLike>(tool: T, { privateKey, expires }: SignToolOptions): T {
  const { definition } = readDefinition(tool, () => {});
  const key = typeof privateKey === "string" ? createPrivateKey(privateKey) : privateKey;
  const envelope = signContract(definition.name, signatureOf(definition), key, expires);
  return Object.freeze({ ...tool, metadata: { ...definition.metadata, [toolSignatureField]: envelope } });
}
