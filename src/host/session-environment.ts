import { randomUUID } from "node:crypto";
import { join, resolve as resolvePath } from "node:path";
import type { Logger } from "../base/logger.ts";
import { waitFor } from "../base/wait.ts";
import type { PluginCommand } from "../plugin-host/plugin-api.ts";
import type { PluginHost } from "../plugin-host/plugin-host.ts";
import type { PluginSession } from "../plugin-host/plugin-sessions.ts";
import { outputsFolder } from "../session/calls/finalize-call.ts";
import { type CatalogMemo, createCatalogMemo } from "../session/catalog/assemble-catalog.ts";
import type { CatalogView } from "../session/catalog/catalog-view.ts";
import type { CatalogSource, ToolCatalog } from "../session/catalog/tool-catalog.ts";
import type { SqlDatabase } from "../session/database/sql-database.ts";
import { type DescribedSkill, describeSkill, type SessionEnvironment } from "../session/environment.ts";
import type { PromptAndResourceSource } from "../session/prompts-resources/prompts-and-resources.ts";
import type { ResolvedSessionConfig, SessionDefaults } from "../session/session-config.ts";
import type { WorkspaceFiles } from "../session/workspace/workspace-files.ts";
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
import { SkillViews } from "./skill-views.ts";

/** The parts that all sessions of one host share. */
export interface EnvironmentParts {
  readonly options: ResolvedHostOptions;
  readonly plugins: PluginHost;
  readonly store: SkillStore;
  readonly views: SkillViews;
  readonly memo: CatalogMemo;
  /** Permissions that were approved for a location or permanently. */
  readonly approvals: ApprovalStore;
  readonly pushTrust: PushTrust | undefined;
  readonly consent: FolderConsent;
  readonly servers: HostedServersParts;
}

interface EnvironmentOptions {
  /** Called when the session ends. */
  onRelease(sessionId: string): void;
  /** Whether loading waits until the session needs its sources, or a moment has passed. */
  readonly loadsLate: boolean;
  /** What the session is kept in. Undefined: its own folder. */
  readonly storage: { readonly files: WorkspaceFiles; readonly database?: SqlDatabase | undefined } | undefined;
}

/** Connects one session to the host's sources, and keeps the skill folders loaded that only this session names. */
export class HostSessionEnvironment implements SessionEnvironment {
  readonly log: Logger;
  readonly approvals: ApprovalStore;
  readonly pushTrust: PushTrust | undefined;
  readonly mcp: HostedServers;
  readonly files: WorkspaceFiles | undefined;
  readonly database: SqlDatabase | "none" | undefined;
  readonly #parts: EnvironmentParts;
  readonly #onRelease: (sessionId: string) => void;
  readonly #sessionId = randomUUID();
  readonly #roots: SessionRoots;
  readonly #following: Disposable;
  readonly #joinSources = createSourceMemo();
  #adopted: ResolvedSessionConfig | undefined;
  #reconsidered: Promise<void> | undefined;

  constructor(parts: EnvironmentParts, { onRelease, loadsLate, storage }: EnvironmentOptions) {
    this.log = parts.options.log;
    this.approvals = parts.approvals;
    this.pushTrust = parts.pushTrust;
    this.mcp = new HostedServers(parts.servers, () => this.#resolve(this.#adopted?.view ?? allSkills));
    this.files = storage?.files;
    this.database = storage && (storage.database ?? "none");
    this.#parts = parts;
    this.#onRelease = onRelease;
    this.#roots = new SessionRoots(parts.store, loadsLate);
    this.#following = parts.views.subscribe(() => this.mcp.refresh());
  }

  /** Read again on each access, since plugins may have been replaced. */
  get defaults(): SessionDefaults {
    const { options, plugins } = this.#parts;
    return {
      sessionId: this.#sessionId,
      workingDirectory: options.workingDirectory,
      hostHooks: plugins.hooks,
      hostAgents: [...plugins.agents.values()],
      modelProviders: plugins.modelProviders,
      services: options.services,
    };
  }

  commands(): ReadonlyMap<string, PluginCommand> {
    return this.#parts.plugins.commands;
  }

  catalog(view: CatalogView, pushed: readonly SourceSnapshot[]): ToolCatalog {
    const { tools, diagnostics } = this.#resolve(view);
    const ofSkills: CatalogSource = { kind: "skill", id: "skills", tools, diagnostics };
    const ofClients = pushed.map(
      (source, index): CatalogSource => ({ kind: "external", id: String(index), tools: source.tools, diagnostics: source.diagnostics }),
    );
    return this.#parts.memo([...this.#parts.plugins.sources, ...this.mcp.sources(view), ofSkills, ...ofClients], view);
  }

  skills(view: CatalogView): readonly SkillEntry[] {
    const own = this.#parts.views.skills(this.#rootsOf(view), view.disabledSkills);
    return joinSkills(this.mcp.snapshot(view)?.skills ?? noSkills, own);
  }

  describeSkills(view: CatalogView): readonly DescribedSkill[] {
    const known = this.#resolve(view).standings.filter(({ state }) => state !== "shadowed");
    const names = new Set(known.map(({ skill }) => skill.name));
    const others = this.skills(view).filter(({ name }) => !names.has(name));
    return [
      ...others.map((skill) => describeSkill(skill, true)),
      ...known.map(({ skill, state }) => describeSkill(skill, state === "active")),
    ];
  }

  offerSources(view: CatalogView): readonly PromptAndResourceSource[] {
    const { prompts, resources, resourceTemplates } = this.mcp.snapshot(view) ?? nothing;
    const ofSkills = this.#parts.views.offers(this.#rootsOf(view), view.disabledSkills);
    return this.#joinSources(ofSkills, this.#parts.plugins.offers, prompts, resources, resourceTemplates);
  }

  subscribe(listener: () => void): Disposable {
    const listening = [this.#parts.views.subscribe(listener), this.mcp.onChanged(listener)];
    return { [Symbol.dispose]: () => listening.forEach((each) => void each[Symbol.dispose]()) };
  }

  adopt(config: ResolvedSessionConfig): void {
    const { consent, store, plugins } = this.#parts;
    this.#adopted = config;
    const roots = this.#rootsOf(config.view);
    const newlyTrusted = consent.name(roots);
    if (newlyTrusted.length > 0) this.#reconsidered = store.reconsider(newlyTrusted);
    this.#roots.change(roots);
    this.mcp.adopt(config);
    plugins.sessions.open(toPluginSession(config, this));
  }

  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await waitFor(Promise.all([this.#roots.ready, this.#reconsidered, this.#parts.plugins.ready()]), { signal });
  }

  sessionDirectory(sessionId: string): string {
    return join(this.#parts.options.sessionsDirectory, sessionId);
  }

  release(): void {
    this.#roots[Symbol.dispose]();
    this.#following[Symbol.dispose]();
    this.mcp[Symbol.dispose]();
    if (this.#adopted === undefined) return;
    this.#parts.plugins.sessions.close(this.#adopted.sessionId);
    this.#onRelease(this.#adopted.sessionId);
  }

  #rootsOf({ skillDirectories }: SkillChoice): string[] {
    return skillDirectories.map((entry) => resolveRoot(entry, this.#parts.options.workingDirectory));
  }

  #resolve(view: SkillChoice): ResolvedSkills {
    return this.#parts.views.resolve(this.#rootsOf(view), view.disabledSkills);
  }
}

/** The session as plugins see it. */
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

type JoinSources = (
  skills: PromptAndResourceSource,
  plugins: readonly PromptAndResourceSource[],
  prompts: SourceSnapshot["prompts"],
  resources: SourceSnapshot["resources"],
  resourceTemplates: SourceSnapshot["resourceTemplates"],
) => readonly PromptAndResourceSource[];

/** Joins sources of prompts and resources. Returns the same array until one of its arguments changes. */
function createSourceMemo(): JoinSources {
  let last: readonly unknown[] = [];
  let sources: readonly PromptAndResourceSource[] = [];
  return (...parts) => {
    if (parts.length === last.length && parts.every((part, index) => part === last[index])) return sources;
    last = parts;
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

/** Puts the skills of servers before those in folders. The same lists give the same result. */
function joinSkills(remote: Skills, own: Skills): Skills {
  if (remote.length === 0) return own;
  const byOwn = joins.get(remote) ?? new WeakMap<Skills, Skills>();
  joins.set(remote, byOwn);
  const all = byOwn.get(own) ?? Object.freeze([...remote, ...own]);
  byOwn.set(own, all);
  return all;
}

/** How long late loading waits, so that the caller gets the session first. */
const maxDelayMs = 20;

/** Keeps the skill folders loaded that one session names. */
class SessionRoots implements Disposable {
  readonly #store: SkillStore;
  #isLate: boolean;
  #lease: RootsLease | undefined;
  #waiting: readonly string[] | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `isLate`: loading waits until the folders are needed, or a moment has passed. */
  constructor(store: SkillStore, isLate: boolean) {
    this.#store = store;
    this.#isLate = isLate;
  }

  /** Replaces the folders. */
  change(roots: readonly string[]): void {
    this.#waiting = roots;
    if (!this.#isLate || roots.length === 0) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), maxDelayMs).unref();
  }

  /** Settles when the folders are loaded. */
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
    // Acquired before the old lease is released, so that common folders stay loaded.
    this.#lease = this.#store.acquire(roots);
    before?.[Symbol.dispose]();
  }
}

type SharedParts = Pick<EnvironmentParts, "plugins" | "store" | "approvals" | "pushTrust" | "consent"> & { readonly sets: ServerSets };

/** Creates the parts that the sessions of a host share. */
export function createEnvironmentParts(options: ResolvedHostOptions, { sets, ...shared }: SharedParts): EnvironmentParts {
  const { mcp, log } = options;
  const { store, plugins } = shared;
  return {
    options,
    ...shared,
    views: new SkillViews(options, store, plugins),
    memo: createCatalogMemo(),
    servers: { sets, configured: new ConfiguredServers(options, plugins), policy: mcp, startupWait: mcp.startupWait, log },
  };
}
