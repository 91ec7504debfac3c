import { fieldsReader, isPlainRecord, mustBe, readOneOf, readText } from "../base/read-fields.ts";
import type { PinPolicy } from "./pins/pins.ts";
import { type DefinitionPolicy, type ProvenanceRule, pinPolicies, type TrustMode, type TrustPolicy, trustModes } from "./trust-policy.ts";

const readMode: (value: unknown, path: string) => TrustMode = readOneOf(trustModes);
const readPins: (value: unknown, path: string) => PinPolicy = readOneOf(pinPolicies);

/** A mode for each scope, or one for all. */
export function readPolicy(value: unknown, path: string): Partial<TrustPolicy> {
  if (typeof value === "string") {
    const mode = readMode(value, path);
    return { user: mode, project: mode, package: mode, external: mode };
  }
  return fieldsReader<Partial<TrustPolicy>>({ user: readMode, project: readMode, package: readMode, external: readMode })(value, path);
}

export function readDefinitions(value: unknown, path: string): Partial<DefinitionPolicy> {
  if (typeof value === "string") {
    const pins = readPins(value, path);
    return { user: pins, project: pins, package: pins };
  }
  return fieldsReader<Partial<DefinitionPolicy>>({ user: readPins, project: readPins, package: readPins })(value, path);
}

/** Rules by the name of a package, `@scope/*`, or `*`. A rule may be a mode alone. */
export function readProvenance(value: unknown, path: string): Readonly<Record<string, ProvenanceRule>> {
  if (!isPlainRecord(value)) return mustBe(path, "an object of rules by package");
  return Object.fromEntries(Object.entries(value).map(([name, rule]) => [name, readRule(rule, `${path}.${name}`)]));
}

function readRule(value: unknown, path: string): ProvenanceRule {
  if (typeof value === "string") return { mode: readMode(value, path) };
  const rule = fieldsReader<Partial<ProvenanceRule>>({ mode: readMode, repository: readText, workflow: readText })(value, path);
  return { mode: "require", ...rule };
}
