import { errorMessage } from "../base/errors.ts";
import { fieldsReader, isPlainRecord, readTexts } from "../base/read-fields.ts";
import type { FieldReader } from "../formats/text/json-fields.ts";
import { onlyStricter, readDefinitions, readPolicy, readProvenance } from "../trust/trust-policy.ts";
import type { TrustOptions } from "../trust/trust-settings.ts";
import { parseKeyList } from "../trust/trusted-keys.ts";

/**
 * What a configuration asks of signatures. It comes with a project, so that it may ask for more than the user does and
 * never for less, and cannot have anybody trusted: keys that it names narrow down those that the user trusts.
 */
export function readConfiguredTrust(fields: FieldReader): TrustOptions | undefined {
  const value = fields.raw("trust");
  if (value === undefined) return undefined;
  if (isPlainRecord(value) && (Object.hasOwn(value, "keys") || Object.hasOwn(value, "directory"))) {
    const what = Object.hasOwn(value, "keys") ? "keys" : "directory";
    const advice = 'Name the keys that are expected in "trust.onlyKeys"; each user trusts them with "skillhost keys trust".';
    return fields.wrong(
      "trust",
      `"trust.${what}" is not for a configuration, which comes with a project and cannot trust anybody for its user. ${advice}`,
    );
  }
  try {
    const { onlyKeys, ...asked } = readTrust(value, "trust");
    if (onlyKeys !== undefined) parseKeyList(onlyKeys, "trust.onlyKeys");
    return { ...onlyStricter(asked), ...(onlyKeys && { onlyKeys }) };
  } catch (error) {
    return fields.wrong("trust", errorMessage(error));
  }
}

const readTrust = fieldsReader({
  policy: readPolicy,
  definitions: readDefinitions,
  provenance: readProvenance,
  onlyKeys: readTexts,
} as const) as (value: unknown, path: string) => Parameters<typeof onlyStricter>[0] & { readonly onlyKeys?: readonly string[] };
