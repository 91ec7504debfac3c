import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isRecord } from "../base/json.ts";
import { fieldsReader, mustBe, readOneOf, readText } from "../base/read-fields.ts";
import { isInside } from "../io/confine-path.ts";
import { isBelowNodeModules, isInInstalledPackage } from "./installed-packages.ts";
import type { PackageRules } from "./package-rules.ts";
import type { PinPolicy } from "./pins/pins.ts";

/**
 * Whether signatures are checked. `off`: no check. `warn`: problems are reported, and everything loads. `require`: only content
 * that is signed by a trusted key, byte for byte, runs.
 */
export type TrustMode = "off" | "warn" | "require";

/**
 * The origin of a skill or tool. `user`: skills in the user's own folder for skillhost. `package`: skills of packages that npm
 * installed, by the project's lock. `project`: all other skills. `external`: tools that a program or a client pushes into a
 * session.
 */
export type TrustScope = "user" | "project" | "package" | "external";

export type SkillScope = Exclude<TrustScope, "external">;

export const trustModes: readonly TrustMode[] = ["off", "warn", "require"];
export const pinPolicies: readonly PinPolicy[] = ["off", "first-use", "require"];

export type TrustPolicy = Readonly<Record<TrustScope, TrustMode>>;
export type DefinitionPolicy = Readonly<Record<SkillScope, PinPolicy>>;

/** The required provenance of an npm package. */
export interface ProvenanceRule {
  /** Whether a package without provenance is refused. */
  readonly mode: TrustMode;
  /** The required repository, such as `https://github.com/acme/skills`. */
  readonly repository?: string | undefined;
  /** The required workflow in it, such as `.github/workflows/release.yml`. */
  readonly workflow?: string | undefined;
}

/** A partial policy from one source of settings. */
export interface PolicyPart extends PackageRules {
  readonly policy?: Partial<TrustPolicy> | undefined;
  readonly definitions?: Partial<DefinitionPolicy> | undefined;
  readonly provenance?: Readonly<Record<string, ProvenanceRule>> | undefined;
}

/** The part of a policy that is set by scope. */
type ScopePolicy = Pick<PolicyPart, "policy" | "definitions">;

/** The default: users trust their own files, and problems of packages are reported. */
export const defaultPolicy: TrustPolicy = Object.freeze({ user: "off", project: "off", package: "warn", external: "off" });
export const defaultDefinitions: DefinitionPolicy = Object.freeze({ user: "off", project: "off", package: "off" });

/**
 * A partial policy with implied values. A stricter mode for a project's skills also applies to its packages, unless the same
 * part sets another one, because both come with the checkout.
 */
export function withRaisedScopes({ policy, definitions }: PolicyPart): ScopePolicy {
  return {
    policy: policy && raised(trustModes, policy, defaultPolicy),
    definitions: definitions && raised(pinPolicies, definitions, defaultDefinitions),
  };
}

/** Combines two policies: the stricter mode per scope. Rules of provenance are combined for each package by `stricterRule`. */
export function stricterPolicy(a: ScopePolicy, b: ScopePolicy): ScopePolicy {
  return {
    policy: stricterBy(trustModes, a.policy, b.policy),
    definitions: stricterBy(pinPolicies, a.definitions, b.definitions),
  };
}

/**
 * Combines the rules that two sources have for one package, whatever patterns they name it by: the stricter mode, and the fields of both.
 * Where both have a field, that of the first counts.
 */
export function stricterRule(first: ProvenanceRule | undefined, second: ProvenanceRule | undefined): ProvenanceRule | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  const { repository = second.repository, workflow = second.workflow } = first;
  const mode = strictest(trustModes, first.mode, second.mode)!;
  return { mode, ...(repository !== undefined && { repository }), ...(workflow !== undefined && { workflow }) };
}

/** The effective part of a policy in a project's file: only stricter settings, so that a checkout cannot reduce the checks. */
export function onlyStricter({ policy = {}, definitions = {}, provenance = {}, ...rules }: PolicyPart): PolicyPart {
  return {
    // Rules about packages allow less, never more.
    ...rules,
    policy: above(trustModes, policy, defaultPolicy),
    definitions: above(pinPolicies, definitions, defaultDefinitions),
    provenance: Object.fromEntries(Object.entries(provenance).filter(([, { mode }]) => mode !== "off")),
  };
}

/** The scope of a skill by its real path. Undefined: a bundled skill of this package. */
export function scopeOfFolder(realFolder: string): SkillScope | undefined {
  if (ownPackage !== undefined && isInside(ownPackage, realFolder)) return undefined;
  if (isInside(userSkills(), realFolder)) return "user";
  return isBelowNodeModules(realFolder) && isInInstalledPackage(realFolder) ? "package" : "project";
}

/**
 * The mode of a folder in this scope. A folder in `node_modules` that no npm lock lists may be a package of another package
 * manager or part of the checkout, so the stricter of both modes applies.
 */
export function wordFor<T extends string>(
  order: readonly T[],
  words: Readonly<Record<SkillScope, T>>,
  scope: SkillScope,
  realFolder: string,
): T {
  if (scope !== "project" || !isBelowNodeModules(realFolder)) return words[scope];
  return strictest(order, words.project, words.package) ?? words.project;
}

// In a checkout of skillhost itself, skills belong to the project.
const ownPackage: string | undefined = /^.*[\\/]node_modules[\\/]skillhost(?=[\\/])/.exec(fileURLToPath(import.meta.url))?.[0];

// Cached, because it is slow to compute and checked for every skill.
let usualHome: string | undefined;

/** The user's own folder for skillhost. */
export function skillhostHome(): string {
  usualHome ??= join(homedir(), ".skillhost");
  return process.env["SKILLHOST_HOME"] || usualHome;
}

let usualSkills: { readonly home: string; readonly path: string } | undefined;

function userSkills(): string {
  const home = skillhostHome();
  if (usualSkills?.home !== home) usualSkills = { home, path: join(home, "skills") };
  return usualSkills.path;
}

/** The rule for a package: the one with its name, else the one for its scope (`@acme/*`), else `*`. */
export function ruleFor(name: string, rules: Readonly<Record<string, ProvenanceRule>> = {}): ProvenanceRule | undefined {
  const scope = name.startsWith("@") ? [`${name.slice(0, name.indexOf("/"))}/*`] : [];
  const pattern = [name, ...scope, "*"].find((each) => Object.hasOwn(rules, each));
  return pattern === undefined ? undefined : rules[pattern];
}

function stricterBy<K extends string, T extends string>(
  order: readonly T[],
  a: Partial<Readonly<Record<K, T>>> = {},
  b: Partial<Readonly<Record<K, T>>> = {},
): Partial<Readonly<Record<K, T>>> {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])] as K[];
  return Object.fromEntries(keys.map((key) => [key, strictest(order, a[key], b[key])])) as Partial<Record<K, T>>;
}

function strictest<T extends string>(order: readonly T[], a: T | undefined, b: T | undefined): T | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return order.indexOf(a) >= order.indexOf(b) ? a : b;
}

function above<K extends string, T extends string>(
  order: readonly T[],
  given: Partial<Readonly<Record<K, T>>>,
  usual: Readonly<Record<K, T>>,
): Partial<Readonly<Record<K, T>>> {
  const stricter = (Object.entries(given) as [K, T][]).filter(([key, mode]) => order.indexOf(mode) > order.indexOf(usual[key]));
  return Object.fromEntries(stricter) as Partial<Record<K, T>>;
}

function raised<K extends string, T extends string>(
  order: readonly T[],
  given: Partial<Readonly<Record<K | "project" | "package", T>>>,
  usual: Readonly<Record<"package", T>>,
): Partial<Readonly<Record<K | "project" | "package", T>>> {
  if (given.project === undefined || given.package !== undefined) return given;
  return { ...given, package: strictest(order, given.project, usual.package) };
}

const readMode: (value: unknown, path: string) => TrustMode = readOneOf(trustModes);
const readPins: (value: unknown, path: string) => PinPolicy = readOneOf(pinPolicies);

/** A mode per scope, or one for all scopes. */
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

/** Rules by package name, `@scope/*`, or `*`. A rule may be only a mode. */
export function readProvenance(value: unknown, path: string): Readonly<Record<string, ProvenanceRule>> {
  if (!isRecord(value)) return mustBe(path, "an object of rules by package");
  return Object.fromEntries(Object.entries(value).map(([name, rule]) => [name, readRule(rule, `${path}.${name}`)]));
}

function readRule(value: unknown, path: string): ProvenanceRule {
  if (typeof value === "string") return { mode: readMode(value, path) };
  const rule = fieldsReader<Partial<ProvenanceRule>>({ mode: readMode, repository: readText, workflow: readText })(value, path);
  return { mode: "require", ...rule };
}
