import { isAbsolute, join } from "node:path";
import { errorMessage, HostError } from "../base/errors.ts";
import { type FieldReaders, readFields } from "../base/read-fields.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { type PolicyFields, policyReaders } from "./trust-file.ts";

/** What an organisation requires of everyone on a machine. Users, projects and programs can only require more. */
export interface OrganisationPolicy extends PolicyFields {
  readonly file: string;
}

const maxBytes = 1024 * 1024;

/** The fixed place of the policy on this platform, which only administrators can write to. */
export function organisationPolicyFile(platform: NodeJS.Platform = process.platform, env: NodeJS.ProcessEnv = process.env): string {
  if (platform === "win32") return `${env["ProgramData"] || "C:\\ProgramData"}\\skillhost\\policy.json`;
  if (platform === "darwin") return "/Library/Application Support/skillhost/policy.json";
  return "/etc/skillhost/policy.json";
}

/**
 * Reads the policy of the machine, and that of `SKILLHOST_POLICY`, which is for containers and tests. Both apply: a variable must not
 * replace what the machine requires. Each is a layer of its own.
 * @throws HostError `POLICY_INVALID`: without the policy, less would be checked than the organisation requires.
 */
export function readOrganisationPolicies(named: string | undefined = process.env["SKILLHOST_POLICY"]): readonly OrganisationPolicy[] {
  const ofMachine = readPolicyFile(organisationPolicyFile(), { isNamed: false });
  if (named === undefined || named === "") return ofMachine === undefined ? [] : [ofMachine];
  if (!isAbsolute(named)) throw new HostError("POLICY_INVALID", `SKILLHOST_POLICY must be an absolute path, not ${JSON.stringify(named)}.`);
  return [ofMachine, readPolicyFile(join(named), { isNamed: true })].filter((policy) => policy !== undefined);
}

function readPolicyFile(file: string, { isNamed }: { readonly isNamed: boolean }): OrganisationPolicy | undefined {
  const read = readTextFile(file, maxBytes);
  if (!read.ok) {
    if (read.diagnostic.code === "FILE_MISSING" && !isNamed) return undefined;
    throw unusable(file, read.diagnostic.message);
  }
  try {
    const { $schema: _, ...policy } = readFields<WithSchema>(JSON.parse(read.text), "policy", "POLICY_INVALID", readers);
    return { ...policy, file };
  } catch (error) {
    throw unusable(file, errorMessage(error));
  }
}

interface WithSchema extends PolicyFields {
  readonly $schema?: unknown;
}

const readers: FieldReaders<WithSchema> = { ...policyReaders, $schema: (value) => value };

function unusable(file: string, why: string): HostError {
  const advice = "Nothing runs until it is valid: ask the administrator of this machine.";
  return new HostError("POLICY_INVALID", `${file}, the policy of your organisation, cannot be used: ${why} ${advice}`);
}
