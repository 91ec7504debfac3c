import type { StandardSchemaV1 } from "@modelcontextprotocol/server";
import { isPlainRecord } from "../../base/read-fields.ts";

/** The form in which the SDK wants the parameters of a method described; `fault` says what is wrong with them. */
export function schemaOf<T extends object>(
  fault: (params: Readonly<Record<string, unknown>>) => string | undefined,
): StandardSchemaV1<T, T> {
  const validate = (value: unknown) => {
    const message = isPlainRecord(value) ? fault(value) : "the parameters must be an object";
    return message === undefined ? { value: value as T } : { issues: [{ message }] };
  };
  return { "~standard": { version: 1, vendor: "skillhost", validate } };
}
