import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isRecord } from "../base/json.ts";
import { fieldsReader, mustBe, readOneOf, readText } from "../base/read-fields.ts";
import { isInside } from "../io/confine-path.ts";
import { isBelowNodeModules, isInInstalledPackage } from "./installed-packages.ts";
import type { PinPolicy } from "./pins/pins.ts";

/**
 * Whether signatures are looked at. `off`: they are not. `warn`: what is wrong is told, and everything loads.
 * `require`: what is not signed by somebody trusted, byte for byte, does not run.
 */
export type TrustMode = "off" | "warn" | "require";

/**
 * Where something comes from. `user`: skills in the user's own folder for skillhost. `package`: skills of packages that
 * npm installed, as the project's lock says. `project`: all other skills. `external`: tools that a program or a client
 * pushes into a session.
 */
export type TrustScope = "user" | "project" | "package" | "external";

export type SkillScope = Exclude<TrustScope, "external">;

export const trustModes: readonly TrustMode[] = ["off", "warn", "require"];
export const pinPolicies: readonly PinPolicy[] = ["off", "first-use", "require"];

export type TrustPolicy = Readonly<Record<TrustScope, TrustMode>>;
export type DefinitionPolicy = Readonly<Record<SkillScope, PinPolicy>>;

/** What is to be proven of where an npm package was built. */
export interface ProvenanceRule {
  /** Whether a package without provenance is refused. */
  readonly mode: TrustMode;
  /** The repository that it must be built from, such as `https://github.com/acme/skills`. */
  readonly repository?: string | undefined;
  /** The workflow in it, such as `.github/workflows/release.yml`. */
  readonly workflow?: string | undefined;
}

/** A part of a policy, as somebody gives it. */
export interface PolicyPart {
  readonly policy?: Partial<TrustPolicy> | undefined;
  readonly definitions?: Partial<DefinitionPolicy> | undefined;
  readonly provenance?: Readonly<Record<string, ProvenanceRule>> | undefined;
}

/** What holds where nobody says anything: people's own files are theirs, and of packages it is told what is wrong. */
export const defaultPolicy: TrustPolicy = Object.freeze({ user: "off", project: "off", package: "warn", external: "off" });
export const defaultDefinitions: DefinitionPolicy = Object.freeze({ user: "off", project: "off", package: "off" });

/**
 * A part of a policy with what follows from it. Whoever asks for more of a project's skills asks for it of its packages too,
 * unless the same part says otherwise: both come with the checkout.
 */
export function withRaisedScopes({ policy, definitions, provenance }: PolicyPart): PolicyPart {
  return {
    policy: policy && raised(trustModes, policy, defaultPolicy),
    definitions: definitions && raised(pinPolicies, definitions, defaultDefinitions),
    provenance,
  };
}

/** Two that both hold: of each scope the stricter word. */
export function stricterPolicy(a: PolicyPart, b: PolicyPart): PolicyPart {
  return {
    policy: stricterBy(trustModes, a.policy, b.policy),
    definitions: stricterBy(pinPolicies, a.definitions, b.definitions),
    provenance: joinRules(a.provenance, b.provenance),
  };
}

/**
 * What a file that comes with a project may ask for: only what is stricter than it would be without. Who checks out a
 * project must not have less checked by that.
 */
export function onlyStricter({ policy = {}, definitions = {}, provenance = {} }: PolicyPart): PolicyPart {
  return {
    policy: above(trustModes, policy, defaultPolicy),
    definitions: above(pinPolicies, definitions, defaultDefinitions),
    provenance: Object.fromEntries(Object.entries(provenance).filter(([, { mode }]) => mode !== "off")),
  };
}

/** Whose a skill is, by where its folder really lies. Undefined: it came with this very package, like the host itself. */
export function scopeOfFolder(realFolder: string): SkillScope | undefined {
  if (ownPackage !== undefined && isInside(ownPackage, realFolder)) return undefined;
  if (isInside(join(skillhostHome(), "skills"), realFolder)) return "user";
  return isBelowNodeModules(realFolder) && isInInstalledPackage(realFolder) ? "package" : "project";
}

/**
 * What holds for a folder of this scope. What lies in a `node_modules` that no lock of npm accounts for may be a package of
 * another package manager or a part of the checkout, so the stricter of both words holds.
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

// In a checkout of its own, skills are those of a project.
const ownPackage: string | undefined = /^.*[\\/]node_modules[\\/]skillhost(?=[\\/])/.exec(fileURLToPath(import.meta.url))?.[0];

// Finding it out takes a while, and every skill is held against it.
let usualHome: string | undefined;

/** The user's own folder for skillhost. */
export function skillhostHome(): string {
  usualHome ??= join(homedir(), ".skillhost");
  return process.env["SKILLHOST_HOME"] || usualHome;
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

/** Both rules for a package hold: the stricter mode, and what either names; where both name one, the first part's. */
function joinRules(a: PolicyPart["provenance"] = {}, b: PolicyPart["provenance"] = {}): Readonly<Record<string, ProvenanceRule>> {
  const joined = new Map(Object.entries(a));
  for (const [pattern, rule] of Object.entries(b)) {
    const first = joined.get(pattern);
    joined.set(pattern, first === undefined ? rule : { ...rule, ...first, mode: strictest(trustModes, first.mode, rule.mode)! });
  }
  return Object.fromEntries(joined);
}

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
  if (!isRecord(value)) return mustBe(path, "an object of rules by package");
  return Object.fromEntries(Object.entries(value).map(([name, rule]) => [name, readRule(rule, `${path}.${name}`)]));
}

function readRule(value: unknown, path: string): ProvenanceRule {
  if (typeof value === "string") return { mode: readMode(value, path) };
  const rule = fieldsReader<Partial<ProvenanceRule>>({ mode: readMode, repository: readText, workflow: readText })(value, path);
  return { mode: "require", ...rule };
}
