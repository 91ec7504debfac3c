import { isRecord } from "../../base/json.ts";
import type { JsonSchema } from "../../tools/tool.ts";
import type { JsonPath } from "../text/json-document.ts";
import type { JsonComplain } from "../text/json-fields.ts";

/** Checks the `${param}` of a handler against the tool's parameters, and reports warnings. */
export interface PlaceholderCheck {
  /** Text that is replaced only if it consists of a single placeholder. */
  whole(text: string, path: JsonPath): void;
  /** Text in which all placeholders are replaced, `${env:NAME}` and `${param:-default}` too. */
  within(text: string, path: JsonPath): void;
  /** Every string in a JSON value, each treated as `whole`. */
  values(value: unknown, path: JsonPath): void;
  /** Text without replacement. */
  none(text: string | undefined, path: JsonPath): void;
}

export function createPlaceholderCheck(parameters: JsonSchema | undefined, complain: JsonComplain): PlaceholderCheck {
  const names = parameterNames(parameters);
  const known = (name: string, path: JsonPath): void => {
    if (names === undefined || names.includes(name)) return;
    const list = names.length === 0 ? "the tool has no parameters" : `the parameters are ${names.slice(0, 20).join(", ")}`;
    complain(
      "warning",
      "TOOL_PLACEHOLDER_UNKNOWN",
      `No parameter is named ${JSON.stringify(name.slice(0, 60))}; ${list}. Fix the placeholder or add the parameter.`,
      path,
    );
  };
  const check: PlaceholderCheck = {
    whole(text, path) {
      const name = /^\$\{([A-Za-z_][\w-]*)\}$/.exec(text)?.[1];
      if (name !== undefined) known(name, path);
      else if (text.includes("${"))
        complain(
          "warning",
          "TOOL_PLACEHOLDER_PARTIAL",
          "A placeholder is replaced only if it is the whole string. Make it a separate element.",
          path,
        );
    },
    within(text, path) {
      for (const [, name] of text.matchAll(/\$\{([A-Za-z_][\w-]*)(?::-[^}]{0,200})?\}/g)) known(name!, path);
    },
    values(value, path) {
      if (typeof value === "string") check.whole(value, path);
      else if (Array.isArray(value)) for (const [index, item] of value.entries()) check.values(item, [...path, index]);
      else if (isRecord(value)) for (const [key, item] of Object.entries(value)) check.values(item, [...path, key]);
    },
    none(text, path) {
      if (text?.includes("${"))
        complain("warning", "TOOL_PLACEHOLDER_UNUSED", "Placeholders are not replaced here; the string is used unchanged.", path);
    },
  };
  return check;
}

// Undefined: the schema is open or uses references, so any name may be valid.
function parameterNames(parameters: JsonSchema | undefined): readonly string[] | undefined {
  if (parameters === undefined) return [];
  const isOpen = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].some((keyword) => parameters[keyword] !== undefined);
  const additional = parameters["additionalProperties"];
  if (isOpen || (additional !== undefined && additional !== false)) return undefined;
  return isRecord(parameters["properties"]) ? Object.keys(parameters["properties"]) : [];
}
