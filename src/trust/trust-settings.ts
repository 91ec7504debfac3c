import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { FolderChoice } from "./folder-trust.ts";
import { readOrganisationPolicies } from "./organisation-policy.ts";
import { type PackageSource, readPackagePatterns, readRegistries, sourceFault } from "./package-rules.ts";
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
import { createTrustedKeys, type PublicKey, parseKeyList, type TrustedKeys } from "./trusted-keys.ts";

/**
 * What skills must fulfil before their code runs.
 *
 * @example
 * ```ts
 * const options: TrustOptions = { policy: "require", registries: ["https://npm.example.org/"] };
 * ```
 */
export interface TrustOptions {
  /** When signatures are looked at, for all scopes or by scope. Default: `warn` for packages, else `off`. */
  readonly policy?: TrustMode | Partial<TrustPolicy> | undefined;
  /** When the tool definitions of skills are trusted, like `mcp.pins` for servers. Default: `off`, which trusts all. */
  readonly definitions?: PinPolicy | Partial<DefinitionPolicy> | undefined;
  /** The required provenance of npm packages, by name, `@scope/*` or `*`. Default: nothing. */
  readonly provenance?: Readonly<Record<string, TrustMode | ProvenanceRule>> | undefined;
  /** The beginnings of the addresses that packages may come from. Default: any. */
  readonly registries?: readonly string[] | undefined;
  /** The packages that may be installed: names and patterns such as `@acme/*`. Default: any. */
  readonly packages?: readonly string[] | undefined;
  /** Packages that must not be installed. */
  readonly deniedPackages?: readonly string[] | undefined;
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

/** The effective settings: the strictest of those of the organisation, the user, the configuration and the program. */
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
  /** Why a package must not be installed, and who says so. Undefined: it may. */
  sourceFault(source: PackageSource): string | undefined;
}

/**
 * Resolves the trust settings. The files of the organisation and the user are always read, so that neither a program nor a project can
 * reduce the checks.
 * @throws HostError `POLICY_INVALID`, `TRUST_FILE_INVALID`, `KEY_INVALID`.
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
  const organisation = readOrganisationPolicies();
  // Each layer is asked by itself: a specific rule of one must not replace a general one of another.
  const layers: readonly Layer[] = [
    ...organisation.map((each) => ({ part: each, from: `The policy of your organisation (${each.file})` })),
    { part: file, from: `Your policy (${trustFileIn(directory)})` },
    { part, from: "The policy of this project or program" },
  ];
  const joined = layers.map((layer) => withRaisedScopes(layer.part)).reduce(stricterPolicy);
  const policy: TrustPolicy = Object.freeze({ ...defaultPolicy, ...joined.policy });
  const definitions: DefinitionPolicy = Object.freeze({ ...defaultDefinitions, ...joined.definitions });
  const trusted = createTrustedKeys({
    keys: [...organisation.flatMap((each) => each.keys ?? []), ...(file.keys ?? []), ...parseKeyList(keys, "trust.keys")],
    revoked: [...(file.revoked ?? []), ...organisation.flatMap((each) => each.revoked ?? [])],
    onlyKeys: inAll([...organisation.map((each) => each.onlyKeys), file.onlyKeys, onlyKeys]),
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
    provenanceRule: (name) => layers.map((layer) => ruleFor(name, layer.part.provenance)).reduce(stricterRule, undefined),
    sourceFault(source) {
      for (const layer of layers) {
        const fault = sourceFault(source, layer.part);
        if (fault !== undefined) return `${layer.from} does not allow it: ${fault}`;
      }
      return undefined;
    },
  };
}

/** The settings of one source, and how errors name it. */
interface Layer {
  readonly part: PolicyPart;
  readonly from: string;
}

/** The keys that are in each of these lists. Undefined: there is no list. */
function inAll(lists: readonly (readonly string[] | undefined)[]): readonly PublicKey[] | undefined {
  const given = lists.filter((list) => list !== undefined).map((list) => parseKeyList(list, "trust.onlyKeys"));
  const [first, ...others] = given;
  return first?.filter(({ id }) => others.every((list) => list.some((key) => key.id === id)));
}

/** The settings with all defaults applied. */
function toPart({ policy, definitions, provenance, registries, packages, deniedPackages }: TrustOptions): PolicyPart {
  return {
    registries: registries && readRegistries(registries, "trust.registries"),
    packages: packages && readPackagePatterns(packages, "trust.packages"),
    deniedPackages: deniedPackages && readPackagePatterns(deniedPackages, "trust.deniedPackages"),
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
