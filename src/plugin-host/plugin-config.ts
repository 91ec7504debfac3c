import { errorMessage } from "../base/errors.ts";
import { copyJson } from "../tools/json-copy.ts";
import { compileSchema } from "../tools/schema/json-schema-validator.ts";
import { isLibrarySchema, standardValidator, toJsonSchema } from "../tools/schema/standard-schema.ts";
import type { ArgumentIssue, JsonSchema, Validated } from "../tools/tool.ts";

/** What checking a configuration came to: the configuration with its defaults, or what is wrong with it, in words. */
export type ConfigOutcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

/**
 * Checks a configuration by a schema and fills in defaults. Only the schema's own code runs, where it is that of a library:
 * nothing of a plugin's activation. Never rejects.
 */
export async function checkConfig(schema: object, config: unknown): Promise<ConfigOutcome> {
  try {
    const validated = await validatorFor(schema)(config ?? {});
    if (!validated.ok) return { ok: false, problem: describe(validated.issues) };
    // What a library makes of it may be more than data: its own to keep.
    return isLibrarySchema(schema) ? validated : plainConfig(validated.value);
  } catch (error) {
    return { ok: false, problem: `its configSchema cannot be used: ${errorMessage(error)}` };
  }
}

/** A configuration without a schema: data, so that nobody changes under a plugin what it was given. */
export function plainConfig(config: unknown): ConfigOutcome {
  if (config === undefined) return { ok: true, value: Object.freeze({}) };
  const copy = copyJson(config);
  if (copy.ok) return copy;
  return { ok: false, problem: `${copy.path === "" ? "it" : copy.path} ${copy.reason}` };
}

function validatorFor(schema: object): (value: unknown) => Validated | Promise<Validated> {
  if (!isLibrarySchema(schema)) return compiled(schema as JsonSchema);
  return standardValidator(schema) ?? compiled(toJsonSchema(schema).schema);
}

/** A schema that cannot be compiled says so to its author, in place of what it says of arguments. */
function compiled(schema: JsonSchema): (value: unknown) => Validated | Promise<Validated> {
  const problems: string[] = [];
  const validate = compileSchema(schema, { onDiagnostic: ({ message }) => void problems.push(message) });
  return (value) => {
    const validated = validate(value);
    if (problems[0] !== undefined) throw new Error(problems[0]);
    return validated;
  };
}

function describe(issues: readonly ArgumentIssue[]): string {
  return issues.map(({ path, message }) => (path === "" ? message : `${path} ${message}`)).join("; ");
}
