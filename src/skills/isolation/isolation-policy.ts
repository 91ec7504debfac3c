import { isRecord } from "../../base/json.ts";
import { fieldsReader, mustBe, readOneOf } from "../../base/read-fields.ts";
import type { SkillScope } from "../../trust/trust-policy.ts";

/**
 * Where the code of a skill runs. `off`: in this process. `worker`: in a worker thread. `process`: in a process of its own, limited to what
 * the skill declares as far as this machine enforces that. `strict`: the same, and refused where the operating system does not enforce it.
 */
export type IsolationTier = "off" | "worker" | "process" | "strict";

/**
 * A tier for all skills, or by their origin; skills of skillhost itself, and origins that are not named, are not isolated. `auto`:
 * `process` for skills of packages, which here includes those that `skillhost add` copied from Git repositories and websites.
 */
export type Isolation = IsolationTier | "auto" | Readonly<Partial<Record<SkillScope, IsolationTier>>>;

export const defaultIsolation: Isolation = "auto";

const isolationTiers: readonly IsolationTier[] = ["off", "worker", "process", "strict"];

/** The values of `isolation` that are one word. */
export const isolationWords: readonly ("auto" | IsolationTier)[] = ["auto", ...isolationTiers];

/** The tier of skills from an origin. Undefined: a skill of skillhost itself. */
export function tierFor(isolation: Isolation, scope: SkillScope | undefined): IsolationTier {
  if (isolation === "auto") return scope === "package" ? "process" : "off";
  if (typeof isolation === "string") return isolation;
  return (scope && isolation[scope]) ?? "off";
}

const readTier = readOneOf(isolationTiers);
const readByScope = fieldsReader<{ user?: IsolationTier; project?: IsolationTier; package?: IsolationTier }>({
  user: readTier,
  project: readTier,
  package: readTier,
});

/** Checks a value from outside. @throws HostError that names the field */
export function readIsolation(value: unknown, path: string): Isolation {
  if (isRecord(value)) return readByScope(value, path);
  const word = isolationWords.find((each) => each === value);
  return (
    word ?? mustBe(path, `${isolationWords.map((each) => JSON.stringify(each)).join(", ")}, or an object such as { "package": "strict" }`)
  );
}
