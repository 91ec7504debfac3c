import { canonicalJson, sha256 } from "../base/canonical-json.ts";
import type { ToolDefinition } from "./tool.ts";

/**
 * The contract of a tool as a hash: name, title, description, parameters and the two flags, where an absent flag is
 * `false`. The order of keys and white space make no difference; any other change of these six does.
 */
export function signatureOf(definition: ToolDefinition): string {
  const { name, title, description, parameters, overridesBuiltInTool = false, skipPermission = false } = definition;
  return sha256(canonicalJson({ name, title, description, parameters, overridesBuiltInTool, skipPermission }));
}

/** A hash over every field of a definition and the generation of the code behind it: equal means nothing changed. */
export function revisionOf(definition: ToolDefinition, generation: string | number): string {
  return sha256(canonicalJson({ definition, generation }));
}
