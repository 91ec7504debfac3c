import { Validator } from "@cfworker/json-schema";
import { type RJSFSchema, ROOT_SCHEMA_PREFIX, type ValidatorType, withIdRefPrefix } from "@rjsf/utils";

/**
 * Decides which branch of a choice fits, which the form has to know at once. It interprets schemas, because compiling them would need
 * `eval`. Errors come from the host.
 */
export function createFormValidator(): ValidatorType {
  return {
    isValid: (schema, data, root) => isValid(schema, data, root),
    validateFormData: () => ({ errors: [], errorSchema: {} }),
    rawValidation: () => ({}),
  };
}

function isValid(schema: RJSFSchema, data: unknown, root: RJSFSchema): boolean {
  try {
    const validator = new Validator(withIdRefPrefix(schema) as ConstructorParameters<typeof Validator>[0], "2019-09", true);
    if (JSON.stringify(schema).includes('"$ref"')) {
      validator.addSchema(root as Parameters<Validator["addSchema"]>[0], ROOT_SCHEMA_PREFIX);
    }
    return validator.validate(data === undefined ? undefined : JSON.parse(JSON.stringify(data))).valid;
  } catch {
    // A schema that cannot be interpreted fits nothing. The JSON view remains, and the host reports what is wrong with the schema.
    return false;
  }
}
