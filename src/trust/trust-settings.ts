import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { FolderChoice } from "./folder-trust.ts";
import type { PinPolicy } from "./pins/pins.ts";
import { createVerifiedSignatures, type VerifiedSignatures } from "./skill-signature.ts";
import { SkillTrust } from "./skill-trust.ts";
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
  stricterRule,
  type TrustMode,
  type TrustPolicy,
  withRaisedScopes,
  wordFor,
} from "./trust-policy.ts";
import { createTrustedKeys, parseKeyList, type TrustedKeys } from "./trusted-keys.ts";

export interface TrustOptions {
  /** When signatures are looked at, for all scopes or by scope. Default: `warn` for packages, else `off`. */
  readonly policy?: TrustMode | Partial<TrustPolicy> | undefined;
  /** When the tool definitions of skills are trusted, like `mcp.pins` for servers. Default: `off`, which trusts all. */
  readonly definitions?: PinPolicy | Partial<DefinitionPolicy> | undefined;
  /** The required provenance of npm packages, by name, `@scope/*` or `*`. Default: nothing. */
  readonly provenance?: Readonly<Record<string, TrustMode | ProvenanceRule>> | undefined;
  /** Public keys, as printed by `skillhost keys export`, that are trusted in addition to the user's own. */
  readonly keys?: readonly string[] | undefined;
  /** The only keys that skills of the project and of packages may be signed with. Naming a key here does not make it trusted. */
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

/** The effective settings: the strictest of those of the program, the configuration and the user. */
export interface TrustSettings {
  readonly policy: TrustPolicy;
  readonly definitions: DefinitionPolicy;
  readonly keys: TrustedKeys;
  readonly verified: VerifiedSignatures;
  /** Undefined: signatures of skills are never checked. */
  readonly skills: SkillTrust | undefined;
  /** When the tool definitions of a skill in this folder are trusted. */
  definitionsFor(folder: string): PinPolicy;
  /** The required provenance of an npm package. Undefined: none. */
  provenanceRule(packageName: string): ProvenanceRule | undefined;
}

/**
 * Resolves the trust settings. The user's file is always read, so that neither a program nor a project can reduce the checks.
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
  const part = toPart(asked);
  const joined = stricterPolicy(withRaisedScopes(part), withRaisedScopes(file));
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
    skills: isLooking ? new SkillTrust({ policy, keys: trusted, verified }) : undefined,
    definitionsFor(folder) {
      const realFolder = isPinning ? realPathOf(folder) : folder;
      const scope = isPinning ? scopeOfFolder(realFolder) : undefined;
      return scope === undefined ? "off" : wordFor(pinPolicies, definitions, scope, realFolder);
    },
    // A specific rule of a project must not replace a general one of the user.
    provenanceRule: (name) => stricterRule(ruleFor(name, file.provenance), ruleFor(name, part.provenance)),
  };
}

/** The settings with all defaults applied. */
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
    // Missing: it will not be loaded.
    return folder;
  }
}
