import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { explainRange } from "../base/version-range.ts";
import { waitFor } from "../base/wait.ts";
import type { CodePluginManifest } from "../formats/plugins/code-plugin-manifest.ts";
import { createScope, type OwnedScope } from "../io/scope.ts";
import { copyJson } from "../tools/json-copy.ts";
import { compileSchema } from "../tools/schema/json-schema-validator.ts";
import { isLibrarySchema, standardValidator, toJsonSchema } from "../tools/schema/standard-schema.ts";
import type { ArgumentIssue, JsonSchema, Validated } from "../tools/tool.ts";
import { sourceIdentity } from "../trust/source-identity.ts";
import { type Contributions, collectContributions, type PluginPlace } from "./contributions.ts";
import type { Plugin } from "./define-plugin.ts";
import type { FindOptions, LocatedPlugin } from "./locate-plugin.ts";

/** A plugin and its configuration. */
export interface PluginUse {
  /** The plugin, or the specifier of its module. */
  readonly use: Plugin | string;
  /** Its configuration, as its `configSchema` describes it. */
  readonly config?: unknown;
}

/** A plugin that was found, supports this host and has a valid configuration. */
export interface Candidate {
  readonly plugin: Plugin;
  readonly version: string | undefined;
  readonly requires: readonly Requirement[];
  readonly config: unknown;
  /** The identity of its module, to which approvals of its tools are bound. Undefined: a program passed the plugin itself. */
  readonly identity: string | undefined;
  /** Its files that can change. */
  readonly files: ReadonlySet<string>;
  /** Owns what its module opened during evaluation. */
  readonly scope: OwnedScope;
  readonly diagnostics: readonly Diagnostic[];
}

/** The outcome of the preparation. A failure has the name, if it is known, and the files whose change may fix it. */
export type PreparedPlugin =
  | { readonly kind: "ready"; readonly candidate: Candidate }
  | {
      readonly kind: "failed";
      readonly name: string | undefined;
      readonly diagnostics: readonly Diagnostic[];
      readonly files: ReadonlySet<string>;
      readonly scope: OwnedScope;
    };

/** Decides which plugins may run, by the path of the module or folder. */
export interface PluginConsent {
  mayRun(path: string): boolean;
  explain(path: string): Diagnostic;
}

export interface PrepareOptions extends Omit<FindOptions, "onDiagnostic"> {
  readonly consent?: PluginConsent | undefined;
  readonly hostVersion: string;
}

/**
 * Finds a plugin and checks everything that can be checked before its activation: first its manifest, before any of its code
 * runs, then its code. Never rejects.
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
    if (typeof use === "string") for (const file of (await import("./locate-plugin.ts")).filesOfFailure(error)) files.add(file);
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
  // Most starts have no plugin that must be found.
  const { findPlugin, locatePlugin } = await import("./locate-plugin.ts");
  const { isBundleFolder } = await import("./bundles/load-bundle.ts");
  const located = locatePlugin(specifier, { workingDirectory, onDiagnostic, files, isBundle: isBundleFolder });
  const { manifest } = located;
  attempt.name = manifest?.name;
  assertMayRun(specifier, located, options);
  const name = manifest?.name ?? specifier;
  checkEngine(name, manifest?.engines, options.hostVersion);
  const config = manifest?.configSchema === undefined ? given : await configOf(name, manifest.configSchema, given, limits);
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
 * An installed package may run if the folder that it is installed for is trusted, even when a link leads elsewhere.
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

const selfExplaining: ReadonlySet<string> = new Set(["PLUGIN_ENGINE", "PLUGIN_CONFIG"]);
const found = ["PLUGIN_NOT_FOUND", "PLUGIN_INVALID", "PLUGIN_MANIFEST"];
const codes: ReadonlySet<string> = new Set(["PLUGIN_UNTRUSTED", "FOLDER_UNTRUSTED", ...selfExplaining, ...found]);

function failure(use: Plugin | string, name: string | undefined, error: unknown): Diagnostic {
  const code = error instanceof HostError && codes.has(error.code) ? error.code : "PLUGIN_ACTIVATION";
  const source = name ?? (typeof use === "string" ? use : use.name);
  const what = selfExplaining.has(code) ? "" : `Plugin "${typeof use === "string" ? use : use.name}" cannot be loaded: `;
  // A host that closes during its start is not an error of the plugin.
  const severity = error instanceof HostError && error.code === "HOST_CLOSED" ? "info" : "error";
  return { severity, code, source, message: `${what}${errorMessage(error)}` };
}

/** A configuration with its defaults, or its problem as text. */
type ConfigOutcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

/**
 * Checks a configuration with a schema, and adds defaults. Runs at most the code of a schema library, nothing of the plugin's
 * activation. Never rejects.
 */
async function checkConfig(schema: object, config: unknown): Promise<ConfigOutcome> {
  try {
    const validated = await validatorFor(schema)(config ?? {});
    if (!validated.ok) return { ok: false, problem: describe(validated.issues) };
    // The output of a library may contain more than data, so it is not copied.
    return isLibrarySchema(schema) ? validated : plainConfig(validated.value);
  } catch (error) {
    return { ok: false, problem: `its configSchema is not valid: ${errorMessage(error)}` };
  }
}

/** Copies a configuration as data, so that later changes of the original do not affect the plugin. */
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

/** Compiles a schema. For its author, an invalid schema is an error, not a problem of the arguments. */
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

/** A plugin that another plugin requires. */
export interface Requirement {
  readonly name: string;
  readonly range: string;
}

/** The status of a required plugin. `absent`: no plugin has the name; `hint` says how to fix that. */
export type RequirementStatus =
  | { readonly kind: "active"; readonly version: string | undefined }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "absent"; readonly hint: string };

/** The requirements of a plugin's manifest and code. */
function requirementsOf(...maps: readonly (Readonly<Record<string, string>> | undefined)[]): readonly Requirement[] {
  return maps.flatMap((map) => Object.entries(map ?? {}).map(([name, range]) => ({ name, range })));
}

/** Describes the first unmet requirement, as text that continues after the plugin's name. Undefined: all are met. */
export function unmetRequirement(requires: readonly Requirement[], statusOf: (name: string) => RequirementStatus): string | undefined {
  for (const { name, range } of requires) {
    const status = statusOf(name);
    const needs = `requires "${name}" ${range}`;
    if (status.kind === "absent") return `${needs}, but no plugin has that name. ${status.hint}`;
    if (status.kind === "failed") return `${needs}, which failed: ${status.reason}`;
    const problem = explainRange(range, status.version);
    if (problem !== undefined) return `${needs}, but ${problem}.`;
  }
  return undefined;
}

/** The outcome of an activation. A failure is a value, so that dependent plugins can quote the reason. */
export type Activation =
  | { readonly kind: "active"; readonly contributions: Contributions; readonly scope: OwnedScope }
  | { readonly kind: "failed"; readonly diagnostics: readonly Diagnostic[] };

export interface ActivationLimits {
  /** Milliseconds for the activation, and for the disposal. */
  readonly timeout: number;
  /** Ends the wait: the host closes. */
  readonly signal: AbortSignal;
}

/**
 * Activates a plugin, all or nothing: when it throws or takes too long, its contributions are dropped and what it opened is
 * disposed of. Never rejects.
 */
export async function activatePlugin(plugin: Plugin, place: PluginPlace, limits: ActivationLimits): Promise<Activation> {
  const scope = createScope();
  const { api, seal } = collectContributions(place, scope);
  try {
    // A synchronous exception becomes a rejection.
    const work = Promise.resolve().then(() => plugin.activate(api));
    await withinActivation(work, limits);
    return { kind: "active", contributions: seal(), scope };
  } catch (error) {
    seal();
    const message = `Plugin "${plugin.name}" was not activated, and nothing that it added is used: ${errorMessage(error)}`;
    const failure: Diagnostic = { severity: "error", code: "PLUGIN_ACTIVATION", source: plugin.name, message };
    return { kind: "failed", diagnostics: [failure, ...(await disposeScope(plugin.name, scope, limits.timeout))] };
  }
}

/** Waits for a part of an activation. @throws HostError `PLUGIN_TIMEOUT`. */
function withinActivation<T>(work: Promise<T>, { timeout, signal }: ActivationLimits): Promise<T> {
  return waitFor(work, { milliseconds: timeout, signal, expired: () => late(timeout) });
}

/** Disposes of what a plugin opened, within a time limit. Returns the errors. Never rejects. */
export async function disposeScope(name: string, scope: OwnedScope, timeout: number): Promise<readonly Diagnostic[]> {
  const report = (message: string): Diagnostic => ({ severity: "warning", code: "PLUGIN_DISPOSE", source: name, message });
  try {
    const errors = await waitFor(scope.dispose(), { milliseconds: timeout, expired: () => late(timeout) });
    return errors.map((error) => report(`Plugin "${name}" failed during disposal: ${errorMessage(error)}`));
  } catch (error) {
    return [report(`Plugin "${name}" did not finish its disposal: ${errorMessage(error)}`)];
  }
}

function late(timeout: number): HostError {
  const advice = "It may be waiting for a connection, a child process or a promise that never settles.";
  return new HostError("PLUGIN_TIMEOUT", `it took longer than ${timeout / 1000} seconds. ${advice}`);
}
