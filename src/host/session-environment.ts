import { randomUUID } from "node:crypto";
import { join, resolve as resolvePath } from "node:path";
import { waitFor } from "../base/wait-for.ts";
import type { PluginHost } from "../plugin-host/plugin-host.ts";
import type { PluginSession } from "../plugin-host/plugin-sessions.ts";
import { outputsFolder } from "../session/calls/finalize-call.ts";
import { type CatalogMemo, createCatalogMemo } from "../session/catalog/assemble-catalog.ts";
import type { CatalogView } from "../session/catalog/catalog-view.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import { describeSkill, type SessionEnvironment } from "../session/environment.ts";
import type { PlanStorage } from "../session/plan-file.ts";
import type { PromptAndResourceSource } from "../session/prompts-resources/prompts-and-resources.ts";
import type { ResolvedSessionConfig } from "../session/session-config.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import { resolveRoot } from "../skills/store/skill-roots.ts";
import type { RootsLease, SkillStore } from "../skills/store/skill-store.ts";
import type { SkillEntry, SourceSnapshot } from "../tools/tool-source.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
import type { PushTrust } from "../trust/push-trust.ts";
import { ConfiguredServers } from "./declared-servers.ts";
import type { ResolvedHostOptions } from "./host-options.ts";
import { HostedServers, type HostedServersParts } from "./host-servers.ts";
import type { FolderConsent } from "./host-trust.ts";
import type { ServerSets } from "./session-server-sets.ts";
import { createSkillViews, type SkillViews } from "./skill-views.ts";

/** What the sessions of one host share. */
export interface EnvironmentParts {
  readonly options: ResolvedHostOptions;
  readonly plugins: PluginHost;
  readonly store: SkillStore;
  readonly views: SkillViews;
  readonly memo: CatalogMemo;
  /** What people approved for a place or for ever. */
  readonly approvals: ApprovalStore;
  readonly pushTrust: PushTrust | undefined;
  readonly consent: FolderConsent;
  readonly servers: HostedServersParts;
}

/**
 * Gives one session the host's sources, and keeps loaded what only this session names. `loadsLate`: not before it is needed,
 * or a moment after the session was made.
 */
export function createSessionEnvironment(
  parts: EnvironmentParts,
  onRelease: (sessionId: string) => void,
  { loadsLate = false, plan }: { readonly loadsLate?: boolean; readonly plan?: PlanStorage | undefined } = {},
): SessionEnvironment {
  const { options, plugins, store, views, memo, approvals, pushTrust, consent } = parts;
  const claim = new RootsClaim(store, loadsLate);
  let adopted: ResolvedSessionConfig | undefined;
  let reconsidered: Promise<void> | undefined;
  const rootsOf = (directories: readonly string[]): string[] => directories.map((entry) => resolveRoot(entry, options.workingDirectory));
  const resolve = (view: SkillChoice): ResolvedSkills => views.resolve(rootsOf(view.skillDirectories), view.disabledSkills);
  const servers = new HostedServers(parts.servers, () => resolve(adopted?.view ?? allSkills));
  const following = views.subscribe(() => servers.refresh());
  const sessionId = randomUUID();
  const offerSources = createOfferSources();
  return {
    log: options.log,
    approvals,
    pushTrust,
    mcp: servers,
    plan,
    commands: () => plugins.commands,
    // Looked up anew each time: plugins may have been replaced.
    get defaults() {
      return {
        sessionId,
        workingDirectory: options.workingDirectory,
        hostHooks: plugins.hooks,
        hostAgents: [...plugins.agents.values()],
        modelProviders: plugins.modelProviders,
      };
    },
    catalog(view, pushed) {
      const skills = resolve(view);
      const ofSkills: CatalogSource = { kind: "skill", id: "skills", tools: skills.tools, diagnostics: skills.diagnostics };
      return memo([...plugins.sources, ...servers.sources(view), ofSkills, ...pushed.map(toSource)], view);
    },
    skills(view) {
      const own = views.skills(rootsOf(view.skillDirectories), view.disabledSkills);
      return joined(servers.snapshot(view)?.skills ?? noSkills, own);
    },
    describeSkills(view) {
      const known = resolve(view).standings.filter(({ state }) => state !== "shadowed");
      const folders = new Set(known.map(({ skill }) => skill.name));
      const others = this.skills(view).filter(({ name }) => !folders.has(name));
      return [
        ...others.map((skill) => describeSkill(skill, true)),
        ...known.map(({ skill, state }) => describeSkill(skill, state === "active")),
      ];
    },
    offerSources(view) {
      const { prompts, resources, resourceTemplates } = servers.snapshot(view) ?? nothing;
      const ofSkills = views.offers(rootsOf(view.skillDirectories), view.disabledSkills);
      return offerSources(ofSkills, plugins.offers, prompts, resources, resourceTemplates);
    },
    subscribe(listener) {
      const listening = [views.subscribe(listener), servers.onChanged(listener)];
      return { [Symbol.dispose]: () => listening.forEach((each) => void each[Symbol.dispose]()) };
    },
    adopt(config) {
      adopted = config;
      const roots = rootsOf(config.view.skillDirectories);
      const freed = consent.name(roots);
      if (freed.length > 0) reconsidered = store.reconsider(freed);
      claim.change(roots);
      servers.adopt(config);
      plugins.sessions.open(toPluginSession(config, this));
    },
    async ready(signal) {
      signal.throwIfAborted();
      await waitFor(Promise.all([claim.ready, reconsidered, plugins.ready()]), { signal });
    },
    sessionDirectory: (sessionId) => join(options.sessionsDirectory, sessionId),
    release() {
      claim[Symbol.dispose]();
      following[Symbol.dispose]();
      servers[Symbol.dispose]();
      if (adopted === undefined) return;
      plugins.sessions.close(adopted.sessionId);
      onRelease(adopted.sessionId);
    },
  };
}

/** What plugins see of a session. Its skills are looked up when they are asked for. */
function toPluginSession(
  { sessionId, workingDirectory, turn, largeOutput, view, permissions }: ResolvedSessionConfig,
  environment: Pick<SessionEnvironment, "skills" | "sessionDirectory">,
): PluginSession {
  const outputs = largeOutput.outputDir ?? join(environment.sessionDirectory(sessionId), outputsFolder);
  return {
    id: sessionId,
    workingDirectory,
    isKeptBack: permissions.isKeptBack,
    limitsOf: permissions.limitsOf,
    isAddressKeptBack: permissions.isAddressKeptBack,
    additionalDirectories: turn.additionalDirectories.map((directory) => resolvePath(workingDirectory, directory)),
    get readableDirectories() {
      return [outputs, ...environment.skills(view).flatMap(({ folder }) => folder ?? [])];
    },
  };
}

const nothing: Pick<SourceSnapshot, "prompts" | "resources" | "resourceTemplates"> = {};

type OffersOfServers = readonly [prompts: SourceSnapshot["prompts"], SourceSnapshot["resources"], SourceSnapshot["resourceTemplates"]];
type JoinOffers = (
  skills: PromptAndResourceSource,
  plugins: readonly PromptAndResourceSource[],
  ...ofServers: OffersOfServers
) => readonly PromptAndResourceSource[];

/** Gives one array for as long as what it is made of stays the same. */
function createOfferSources(): JoinOffers {
  let of: readonly unknown[] = [];
  let sources: readonly PromptAndResourceSource[] = [];
  return (...parts) => {
    if (parts.length === of.length && parts.every((part, index) => part === of[index])) return sources;
    of = parts;
    const [skills, plugins, prompts, resources, resourceTemplates] = parts;
    sources = [{ kind: "mcp", id: "mcp", prompts, resources, resourceTemplates }, skills, ...plugins];
    return sources;
  };
}

type SkillChoice = Pick<CatalogView, "skillDirectories" | "disabledSkills">;
type Skills = readonly SkillEntry[];

const allSkills: SkillChoice = { skillDirectories: [], disabledSkills: [] };
const noSkills: Skills = Object.freeze([]);
const joins = new WeakMap<Skills, WeakMap<Skills, Skills>>();

/** Those of servers before those in folders. The same lists give the same list. */
function joined(remote: Skills, own: Skills): Skills {
  if (remote.length === 0) return own;
  const byOwn = joins.get(remote) ?? new WeakMap<Skills, Skills>();
  joins.set(remote, byOwn);
  const all = byOwn.get(own) ?? Object.freeze([...remote, ...own]);
  byOwn.set(own, all);
  return all;
}

function toSource({ tools, diagnostics }: SourceSnapshot, index: number): CatalogSource {
  return { kind: "external", id: String(index), tools, diagnostics };
}

/** How long a claim that may be late waits, so that whoever made the session is answered first. */
const latestMs = 20;

/** Keeps the skill folders that one session names loaded. */
class RootsClaim implements Disposable {
  readonly #store: SkillStore;
  #isLate: boolean;
  #lease: RootsLease | undefined;
  #waiting: readonly string[] | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `isLate`: nothing is loaded before it is needed, or a moment has passed. */
  constructor(store: SkillStore, isLate: boolean) {
    this.#store = store;
    this.#isLate = isLate;
  }

  /** Claims these folders in the place of those before. */
  change(roots: readonly string[]): void {
    this.#waiting = roots;
    if (!this.#isLate || roots.length === 0) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), latestMs).unref();
  }

  /** Settles when they are loaded. */
  get ready(): Promise<void> | undefined {
    this.#begin();
    return this.#lease?.ready;
  }

  [Symbol.dispose](): void {
    this.#waiting = undefined;
    clearTimeout(this.#timer);
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
  }

  #begin(): void {
    const roots = this.#waiting;
    if (roots === undefined) return;
    if (roots.length > 0) this.#isLate = false;
    this.#waiting = undefined;
    clearTimeout(this.#timer);
    const before = this.#lease;
    // Before the others are let go: what both name stays loaded.
    this.#lease = this.#store.acquire(roots);
    before?.[Symbol.dispose]();
  }
}

type Given = Pick<EnvironmentParts, "plugins" | "store" | "approvals" | "pushTrust" | "consent"> & { readonly sets: ServerSets };

/** Puts together what the sessions of a host share. */
export function createEnvironmentParts(options: ResolvedHostOptions, { sets, ...given }: Given): EnvironmentParts {
  const { mcp, log } = options;
  const { store, plugins } = given;
  return {
    options,
    ...given,
    views: createSkillViews(options, store, plugins),
    memo: createCatalogMemo(),
    servers: { sets, configured: new ConfiguredServers(options, plugins), policy: mcp, startupWait: mcp.startupWait, log },
  };
}
