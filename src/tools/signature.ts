import { createPrivateKey, type KeyObject } from "node:crypto";
import { canonicalJson, sha256 } from "../base/canonical-json.ts";
import { signContract, toolSignatureField } from "../trust/push-trust.ts";
import { readDefinition } from "./create/tool-definition.ts";
import type { ToolLike } from "./define/define-tool.ts";
import type { ToolDefinition } from "./tool.ts";

/**
 * A hash of the tool's contract: name, title, description, parameters and the two flags, where an absent flag counts as `false`. Key
 * order and white space make no difference; any other change of these six does.
 */
export function signatureOf(definition: ToolDefinition): string {
  const { name, title, description, parameters, overridesBuiltInTool = false, skipPermission = false } = definition;
  return sha256(canonicalJson({ name, title, description, parameters, overridesBuiltInTool, skipPermission }));
}

/** A hash of every field of a definition and the generation of the code behind it: equal hashes mean nothing changed. */
export function revisionOf(definition: ToolDefinition, generation: string | number): string {
  return sha256(canonicalJson({ definition, generation }));
}

export interface SignToolOptions {
  /** An Ed25519 key, or its PEM. */
  readonly privateKey: KeyObject | string;
  /** When the signature expires. Default: never. */
  readonly expires?: Date | undefined;
}

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
