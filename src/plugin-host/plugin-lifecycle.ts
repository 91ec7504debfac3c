import { orderByRequirements } from "../base/dependency-order.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { explainRange } from "../base/version-range.ts";
import { settlesWithin, waitFor } from "../base/wait.ts";
import type { OwnedScope } from "../io/scope.ts";
import { countCalls } from "../skills/load/calls-in-flight.ts";
import type { ToolSource } from "../tools/tool-source.ts";
import { bringsOwnTools, bundledSpecifier } from "./bundled.ts";
import { bundleOf } from "./bundles/bundle.ts";
import { type Contributions, countContributions, type PluginPlace } from "./contributions.ts";
import { type ActivePlugin, isReloadable, type PluginEntry } from "./plugin-entry.ts";
import type { PluginSessions } from "./plugin-sessions.ts";
import type { PluginSkills } from "./plugin-skills.ts";
import {
  type Activation,
  type ActivationLimits,
  activatePlugin,
  type Candidate,
  disposeScope,
  type PreparedPlugin,
  type PrepareOptions,
  preparePlugin,
  type Requirement,
  type RequirementStatus,
  unmetRequirement,
} from "./prepare-plugin.ts";
import { PublishedSource } from "./published-source.ts";

interface PluginLifecycleOptions extends PrepareOptions {
  readonly log: Logger;
  readonly sessions: PluginSessions;
  readonly skills: PluginSkills;
  /** Milliseconds for the activation, and for the disposal, of one plugin. */
  readonly timeout: number;
  /** Fires when the host closes. */
  readonly closing: AbortSignal;
  /** Called when contributions of plugins may have changed. */
  onChanged(): void;
}

/** A generation has become active. `before`: the generation that it replaced. */
interface Updated {
  readonly before: ActivePlugin | undefined;
}

/** Finds, activates, replaces and disposes of plugins. Errors are recorded in the entry of the plugin. */
export class PluginLifecycle {
  readonly #entries: readonly PluginEntry[];
  readonly #options: PluginLifecycleOptions;
  /** Replaced generations that wait for their calls. */
  readonly #retiring = new Set<{ readonly entry: PluginEntry; readonly plugin: ActivePlugin; readonly ended: Promise<void> }>();
  #lastSequence = 0;

  /** `entries`: all plugins in order. More may be added to the array later. */
  constructor(entries: readonly PluginEntry[], options: PluginLifecycleOptions) {
    this.#entries = entries;
    this.#options = options;
  }

  /** Finds and checks the plugin of an entry. Does not record errors. */
  prepare(entry: PluginEntry, signal?: AbortSignal): Promise<PreparedPlugin> {
    return preparePlugin(entry.use, this.#options, this.#limits(signal));
  }

  /**
   * Activates a candidate in its entry. Returns the generation before it, for `retire`. Undefined: the activation failed with a
   * recorded reason, or was aborted, and the generation before it stays active.
   */
  async enter(entry: PluginEntry, candidate: Candidate, signal?: AbortSignal): Promise<Updated | undefined> {
    entry.attempted = candidate.files;
    const refusal = this.#refusal(entry, candidate);
    if (refusal !== undefined) {
      await this.fail(entry, { name: candidate.plugin.name, diagnostics: [...candidate.diagnostics, refusal], scope: candidate.scope });
      entry.isHeldBack = refusal.code === "PLUGIN_REQUIRES";
      return undefined;
    }
    const { workingDirectory, log, sessions, skills } = this.#options;
    const { plugin, config, identity } = candidate;
    const isBundled = bringsOwnTools(entry.specifier);
    const place = { name: plugin.name, isBundled, identity, config, workingDirectory, log, sessions, skills };
    const activation = await activatePlugin(candidate.plugin, place, this.#limits(signal));
    if (activation.kind === "failed" && signal?.aborted === true) {
      // A newer attempt follows.
      await this.#dispose(entry, candidate.scope);
      return undefined;
    }
    if (activation.kind === "failed") {
      const diagnostics = [...candidate.diagnostics, ...activation.diagnostics];
      await this.fail(entry, { name: candidate.plugin.name, diagnostics, scope: candidate.scope });
      return undefined;
    }
    const next = this.#assemble(entry, candidate, place, activation);
    // The active generation is used until the next one has its first snapshots.
    if (entry.active !== undefined) await this.#awaitSources(entry, next);
    if (signal?.aborted === true) {
      await this.#end(entry, next);
      return undefined;
    }
    const before = entry.active;
    this.#replace(entry, candidate, next);
    return { before };
  }

  /** Disposes of a replaced generation after its calls have ended. */
  retire(entry: PluginEntry, plugin: ActivePlugin): void {
    const end = async (): Promise<void> => {
      await plugin.calls?.ended();
      await this.#end(entry, plugin);
      this.#retiring.delete(retiring);
    };
    const retiring = { entry, plugin, ended: Promise.resolve().then(end) };
    this.#retiring.add(retiring);
  }

  /** Records a failed attempt, and disposes of what its module opened. */
  async fail(
    entry: PluginEntry,
    failed: { readonly name: string | undefined; readonly diagnostics: readonly Diagnostic[]; readonly scope: OwnedScope },
  ): Promise<void> {
    entry.isHeldBack = false;
    entry.isStale = entry.active !== undefined;
    if (entry.active === undefined) {
      entry.state = failed.name === undefined ? "unknown" : "failed";
      entry.name = failed.name ?? entry.specifier ?? entry.name;
    }
    entry.diagnostics = [...failed.diagnostics];
    this.#log(entry.name, failed.diagnostics);
    await this.#dispose(entry, failed.scope);
  }

  /** Waits for the first snapshots of a plugin's sources. A source that fails or takes too long is reported. */
  async awaitSources(entry: PluginEntry): Promise<void> {
    if (entry.active !== undefined) await this.#awaitSources(entry, entry.active);
  }

  /** Disposes of all plugins, the last activated first. */
  async close(): Promise<void> {
    await this.#endRetiring();
    const active = this.#entries.filter((entry) => entry.active !== undefined);
    for (const entry of active.sort((a, b) => b.active!.sequence - a.active!.sequence)) {
      for (const scope of entry.active!.scopes) await this.#dispose(entry, scope);
      entry.active = undefined;
      entry.state = "disposed";
    }
  }

  #limits(signal: AbortSignal | undefined): ActivationLimits {
    const { timeout, closing } = this.#options;
    return { timeout, signal: signal === undefined ? closing : AbortSignal.any([signal, closing]) };
  }

  #refusal(entry: PluginEntry, { plugin, requires, version }: Candidate): Diagnostic | undefined {
    const others = this.#entries.filter((other) => other !== entry);
    const earlier = this.#entries.slice(0, this.#entries.indexOf(entry));
    const holds = (other: PluginEntry): boolean => other.active !== undefined || (other.state === "failed" && earlier.includes(other));
    if (others.some((other) => other.name === plugin.name && holds(other)))
      return nameTaken({ name: plugin.name, specifier: entry.specifier });
    const unmet = unmetRequirement(requires, (name) => statusOf(others, name));
    const broken = entry.active === undefined ? undefined : brokenByReplacing(entry, { name: plugin.name, version }, others);
    const problem = unmet ?? broken ?? requiresItself(plugin.name, requires, others);
    if (problem === undefined) return undefined;
    const message = broken !== undefined && unmet === undefined ? broken : `Plugin "${plugin.name}" was not activated: it ${problem}`;
    return { severity: "error", code: "PLUGIN_REQUIRES", source: plugin.name, message };
  }

  #assemble(
    entry: PluginEntry,
    candidate: Candidate,
    place: PluginPlace,
    activation: Extract<Activation, { kind: "active" }>,
  ): ActivePlugin {
    const { contributions, scope } = activation;
    const calls = isReloadable(entry) && candidate.files.size > 0 ? countCalls() : undefined;
    return {
      sequence: entry.active?.sequence ?? ++this.#lastSequence,
      requires: candidate.requires,
      bundle: bundleOf(candidate.plugin),
      contributions: calls === undefined ? contributions : countContributions(contributions, calls),
      published: contributions.toolSources.map((source) => new PublishedSource(source, place, calls)),
      // A module's own disposers run after those of its activation.
      scopes: [scope, candidate.scope],
      place,
      calls,
      files: candidate.files,
    };
  }

  #replace(entry: PluginEntry, { plugin, version, diagnostics }: Candidate, next: ActivePlugin): void {
    const { contributions } = next;
    const others = this.#entries.flatMap((other) => (other === entry || other.active === undefined ? [] : other.active));
    const clashes = clashesOf(plugin.name, contributions, others);
    Object.assign(entry, { name: plugin.name, version, state: "active", isStale: false, isHeldBack: false, active: next });
    entry.generation++;
    entry.diagnostics = [...diagnostics, ...contributions.diagnostics, ...clashes];
    this.#log(entry.name, entry.diagnostics);
    this.#listen(entry, next);
    this.#options.onChanged();
  }

  async #end(entry: PluginEntry, { scopes }: ActivePlugin): Promise<void> {
    for (const scope of scopes) await this.#dispose(entry, scope);
  }

  /** A call that ignores its cancellation must not keep the host open. */
  async #endRetiring(): Promise<void> {
    const ended = Promise.all(Array.from(this.#retiring, (retiring) => retiring.ended)).then(() => {});
    // After the grace period, remaining generations are disposed of during their calls.
    await settlesWithin(ended, closingGrace);
    for (const { entry, plugin } of this.#retiring) {
      this.#options.log.warning("A call of this plugin is still running and was abandoned.", { plugin: entry.name });
      await this.#end(entry, plugin);
    }
  }

  #listen(entry: PluginEntry, { published, scopes: [scope] }: ActivePlugin): void {
    for (const { source } of published) {
      try {
        const listening = source.subscribe(() => this.#options.onChanged());
        scope?.onDispose(() => listening[Symbol.dispose]());
      } catch (error) {
        this.#report(entry, source.id, error);
      }
    }
  }

  async #awaitSources(entry: PluginEntry, { published }: ActivePlugin): Promise<void> {
    await Promise.all(published.map(({ source }) => this.#awaitSource(entry, source)));
  }

  async #awaitSource(entry: PluginEntry, source: ToolSource): Promise<void> {
    const { timeout, closing: signal } = this.#options;
    const late = (): Error =>
      new HostError("PLUGIN_TIMEOUT", `it was not ready within ${timeout / 1000} seconds; tools that it publishes later are still used.`);
    try {
      const work = Promise.resolve().then(() => source.ready(signal));
      await waitFor(work, { milliseconds: timeout, signal, expired: late });
      // A source may have its first snapshot without having called its subscribers.
      this.#options.onChanged();
    } catch (error) {
      if (!signal.aborted) this.#report(entry, source.id, error);
    }
  }

  #report(entry: PluginEntry, id: string, error: unknown): void {
    const message = `The tool source "${id}" of plugin "${entry.name}" failed: ${errorMessage(error)}`;
    if (entry.diagnostics.some((known) => known.message === message)) return;
    entry.diagnostics.push({ severity: "error", code: "PLUGIN_SOURCE", source: entry.name, message });
    this.#options.log.error(message);
  }

  async #dispose(entry: PluginEntry, scope: OwnedScope): Promise<void> {
    const problems = await disposeScope(entry.name, scope, this.#options.timeout);
    entry.diagnostics.push(...problems);
    for (const { message, code } of problems) this.#options.log.warning(message, { code, plugin: entry.name });
  }

  #log(plugin: string, diagnostics: readonly Diagnostic[]): void {
    for (const { severity, code, message } of diagnostics) if (severity === "error") this.#options.log.error(message, { code, plugin });
  }
}

// Sessions have cancelled their calls by then.
const closingGrace = 2_000;

interface Entrant {
  readonly entry: PluginEntry;
  readonly candidate: Candidate;
}

/**
 * Activates plugins for the first time. All are found and checked before the first is activated, and each is activated after
 * those that it requires. Never rejects.
 */
export async function activateAll(entries: readonly PluginEntry[], life: PluginLifecycle, closing: AbortSignal): Promise<void> {
  const entrants: Entrant[] = [];
  for (const entry of entries) {
    if (closing.aborted) break;
    const prepared = await life.prepare(entry);
    entry.attempted = prepared.kind === "ready" ? prepared.candidate.files : prepared.files;
    if (prepared.kind === "failed") await life.fail(entry, prepared);
    else if (entrants.some(({ candidate }) => candidate.plugin.name === prepared.candidate.plugin.name)) {
      await refuse({ entry, candidate: prepared.candidate }, life, nameTaken({ ...entry, name: prepared.candidate.plugin.name }));
    } else entrants.push({ entry, candidate: prepared.candidate });
  }
  const { order, cycles } = orderByRequirements(entrants.map(({ candidate: { plugin, requires } }) => ({ name: plugin.name, requires })));
  for (const index of order) {
    const entrant = entrants[index]!;
    const { name } = entrant.candidate.plugin;
    const cycle = cycles.get(index);
    if (closing.aborted) await entrant.candidate.scope.dispose();
    else if (cycle !== undefined) {
      const message = `Plugin "${name}" was not activated: it ${describeCycle(cycle)}`;
      await refuse(entrant, life, { severity: "error", code: "PLUGIN_REQUIRES", source: name, message });
    } else await life.enter(entrant.entry, entrant.candidate);
  }
  for (const index of cycles.keys()) entrants[index]!.entry.isHeldBack = true;
}

async function refuse({ entry, candidate }: Entrant, life: PluginLifecycle, why: Diagnostic): Promise<void> {
  const { plugin, diagnostics, scope } = candidate;
  await life.fail(entry, { name: plugin.name, diagnostics: [...diagnostics, why], scope });
}

/** The kinds of contributions that have names. */
type NamedKind = "agents" | "commands" | "modelProviders" | "mcpServers";

type Contributor = Pick<ActivePlugin, "contributions">;

/** The contributions of one kind of all plugins. When several add the same name, the first plugin's is used. */
export function joinNamed<K extends NamedKind>(plugins: readonly Contributor[], kind: K): Contributions[K] {
  const joined = new Map<string, unknown>();
  for (const { contributions } of plugins) {
    for (const [name, value] of contributions[kind]) if (!joined.has(name)) joined.set(name, value);
  }
  return joined as unknown as Contributions[K];
}

/** Reports names that earlier plugins have already added. */
function clashesOf(plugin: string, contributions: Contributions, before: readonly Contributor[]): readonly Diagnostic[] {
  return (Object.keys(kindWords) as NamedKind[]).flatMap((kind) => {
    const taken = joinNamed(before, kind);
    const clashes = [...contributions[kind].keys()].filter((name) => taken.has(name));
    return clashes.map((name): Diagnostic => {
      const what = `the ${kindWords[kind]} "${name}"`;
      const message = `Plugin "${plugin}" adds ${what}, which an earlier plugin already added. The earlier one is used.`;
      return { severity: "warning", code: "PLUGIN_CONTRIBUTION_TAKEN", source: plugin, message };
    });
  });
}

const kindWords: Readonly<Record<NamedKind, string>> = {
  agents: "agent",
  commands: "command",
  modelProviders: "model provider",
  mcpServers: "MCP server",
};

function nameTaken({ name, specifier }: Pick<PluginEntry, "name" | "specifier">): Diagnostic {
  const from = specifier === undefined ? "" : ` (from "${specifier}")`;
  const message = `Another plugin is already named "${name}", so this one${from} was not activated. Rename or remove one of them.`;
  return { severity: "error", code: "PLUGIN_NAME_TAKEN", source: name, message };
}

/** The status of the plugin with a name among some entries. */
function statusOf(entries: readonly PluginEntry[], name: string): RequirementStatus {
  const named = entries.filter((entry) => entry.name === name);
  const active = named.find((entry) => entry.active !== undefined);
  if (active !== undefined) return { kind: "active", version: active.version };
  const failed = named.find(({ state }) => state === "failed") ?? entries.find((entry) => entry.state === "unknown" && mayBe(entry, name));
  if (failed !== undefined) {
    const error = failed.diagnostics.find(({ severity }) => severity === "error");
    return { kind: "failed", reason: error?.message ?? "it was not activated." };
  }
  const specifier = bundledSpecifier(name);
  return { kind: "absent", hint: `Add ${specifier === undefined ? "it" : `"${specifier}"`} to the plugins of the host.` };
}

/** Whether a plugin that could not be loaded may have this name, judged by its specifier. */
function mayBe({ specifier = "" }: PluginEntry, name: string): boolean {
  const last = specifier
    .split(/[\\/]/)
    .filter((part) => part !== "")
    .at(-1);
  return specifier === name || last === name || last?.replace(/\.[cm]?[jt]sx?$/, "") === name;
}

/** Why a plugin must not be replaced by one with this name and version: another active plugin requires the present one. */
function brokenByReplacing(
  entry: PluginEntry,
  next: { readonly name: string; readonly version: string | undefined },
  others: readonly PluginEntry[],
): string | undefined {
  for (const other of others) {
    const requirement = other.active?.requires.find(({ name }) => name === entry.name);
    if (requirement === undefined) continue;
    const problem = next.name === entry.name ? explainRange(requirement.range, next.version) : `its name is "${next.name}" now`;
    if (problem === undefined) continue;
    return `Plugin "${entry.name}" was not replaced: plugin "${other.name}" requires "${entry.name}" ${requirement.range}, but ${problem}.`;
  }
  return undefined;
}

/** The cycle, when a plugin requires itself through others, as text that continues after its name. */
function requiresItself(name: string, requires: readonly Requirement[], others: readonly PluginEntry[]): string | undefined {
  const seen = new Set<string>();
  const findCycle = (wanted: readonly Requirement[], path: readonly string[]): readonly string[] | undefined => {
    for (const { name: next } of wanted) {
      if (next === name) return [...path, name];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = findCycle(others.find((entry) => entry.name === next)?.active?.requires ?? [], [...path, next]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const cycle = findCycle(requires, [name]);
  return cycle && describeCycle(cycle);
}

/** Describes a cycle of requirements, as text that continues after a plugin's name. */
function describeCycle(cycle: readonly string[]): string {
  return `requires itself in a cycle: ${cycle.join(" → ")}. Remove one of these requirements.`;
}
