import { homedir } from "node:os";
import type { Diagnostic } from "../base/diagnostic.ts";
import { createVariableLookup } from "../formats/mcp/expand-variables.ts";
import { withGithubTools } from "../mcp/connection/github-tools.ts";
import type { ServerChange } from "../mcp/supervisor/server-lease.ts";
import type { PluginHost } from "../plugin-host/plugin-host.ts";
import type { CatalogView } from "../session/catalog/catalog-view.ts";
import type { ServerOrigin } from "../session/mcp/server-connections.ts";
import {
  isStartable,
  type ResolvedServers,
  readServers,
  type ServersRead,
  type SessionServer,
} from "../session/mcp/session-server-options.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import type { Skill } from "../skills/skill.ts";
import type { ResolvedHostOptions } from "./host-options.ts";
import type { ServerSet, ServerSets } from "./session-server-sets.ts";

/** Whose servers: those of an agent with servers of its own, or the session's. */
export type WhoseView = Pick<CatalogView, "agent">;

/** What a user of servers says of them: a session, or the host itself. */
export interface ServerUser {
  readonly servers: ResolvedServers;
  readonly view: WhoseView;
}

/** The servers of one conversation. */
interface Held {
  readonly outside: readonly OwnedServer[];
  readonly user: ServerUser;
  readonly version: number;
  readonly owned: readonly OwnedServer[];
  /** Undefined: there are none. */
  readonly set: ServerSet | undefined;
  readonly listening: readonly Disposable[];
}

interface HeldServersHost {
  readonly sets: ServerSets;
  readonly configured: ConfiguredServers;
  /** What is configured outside of the session, by its skills of now. */
  outside(): readonly OwnedServer[];
  /** What the servers offer may be something else now. */
  changed(): void;
  /** A server of the session's own conversation is another now. */
  heard(change: ServerChange): void;
}

/** Which sets one session holds: one for its own conversation, and one for each agent with servers of its own. */
export class HeldServers implements Disposable {
  /** Switched off and on here, whatever is configured. */
  readonly stopped: Set<string> = new Set();
  readonly #enabled = new Set<string>();
  readonly #host: HeldServersHost;
  readonly #held = new Map<string, Held>();
  /** The conversations that servers were started for. */
  readonly #started = new Set<string>();
  /** Counts what was switched off or on. */
  #version = 0;
  #user: ServerUser | undefined;

  constructor(host: HeldServersHost) {
    this.#host = host;
  }

  get user(): ServerUser | undefined {
    return this.#user;
  }

  get own(): Held | undefined {
    return this.#user && this.of(this.#user.view);
  }

  /** All that are held. */
  get all(): readonly Held[] {
    return [...this.#held.values()];
  }

  of(view: WhoseView): Held | undefined {
    return this.#hold(this.#keyOf(view));
  }

  adopt(user: ServerUser): void {
    this.#user = user;
    this.refresh();
  }

  /** Looks again at what is configured. */
  refresh(): void {
    const user = this.#user;
    if (user === undefined) return;
    for (const [key, held] of this.#held) {
      if (key === "" || user.servers.ofAgents.has(key)) this.#hold(key);
      else this.#letGo(key, held);
    }
    this.#hold(this.#keyOf(user.view));
  }

  start(view: WhoseView): void {
    this.#started.add(this.#keyOf(view));
    this.of(view)?.set?.lease.start();
  }

  stop(name: string): void {
    this.stopped.add(name);
    this.#version++;
    this.refresh();
  }

  /** Takes back `stop`; with `enables`, it overrules a configuration that has it disabled. */
  unstop(name: string, enables = false): void {
    this.stopped.delete(name);
    if (enables) this.#enabled.add(name);
    this.#version++;
    this.refresh();
  }

  [Symbol.dispose](): void {
    this.#user = undefined;
    for (const [key, held] of [...this.#held]) this.#letGo(key, held);
  }

  /** Agents without servers of their own share the session's. */
  #keyOf({ agent }: WhoseView): string {
    return agent !== undefined && this.#user?.servers.ofAgents.has(agent) ? agent : "";
  }

  /** The servers of now. */
  #hold(key: string): Held | undefined {
    const user = this.#user;
    if (user === undefined) return undefined;
    const outside = this.#host.outside();
    const before = this.#held.get(key);
    const version = this.#version;
    if (before?.outside === outside && before.user === user && before.version === version) return before;
    const agent = key === "" ? undefined : key;
    const owned = chooseServers(outside, { servers: user.servers, agent, stopped: this.stopped, enabled: this.#enabled });
    return this.#swap(key, before, { outside, user, version, owned });
  }

  /** The set from before is let go of when the new one is held: connections that are in both live on. */
  #swap(key: string, before: Held | undefined, facts: Pick<Held, "outside" | "user" | "version" | "owned">): Held {
    const { sets } = this.#host;
    const servers = facts.owned.map(({ server }) => server);
    const set = servers.length === 0 ? undefined : sets.hold(servers);
    const isSame = before !== undefined && before.set === set;
    const held: Held = { ...facts, set, listening: isSame ? before.listening : this.#listenTo(key, set) };
    this.#held.set(key, held);
    if (isSame && set !== undefined) sets.release(set);
    if (isSame) return held;
    if (before !== undefined) this.#end(before);
    if (this.#started.has(key)) set?.lease.start();
    this.#host.changed();
    return held;
  }

  #listenTo(key: string, set: ServerSet | undefined): readonly Disposable[] {
    if (set === undefined) return [];
    return [set.view.subscribe(() => this.#host.changed()), set.lease.subscribe((change) => void this.#hear(change, key, set))];
  }

  /** Tells of what a server has become when its tools can be called: whoever hears of it may do that at once. */
  async #hear(change: ServerChange, key: string, set: ServerSet): Promise<void> {
    await set.view.ready(never);
    const isOwn = this.#user !== undefined && key === this.#keyOf(this.#user.view);
    if (isOwn && this.#held.get(key)?.set === set) this.#host.heard(change);
  }

  #letGo(key: string, held: Held): void {
    this.#held.delete(key);
    this.#started.delete(key);
    this.#end(held);
  }

  #end({ set, listening }: Held): void {
    for (const each of listening) each[Symbol.dispose]();
    if (set !== undefined) this.#host.sets.release(set);
  }
}

const never: AbortSignal = new AbortController().signal;

/** A server with whoever configured it. */
interface OwnedServer {
  readonly server: SessionServer;
  readonly origin: ServerOrigin;
}

/** What a session says about its servers. */
interface ServerChoice {
  readonly servers: ResolvedServers;
  /** The agent whose own servers count, too. */
  readonly agent: string | undefined;
  /** Switched off or on while it runs, whatever is configured. */
  readonly stopped: ReadonlySet<string>;
  readonly enabled: ReadonlySet<string>;
}

/** The servers that are configured outside of sessions: by the host's options, by skills and by plugins. */
export class ConfiguredServers {
  readonly #options: ResolvedHostOptions;
  readonly #plugins: PluginHost;
  readonly #bySkill = new WeakMap<Skill, ServersRead>();
  #bySkills = new WeakMap<ResolvedSkills, readonly OwnedServer[]>();
  /** Equal lists are one object, so that whoever has one sees at once that nothing has changed. */
  #lists = new Map<string, readonly OwnedServer[]>();
  #ofPlugins: { readonly owned: readonly OwnedServer[]; readonly diagnostics: readonly Diagnostic[] } | undefined;

  constructor(options: ResolvedHostOptions, plugins: PluginHost) {
    this.#options = options;
    this.#plugins = plugins;
  }

  /** All of them for a view of the skills, lowest precedence first. The same array until one changes. */
  outside(skills: ResolvedSkills): readonly OwnedServer[] {
    const known = this.#bySkills.get(skills);
    if (known !== undefined) return known;
    const ofHost = this.#options.servers.servers.map((server) => ({ server, origin: { kind: "host" } as const }));
    const ofSkills = skills.skills.flatMap((skill) =>
      this.#read(skill).servers.map((server) => ({ server, origin: { kind: "skill", source: skill.name } as const })),
    );
    const list = this.#shared([...ofHost, ...ofSkills, ...this.#readPlugins().owned]);
    this.#bySkills.set(skills, list);
    return list;
  }

  /** What is wrong with them. */
  diagnostics(skills: ResolvedSkills): readonly Diagnostic[] {
    const ofSkills = skills.skills.flatMap((skill) => this.#read(skill).diagnostics);
    return [...this.#options.servers.diagnostics, ...ofSkills, ...this.#readPlugins().diagnostics];
  }

  /** Plugins bring others now. */
  forgetPlugins(): void {
    this.#ofPlugins = undefined;
    this.#bySkills = new WeakMap();
  }

  #shared(list: readonly OwnedServer[]): readonly OwnedServer[] {
    const key = JSON.stringify(list);
    const known = this.#lists.get(key) ?? Object.freeze(list);
    // A host has few different ones; the oldest go.
    if (this.#lists.size >= 64) this.#lists = new Map();
    this.#lists.set(key, known);
    return known;
  }

  #read(skill: Skill): ServersRead {
    const known = this.#bySkill.get(skill);
    if (known !== undefined) return known;
    const { folder, mcpServers } = skill;
    const places = { folder, workspace: this.#options.workingDirectory, home: homedir() };
    const variables = createVariableLookup({ environment: process.env, places });
    const read = readServers(mcpServers, { dialect: "skill", folder, variables }, folder);
    this.#bySkill.set(skill, read);
    return read;
  }

  /** Once: what plugins bring is fixed when they are active. Until one is replaced. */
  #readPlugins(): { readonly owned: readonly OwnedServer[]; readonly diagnostics: readonly Diagnostic[] } {
    if (this.#ofPlugins !== undefined) return this.#ofPlugins;
    const { workingDirectory } = this.#options;
    const map = Object.fromEntries(this.#plugins.mcpServers);
    const { servers, diagnostics } = readServers(map, { dialect: "session" }, workingDirectory);
    const sourceOf = (name: string): string => this.#plugins.plugins.find((plugin) => plugin.mcpServers.includes(name))?.name ?? "";
    const owned = servers.map((server) => ({ server, origin: { kind: "plugin", source: sourceOf(server.name) } as const }));
    this.#ofPlugins = { owned, diagnostics };
    return this.#ofPlugins;
  }
}

/**
 * Puts together what one conversation has: of one name, a later owner's counts (host, skill, plugin, agent, session). What
 * is switched off stays in the list and is never started.
 */
function chooseServers(outside: readonly OwnedServer[], { servers, agent, stopped, enabled }: ServerChoice): readonly OwnedServer[] {
  const ofAgent = agent === undefined ? [] : (servers.ofAgents.get(agent) ?? []);
  const chosen = new Map<string, OwnedServer>();
  const add = (owned: OwnedServer): void => {
    chosen.delete(owned.server.name);
    chosen.set(owned.server.name, owned);
  };
  outside.forEach(add);
  for (const server of ofAgent) add({ server, origin: { kind: "agent", source: agent! } });
  for (const server of servers.own) add({ server, origin: { kind: "session" } });
  return Array.from(chosen.values(), ({ server, origin }) => {
    if (!isStartable(server)) return { server, origin };
    const { name } = server;
    const isOff = stopped.has(name) || servers.disabled.has(name) || (server.isDisabled && !enabled.has(name));
    const wanted = withGithubTools(server, servers.github);
    return { server: isOff === wanted.isDisabled ? wanted : Object.freeze({ ...wanted, isDisabled: isOff }), origin };
  });
}
