import { orderByRequirements } from "../base/dependency-order.ts";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { settlesWithin, waitFor } from "../base/wait-for.ts";
import type { OwnedScope } from "../io/scope.ts";
import { countCalls } from "../skills/load/calls-in-flight.ts";
import type { ToolSource } from "../tools/tool-source.ts";
import { type Activation, type ActivationLimits, activatePlugin, disposeScope } from "./activate.ts";
import { bundleOf } from "./bundles/bundle-plugin.ts";
import { type Contributions, countContributions, type PluginPlace } from "./contributions.ts";
import { type ActivePlugin, isReloadable, type PluginEntry } from "./plugin-entry.ts";
import type { PluginSessions } from "./plugin-sessions.ts";
import { type Candidate, type PreparedPlugin, type PrepareOptions, preparePlugin, unmetRequirement } from "./prepare-plugin.ts";
import { PublishedSource } from "./published-source.ts";
import { brokenByReplacing, inCircle, requiresItself, standingIn } from "./requirement-status.ts";

interface PluginLifecycleOptions extends PrepareOptions {
  readonly log: Logger;
  readonly sessions: PluginSessions;
  /** Milliseconds for activating one, and as many for disposing. */
  readonly timeout: number;
  /** Fires when the host closes. */
  readonly closing: AbortSignal;
  /** What plugins give may be something else now. */
  onChanged(): void;
}

/** A plugin was put into its slot: the generation that it took the place of. */
interface Updated {
  readonly before: ActivePlugin | undefined;
}

/** Takes plugins through their lives: found, activated, replaced, disposed of. What goes wrong is noted in the slot. */
export class PluginLifecycle {
  readonly #slots: readonly PluginEntry[];
  readonly #options: PluginLifecycleOptions;
  /** What was replaced and waits for its calls. */
  readonly #retiring = new Set<{ readonly slot: PluginEntry; readonly plugin: ActivePlugin; readonly ended: Promise<void> }>();
  #lastSequence = 0;

  /** `slots`: all there are, in order; more may be added to it. */
  constructor(slots: readonly PluginEntry[], options: PluginLifecycleOptions) {
    this.#slots = slots;
    this.#options = options;
  }

  /** Finds a slot's plugin and checks it. What is wrong with it is not noted yet. */
  prepare(slot: PluginEntry, signal?: AbortSignal): Promise<PreparedPlugin> {
    return preparePlugin(slot.use, this.#options, this.#limits(signal));
  }

  /**
   * Activates a candidate and puts it into its slot. What served before is given back, for `retire`. Undefined: it was not
   * taken; why is noted, and what served before serves on.
   */
  async enter(slot: PluginEntry, candidate: Candidate, signal?: AbortSignal): Promise<Updated | undefined> {
    slot.attempted = candidate.files;
    const refusal = this.#refusal(slot, candidate);
    if (refusal !== undefined) {
      await this.fail(slot, { name: candidate.plugin.name, diagnostics: [...candidate.diagnostics, refusal], scope: candidate.scope });
      slot.isHeldBack = refusal.code === "PLUGIN_REQUIRES";
      return undefined;
    }
    const place = this.#placeOf(slot, candidate);
    const activation = await activatePlugin(candidate.plugin, place, this.#limits(signal));
    if (activation.kind === "failed" && signal?.aborted === true) {
      // Whoever ended it tries what is newer.
      await this.#dispose(slot, candidate.scope);
      return undefined;
    }
    if (activation.kind === "failed") {
      const diagnostics = [...candidate.diagnostics, ...activation.diagnostics];
      await this.fail(slot, { name: candidate.plugin.name, diagnostics, scope: candidate.scope });
      return undefined;
    }
    const next = this.#assemble(slot, candidate, place, activation);
    // What serves now goes on until the first snapshots of what takes its place are there.
    if (slot.active !== undefined) await this.#awaitSources(slot, next);
    if (signal?.aborted === true) return this.#withdraw(slot, next);
    const before = slot.active;
    this.#take(slot, candidate, next);
    return { before };
  }

  /** Ends what was replaced, when its calls have ended. */
  retire(slot: PluginEntry, plugin: ActivePlugin): void {
    const end = async (): Promise<void> => {
      await plugin.calls?.ended();
      await this.#end(slot, plugin);
      this.#retiring.delete(retiring);
    };
    const retiring = { slot, plugin, ended: Promise.resolve().then(end) };
    this.#retiring.add(retiring);
  }

  /** Notes that an attempt came to nothing, and ends what its module opened. */
  async fail(
    slot: PluginEntry,
    failed: { readonly name: string | undefined; readonly diagnostics: readonly Diagnostic[]; readonly scope: OwnedScope },
  ): Promise<void> {
    slot.isHeldBack = false;
    slot.isStale = slot.active !== undefined;
    if (slot.active === undefined) {
      slot.state = failed.name === undefined ? "unknown" : "failed";
      slot.name = failed.name ?? slot.specifier ?? slot.name;
    }
    slot.diagnostics = [...failed.diagnostics];
    this.#log(slot.name, failed.diagnostics);
    await this.#dispose(slot, failed.scope);
  }

  /** Waits for the first snapshots of a plugin's sources. One that fails or takes too long is told and passed over. */
  async awaitSources(slot: PluginEntry): Promise<void> {
    if (slot.active !== undefined) await this.#awaitSources(slot, slot.active);
  }

  /** Ends all, the last activated first. */
  async close(): Promise<void> {
    await this.#endRetiring();
    const active = this.#slots.filter((slot) => slot.active !== undefined);
    for (const slot of active.sort((a, b) => b.active!.sequence - a.active!.sequence)) {
      for (const scope of slot.active!.scopes) await this.#dispose(slot, scope);
      slot.active = undefined;
      slot.state = "disposed";
    }
  }

  #limits(signal: AbortSignal | undefined): ActivationLimits {
    const { timeout, closing } = this.#options;
    return { timeout, signal: signal === undefined ? closing : AbortSignal.any([signal, closing]) };
  }

  #refusal(slot: PluginEntry, { plugin, requires, version }: Candidate): Diagnostic | undefined {
    const others = this.#slots.filter((other) => other !== slot);
    const earlier = this.#slots.slice(0, this.#slots.indexOf(slot));
    const holds = (other: PluginEntry): boolean => other.active !== undefined || (other.state === "failed" && earlier.includes(other));
    if (others.some((other) => other.name === plugin.name && holds(other)))
      return nameTaken({ name: plugin.name, specifier: slot.specifier });
    const unmet = unmetRequirement(requires, (name) => standingIn(others, name));
    const broken = slot.active === undefined ? undefined : brokenByReplacing(slot, { name: plugin.name, version }, others);
    const problem = unmet ?? broken ?? requiresItself(plugin.name, requires, others);
    if (problem === undefined) return undefined;
    const message = broken !== undefined && unmet === undefined ? broken : `Plugin "${plugin.name}" was not activated: it ${problem}`;
    return { severity: "error", code: "PLUGIN_REQUIRES", source: plugin.name, message };
  }

  #placeOf({ isBundled }: PluginEntry, { plugin, config, identity }: Candidate): PluginPlace {
    const { workingDirectory, log, sessions } = this.#options;
    return { name: plugin.name, isBundled, identity, config, workingDirectory, log, sessions };
  }

  #assemble(
    slot: PluginEntry,
    candidate: Candidate,
    place: PluginPlace,
    activation: Extract<Activation, { kind: "active" }>,
  ): ActivePlugin {
    const { contributions, scope } = activation;
    const calls = isReloadable(slot) && candidate.files.size > 0 ? countCalls() : undefined;
    return {
      sequence: slot.active?.sequence ?? ++this.#lastSequence,
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

  #take(slot: PluginEntry, { plugin, version, diagnostics }: Candidate, next: ActivePlugin): void {
    const { contributions } = next;
    const others = this.#slots.flatMap((other) => (other === slot || other.active === undefined ? [] : other.active));
    const clashes = clashesOf(plugin.name, contributions, others);
    Object.assign(slot, { name: plugin.name, version, state: "active", isStale: false, isHeldBack: false, active: next });
    slot.generation++;
    slot.diagnostics = [...diagnostics, ...contributions.diagnostics, ...clashes];
    this.#log(slot.name, slot.diagnostics);
    this.#listen(slot, next);
    this.#options.onChanged();
  }

  async #withdraw(slot: PluginEntry, next: ActivePlugin): Promise<undefined> {
    await this.#end(slot, next);
  }

  async #end(slot: PluginEntry, { scopes }: ActivePlugin): Promise<void> {
    for (const scope of scopes) await this.#dispose(slot, scope);
  }

  /** A call that ignores that it was told to stop cannot keep the host open. */
  async #endRetiring(): Promise<void> {
    const ended = Promise.all(Array.from(this.#retiring, (retiring) => retiring.ended)).then(() => {});
    // What is left is ended below, whatever still uses it.
    await settlesWithin(ended, closingGrace);
    for (const { slot, plugin } of this.#retiring) {
      this.#options.log.warning("A call of this plugin is still running and was abandoned.", { plugin: slot.name });
      await this.#end(slot, plugin);
    }
  }

  #listen(slot: PluginEntry, { published, scopes: [scope] }: ActivePlugin): void {
    for (const { source } of published) {
      try {
        const listening = source.subscribe(() => this.#options.onChanged());
        scope?.onDispose(() => listening[Symbol.dispose]());
      } catch (error) {
        this.#report(slot, source.id, error);
      }
    }
  }

  async #awaitSources(slot: PluginEntry, { published }: ActivePlugin): Promise<void> {
    await Promise.all(published.map(({ source }) => this.#awaitSource(slot, source)));
  }

  async #awaitSource(slot: PluginEntry, source: ToolSource): Promise<void> {
    const { timeout, closing: signal } = this.#options;
    const late = (): Error =>
      new HostError("PLUGIN_TIMEOUT", `it was not ready within ${timeout / 1000} seconds; tools that it publishes later are still used.`);
    try {
      const work = Promise.resolve().then(() => source.ready(signal));
      await waitFor(work, { milliseconds: timeout, signal, expired: late });
      // The first snapshot may be there without having been told of.
      this.#options.onChanged();
    } catch (error) {
      if (!signal.aborted) this.#report(slot, source.id, error);
    }
  }

  #report(slot: PluginEntry, id: string, error: unknown): void {
    const message = `The tool source "${id}" of plugin "${slot.name}" failed: ${errorMessage(error)}`;
    if (slot.diagnostics.some((known) => known.message === message)) return;
    slot.diagnostics.push({ severity: "error", code: "PLUGIN_SOURCE", source: slot.name, message });
    this.#options.log.error(message);
  }

  async #dispose(slot: PluginEntry, scope: OwnedScope): Promise<void> {
    const problems = await disposeScope(slot.name, scope, this.#options.timeout);
    slot.diagnostics.push(...problems);
    for (const { message, code } of problems) this.#options.log.warning(message, { code, plugin: slot.name });
  }

  #log(plugin: string, diagnostics: readonly Diagnostic[]): void {
    for (const { severity, code, message } of diagnostics) if (severity === "error") this.#options.log.error(message, { code, plugin });
  }
}

// Sessions have told their calls to stop by then.
const closingGrace = 2_000;

interface Entrant {
  readonly slot: PluginEntry;
  readonly candidate: Candidate;
}

/**
 * Brings slots to life for the first time: all are found and checked before the first is activated, and each is activated
 * after those that it requires. Never rejects.
 */
export async function activateAll(slots: readonly PluginEntry[], life: PluginLifecycle, closing: AbortSignal): Promise<void> {
  const entrants: Entrant[] = [];
  for (const slot of slots) {
    if (closing.aborted) break;
    const prepared = await life.prepare(slot);
    slot.attempted = prepared.kind === "ready" ? prepared.candidate.files : prepared.files;
    if (prepared.kind === "failed") await life.fail(slot, prepared);
    else if (entrants.some(({ candidate }) => candidate.plugin.name === prepared.candidate.plugin.name)) {
      await refuse({ slot, candidate: prepared.candidate }, life, nameTaken({ ...slot, name: prepared.candidate.plugin.name }));
    } else entrants.push({ slot, candidate: prepared.candidate });
  }
  await activateInOrder(entrants, life, closing);
}

async function activateInOrder(entrants: readonly Entrant[], life: PluginLifecycle, closing: AbortSignal): Promise<void> {
  const { order, cycles } = orderByRequirements(entrants.map(({ candidate: { plugin, requires } }) => ({ name: plugin.name, requires })));
  for (const index of order) {
    const entrant = entrants[index]!;
    const circle = cycles.get(index);
    if (closing.aborted) await entrant.candidate.scope.dispose();
    else if (circle !== undefined) await refuse(entrant, life, closedCircle(entrant.candidate.plugin.name, circle));
    else await life.enter(entrant.slot, entrant.candidate);
  }
  for (const index of cycles.keys()) entrants[index]!.slot.isHeldBack = true;
}

async function refuse({ slot, candidate }: Entrant, life: PluginLifecycle, why: Diagnostic): Promise<void> {
  const { plugin, diagnostics, scope } = candidate;
  await life.fail(slot, { name: plugin.name, diagnostics: [...diagnostics, why], scope });
}

function closedCircle(name: string, way: readonly string[]): Diagnostic {
  const message = `Plugin "${name}" was not activated: it ${inCircle(way)}`;
  return { severity: "error", code: "PLUGIN_REQUIRES", source: name, message };
}

/** What plugins add by name. */
type NamedKind = "agents" | "commands" | "modelProviders" | "mcpServers";

type Holder = { readonly contributions: Contributions };

/** What all plugins add of a kind. Of one name, the first plugin's counts. */
export function joinNamed<K extends NamedKind>(plugins: readonly Holder[], kind: K): Contributions[K] {
  const joined = new Map<string, unknown>();
  for (const { contributions } of plugins) {
    for (const [name, value] of contributions[kind]) if (!joined.has(name)) joined.set(name, value);
  }
  return joined as unknown as Contributions[K];
}

/** Which names of a plugin others have had before. */
function clashesOf(plugin: string, contributions: Contributions, before: readonly Holder[]): readonly Diagnostic[] {
  return (Object.keys(kindWords) as NamedKind[]).flatMap((kind) => {
    const taken = joinNamed(before, kind);
    return [...contributions[kind].keys()].filter((name) => taken.has(name)).map((name) => clash(plugin, kindWords[kind], name));
  });
}

const kindWords: Readonly<Record<NamedKind, string>> = {
  agents: "agent",
  commands: "command",
  modelProviders: "model provider",
  mcpServers: "MCP server",
};

function clash(plugin: string, what: string, name: string): Diagnostic {
  const message = `Plugin "${plugin}" adds the ${what} "${name}", which an earlier plugin already added. The earlier one is used.`;
  return { severity: "warning", code: "PLUGIN_CONTRIBUTION_TAKEN", source: plugin, message };
}

/** About a plugin whose name another one has. */
function nameTaken({ name, specifier }: Pick<PluginEntry, "name" | "specifier">): Diagnostic {
  const from = specifier === undefined ? "" : ` (from "${specifier}")`;
  const message = `Another plugin is already named "${name}", so this one${from} was not activated. Rename or remove one of them.`;
  return { severity: "error", code: "PLUGIN_NAME_TAKEN", source: name, message };
}
