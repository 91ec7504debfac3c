import { canonicalJson, sha256 } from "../base/canonical-json.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { type CompiledSchema, compileSchemaText, type JsonValidator } from "./json-schema-validator.ts";
import type { JsonSchema } from "./tool.ts";

export interface CompileOptions {
  /**
   * The schema was declared, in JSON or by somebody else's program: patterns that cannot be matched in linear time are not
   * checked. Those of the host's own code are then matched as JavaScript does. The work of a check is bounded either way.
   */
  readonly untrustedPatterns?: boolean;
  /** Told once, at the first call, when the schema cannot be compiled. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/**
 * A validator of arguments for a JSON Schema. Nothing is compiled before its first call; equal schemas share one
 * compiled validator. It applies defaults to a copy, never coerces, never throws and never changes the arguments;
 * absent arguments count as `{}`. Large arguments are checked in slices, and answered with a promise. A schema that cannot be compiled refuses every call and says why as a diagnostic.
 */
export function compileSchema(schema: JsonSchema, options: CompileOptions = {}): JsonValidator {
  let validate: JsonValidator | undefined;
  return (args) => {
    validate ??= compileShared(schema, options);
    return validate(args);
  };
}

/**
 * For a library's own validation of arguments that it refused: the arguments without what is null and may be absent, if
 * that makes them fit its JSON Schema; else undefined.
 */
export function nullOmitter(schema: JsonSchema): (args: unknown) => unknown {
  return (args) => shareCompiled(textOf(schema), false).omitNulls(args);
}

const maxShared = 256;
/** By text hash, least recently used first. Tools keep their validator themselves; this saves what reloads repeat. */
const shared = new Map<string, CompiledSchema>();

function compileShared(schema: JsonSchema, options: CompileOptions): JsonValidator {
  const compiled = shareCompiled(textOf(schema), options.untrustedPatterns === true);
  if (compiled.problem !== null) options.onDiagnostic?.({ severity: "error", ...compiled.problem });
  return compiled.validate;
}

function shareCompiled(text: string, untrustedPatterns: boolean): CompiledSchema {
  const key = `${untrustedPatterns} ${sha256(text)}`;
  const compiled = shared.get(key) ?? compileSchemaText(text, !untrustedPatterns);
  shared.delete(key);
  shared.set(key, compiled);
  const oldest = shared.keys().next();
  if (shared.size > maxShared && oldest.done !== true) shared.delete(oldest.value);
  return compiled;
}

function textOf(schema: JsonSchema): string {
  try {
    return canonicalJson(schema);
  } catch {
    // Cyclic, or with a getter that throws: no text, which the compiler reports as a faulty schema.
    return "";
  }
}
