import { realpathSync } from "node:fs";
import { join } from "node:path";
import { createVerifiedSignatures, type VerifiedSignatures } from "./check-signature.ts";
import type { FolderChoice } from "./folder-trust.ts";
import type { PinPolicy } from "./pins/pins.ts";
import { createSkillTrust, type SkillTrust } from "./skill-trust.ts";
import { readTrustFile, trustFileIn } from "./trust-file.ts";
import {
  type DefinitionPolicy,
  defaultDefinitions,
  defaultPolicy,
  type PolicyPart,
  type ProvenanceRule,
  pinPolicies,
  readDefinitions,
  readPolicy,
  readProvenance,
  ruleFor,
  type SkillScope,
  scopeOfFolder,
  skillhostHome,
  stricterPolicy,
  type TrustMode,
  type TrustPolicy,
  withRaisedScopes,
  wordFor,
} from "./trust-policy.ts";
import { createTrustedKeys, parseKeyList, type TrustedKeys } from "./trusted-keys.ts";

export interface TrustOptions {
  /** When signatures are looked at, for all scopes or by scope. Default: `warn` for packages, else `off`. */
  readonly policy?: TrustMode | Partial<TrustPolicy> | undefined;
  /** When the definitions of skills' tools are believed, as `mcp.pins` has it for servers. Default: `off`, always. */
  readonly definitions?: PinPolicy | Partial<DefinitionPolicy> | undefined;
  /** What is asked of where npm packages were built, by name, `@scope/*` or `*`. Default: nothing. */
  readonly provenance?: Readonly<Record<string, TrustMode | ProvenanceRule>> | undefined;
  /** Public keys, as `skillhost keys export` prints them, that are trusted beside the user's own. */
  readonly keys?: readonly string[] | undefined;
  /** The only keys that skills of the project and of packages may be signed with. They are not trusted by being named here. */
  readonly onlyKeys?: readonly string[] | undefined;
  /**
   * The folders whose code may run, beside those that the user trusts (`skillhost trust`, `SKILLHOST_TRUST`) and the user's own;
   * `true`: any. Default: those that the options of this program name. Give it when other options come from somewhere else,
   * such as from a file of a project: then nothing runs because it is named there.
   */
  readonly folders?: FolderChoice | undefined;
  /** The folder with the user's `trust.json`. Default: the one that `SKILLHOST_HOME` names, or `~/.skillhost`. */
  readonly directory?: string | undefined;
}

/** What holds: what a program, a configuration and the user have asked for, the strictest of each. */
export interface TrustSettings {
  readonly policy: TrustPolicy;
  readonly definitions: DefinitionPolicy;
  readonly keys: TrustedKeys;
  readonly verified: VerifiedSignatures;
  /** Undefined: no signature of a skill is ever looked at. */
  readonly skills: SkillTrust | undefined;
  /** When the definitions of tools of a skill in this folder are believed. */
  definitionsFor(folder: string): PinPolicy;
  /** What is asked of where an npm package was built. Undefined: nothing. */
  provenanceRule(packageName: string): ProvenanceRule | undefined;
}

/**
 * Puts together what is trusted. The user's file is read, so that neither a program nor a project can have less checked.
 * @throws HostError `TRUST_FILE_INVALID`, `KEY_INVALID`.
 */
export function loadTrustSettings({
  keys = [],
  onlyKeys,
  folders: _,
  directory = skillhostHome(),
  ...asked
}: TrustOptions = {}): TrustSettings {
  const file = readTrustFile(trustFileIn(directory));
  const joined = stricterPolicy(withRaisedScopes(toPart(asked)), withRaisedScopes(file));
  const policy: TrustPolicy = Object.freeze({ ...defaultPolicy, ...joined.policy });
  const definitions: DefinitionPolicy = Object.freeze({ ...defaultDefinitions, ...joined.definitions });
  const trusted = createTrustedKeys({
    keys: [...(file.keys ?? []), ...parseKeyList(keys, "trust.keys")],
    revoked: file.revoked ?? [],
    onlyKeys: onlyKeys && parseKeyList(onlyKeys, "trust.onlyKeys"),
  });
  const verified = createVerifiedSignatures(join(directory, "verified-signatures"));
  const scopes: readonly SkillScope[] = ["user", "project", "package"];
  const isPinning = scopes.some((scope) => definitions[scope] !== "off");
  const isLooking = scopes.some((scope) => policy[scope] !== "off");
  return {
    policy,
    definitions,
    keys: trusted,
    verified,
    skills: isLooking ? createSkillTrust({ policy, keys: trusted, verified }) : undefined,
    definitionsFor(folder) {
      const realFolder = isPinning ? realPathOf(folder) : folder;
      const scope = isPinning ? scopeOfFolder(realFolder) : undefined;
      return scope === undefined ? "off" : wordFor(pinPolicies, definitions, scope, realFolder);
    },
    provenanceRule: (name) => ruleFor(name, joined.provenance),
  };
}

/** The same with every word spelled out. */
function toPart({ policy, definitions, provenance }: TrustOptions): PolicyPart {
  return {
    policy: policy === undefined ? undefined : readPolicy(policy, "trust.policy"),
    definitions: definitions === undefined ? undefined : readDefinitions(definitions, "trust.definitions"),
    provenance: provenance === undefined ? undefined : readProvenance(provenance, "trust.provenance"),
  };
}

function realPathOf(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    // Gone: it will not be loaded.
    return folder;
  }
}
