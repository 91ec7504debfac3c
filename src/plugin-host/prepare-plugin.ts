import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { explainRange } from "../base/version-range.ts";
import type { CodePluginManifest } from "../formats/plugins/code-plugin-manifest.ts";
import { createScope, type OwnedScope } from "../io/scope.ts";
import { copyJson } from "../tools/json-copy.ts";
import { compileSchema } from "../tools/schema/json-schema-validator.ts";
import { isLibrarySchema, standardValidator, toJsonSchema } from "../tools/schema/standard-schema.ts";
import type { ArgumentIssue, JsonSchema, Validated } from "../tools/tool.ts";
import { sourceIdentity } from "../trust/source-identity.ts";
import { type ActivationLimits, withinActivation } from "./activate.ts";
import { isBundleFolder } from "./bundles/load-bundle.ts";
import type { Plugin } from "./define-plugin.ts";
import { type FindOptions, filesOfFailure, findPlugin, type LocatedPlugin, locatePlugin } from "./locate-plugin.ts";

/** A plugin with what its host says about it. */
export interface PluginUse {
  /** The plugin, or the specifier of its module. */
  readonly use: Plugin | string;
  /** Its configuration: what its `configSchema` asks for. */
  readonly config?: unknown;
}

/** A plugin that may be activated as far as it is concerned: found, fit for this host, and rightly configured. */
export interface Candidate {
  readonly plugin: Plugin;
  readonly version: string | undefined;
  readonly requires: readonly Requirement[];
  readonly config: unknown;
  /** Of its module, where it comes by one: what approvals of its tools are bound to. */
  readonly identity: string | undefined;
  /** What it is made of and may change. */
  readonly files: ReadonlySet<string>;
  /** What its module opened while it was evaluated. */
  readonly scope: OwnedScope;
  readonly diagnostics: readonly Diagnostic[];
}

/** What preparing came to. Of a failure, the name if anything told it, and the files that may mend it. */
export type PreparedPlugin =
  | { readonly kind: "ready"; readonly candidate: Candidate }
  | {
      readonly kind: "failed";
      readonly name: string | undefined;
      readonly diagnostics: readonly Diagnostic[];
      readonly files: ReadonlySet<string>;
      readonly scope: OwnedScope;
    };

/** Says which plugins may run, by the path of the module or folder. */
export interface PluginConsent {
  mayRun(path: string): boolean;
  explain(path: string): Diagnostic;
}

export interface PrepareOptions extends Omit<FindOptions, "onDiagnostic"> {
  readonly consent?: PluginConsent | undefined;
  readonly hostVersion: string;
}

/**
 * Finds a plugin and checks what can be checked before any of its activation: first what its manifest says, while nothing
 * of it has run, then what its code says. Never rejects.
 */
export async function preparePlugin(
  { use, config }: PluginUse,
  options: PrepareOptions,
  limits: ActivationLimits,
): Promise<PreparedPlugin> {
  const attempt: Attempt = { scope: createScope(), diagnostics: [], files: new Set(), name: undefined };
  try {
    const found =
      typeof use === "string"
        ? await find(use, config, options, limits, attempt)
        : { plugin: use, manifest: undefined, config, identity: undefined };
    const { plugin, manifest } = found;
    attempt.name = plugin.name;
    checkEngine(plugin.name, plugin.engines, options.hostVersion);
    const { scope, files } = attempt;
    const checked = await configOf(plugin.name, plugin.configSchema, found.config, limits);
    const version = plugin.version ?? manifest?.version;
    const requires = requirementsOf(manifest?.requires, plugin.requires);
    const { diagnostics } = attempt;
    return {
      kind: "ready",
      candidate: { plugin, version, requires, config: checked, identity: found.identity, files, scope, diagnostics },
    };
  } catch (error) {
    const { name, files, scope, diagnostics } = attempt;
    for (const file of filesOfFailure(error)) files.add(file);
    return { kind: "failed", name, diagnostics: [...diagnostics, failure(use, name, error)], files, scope };
  }
}

interface Attempt {
  readonly scope: OwnedScope;
  readonly diagnostics: Diagnostic[];
  readonly files: Set<string>;
  name: string | undefined;
}

interface Found {
  readonly plugin: Plugin;
  readonly manifest: CodePluginManifest | undefined;
  readonly config: unknown;
  readonly identity: string | undefined;
}

async function find(
  specifier: string,
  given: unknown,
  options: PrepareOptions,
  limits: ActivationLimits,
  attempt: Attempt,
): Promise<Found> {
  const { scope, diagnostics, files } = attempt;
  const onDiagnostic = (found: Diagnostic): void => void diagnostics.push(found);
  const { workingDirectory } = options;
  const located = locatePlugin(specifier, { workingDirectory, onDiagnostic, files, isBundle: isBundleFolder });
  const { manifest } = located;
  attempt.name = manifest?.name;
  assertMayRun(specifier, located, options);
  const called = manifest?.name ?? specifier;
  checkEngine(called, manifest?.engines, options.hostVersion);
  const config = manifest?.configSchema === undefined ? given : await configOf(called, manifest.configSchema, given, limits);
  const work = findPlugin(specifier, located, { ...options, onDiagnostic }, scope);
  const { plugin, files: own } = await withinActivation(work, limits);
  for (const file of own) files.add(file);
  if (manifest?.name !== undefined && manifest.name !== plugin.name) {
    throw new HostError(
      "PLUGIN_INVALID",
      `Its manifest has the name "${manifest.name}", but its code has "${plugin.name}". Use the same name.`,
    );
  }
  return { plugin, manifest, config, identity: located.kind === "bundled" ? undefined : sourceIdentity(located.path) };
}

/**
 * A package is reached through the folder that it is installed for, also where a link there leads elsewhere.
 * @throws HostError `FOLDER_UNTRUSTED`
 */
function assertMayRun(specifier: string, { kind, path }: LocatedPlugin, { consent, workingDirectory }: PrepareOptions): void {
  if (consent === undefined || kind === "bundled" || consent.mayRun(path)) return;
  const isPath = /^(?:file:|[.~/\\]|[a-zA-Z]:)/.test(specifier);
  if (!isPath && consent.mayRun(workingDirectory)) return;
  const { code, message } = consent.explain(isPath ? path : workingDirectory);
  throw new HostError(code, message);
}

/** @throws HostError `PLUGIN_ENGINE` */
function checkEngine(name: string, engines: Readonly<Record<string, string>> | undefined, hostVersion: string): void {
  const range = engines !== undefined && Object.hasOwn(engines, "skillhost") ? engines["skillhost"] : undefined;
  if (range === undefined) return;
  const problem = explainRange(range, hostVersion);
  if (problem === undefined) return;
  const advice = "Update skillhost, or install a version of the plugin that supports it.";
  const what = problem.startsWith("version ") ? `this is skillhost ${hostVersion}. ${advice}` : `${problem}.`;
  throw new HostError("PLUGIN_ENGINE", `Plugin "${name}" requires skillhost ${range}, but ${what}`);
}

/** @throws HostError `PLUGIN_CONFIG` */
async function configOf(name: string, schema: object | undefined, given: unknown, limits: ActivationLimits): Promise<unknown> {
  const checked = schema === undefined ? plainConfig(given) : await withinActivation(checkConfig(schema, given), limits);
  if (checked.ok) return checked.value;
  const where = 'Fix "config" where the plugin is listed.';
  throw new HostError("PLUGIN_CONFIG", `The configuration of plugin "${name}" is not valid: ${checked.problem}. ${where}`);
}

const ownWords: ReadonlySet<string> = new Set(["PLUGIN_ENGINE", "PLUGIN_CONFIG"]);
const found = ["PLUGIN_NOT_FOUND", "PLUGIN_INVALID", "PLUGIN_MANIFEST"];
const codes: ReadonlySet<string> = new Set(["PLUGIN_UNTRUSTED", "FOLDER_UNTRUSTED", ...ownWords, ...found]);

function failure(use: Plugin | string, name: string | undefined, error: unknown): Diagnostic {
  const code = error instanceof HostError && codes.has(error.code) ? error.code : "PLUGIN_ACTIVATION";
  const source = name ?? (typeof use === "string" ? use : use.name);
  const what = ownWords.has(code) ? "" : `Plugin "${typeof use === "string" ? use : use.name}" cannot be loaded: `;
  // A host that was ended before its plugins were there is no fault of theirs.
  const severity = error instanceof HostError && error.code === "HOST_CLOSED" ? "info" : "error";
  return { severity, code, source, message: `${what}${errorMessage(error)}` };
}

/** What checking a configuration came to: the configuration with its defaults, or what is wrong with it, in words. */
type ConfigOutcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

/**
 * Checks a configuration by a schema and fills in defaults. Only the schema's own code runs, where it is that of a library:
 * nothing of a plugin's activation. Never rejects.
 */
async function checkConfig(schema: object, config: unknown): Promise<ConfigOutcome> {
  try {
    const validated = await validatorFor(schema)(config ?? {});
    if (!validated.ok) return { ok: false, problem: describe(validated.issues) };
    // What a library makes of it may be more than data: its own to keep.
    return isLibrarySchema(schema) ? validated : plainConfig(validated.value);
  } catch (error) {
    return { ok: false, problem: `its configSchema is not valid: ${errorMessage(error)}` };
  }
}

/** A configuration without a schema: data, so that nobody changes under a plugin what it was given. */
function plainConfig(config: unknown): ConfigOutcome {
  if (config === undefined) return { ok: true, value: Object.freeze({}) };
  const copy = copyJson(config);
  if (copy.ok) return copy;
  return { ok: false, problem: `${copy.path === "" ? "it" : copy.path} ${copy.reason}` };
}

function validatorFor(schema: object): (value: unknown) => Validated | Promise<Validated> {
  if (!isLibrarySchema(schema)) return compiled(schema as JsonSchema);
  return standardValidator(schema) ?? compiled(toJsonSchema(schema).schema);
}

/** A schema that cannot be compiled says so to its author, in place of what it says of arguments. */
function compiled(schema: JsonSchema): (value: unknown) => Validated | Promise<Validated> {
  const problems: string[] = [];
  const validate = compileSchema(schema, { onDiagnostic: ({ message }) => void problems.push(message) });
  return (value) => {
    const validated = validate(value);
    if (problems[0] !== undefined) throw new Error(problems[0]);
    return validated;
  };
}

function describe(issues: readonly ArgumentIssue[]): string {
  return issues.map(({ path, message }) => (path === "" ? message : `${path} ${message}`)).join("; ");
}

/** What one plugin needs of another. */
export interface Requirement {
  readonly name: string;
  readonly range: string;
}

/** How a plugin that is required stands. `absent`: no plugin has the name; `hint` says what to do about it. */
export type RequirementStatus =
  | { readonly kind: "active"; readonly version: string | undefined }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "absent"; readonly hint: string };

/** What a plugin requires by its code and by its manifest. */
function requirementsOf(...maps: readonly (Readonly<Record<string, string>> | undefined)[]): readonly Requirement[] {
  return maps.flatMap((map) => Object.entries(map ?? {}).map(([name, range]) => ({ name, range })));
}

/** The first of its requirements that is not met, in words that go on from the plugin's name; undefined: all are. */
export function unmetRequirement(requires: readonly Requirement[], standingOf: (name: string) => RequirementStatus): string | undefined {
  for (const { name, range } of requires) {
    const standing = standingOf(name);
    const needs = `requires "${name}" ${range}`;
    if (standing.kind === "absent") return `${needs}, but no plugin has that name. ${standing.hint}`;
    if (standing.kind === "failed") return `${needs}, which failed: ${standing.reason}`;
    const problem = explainRange(range, standing.version);
    if (problem !== undefined) return `${needs}, but ${problem}.`;
  }
  return undefined;
}
