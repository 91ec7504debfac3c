import { homedir } from "node:os";
import type { Diagnostic } from "../base/diagnostic.ts";
import { createVariableLookup } from "../formats/mcp/mcp-dialects.ts";
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

/** Selects the servers of an agent that has its own, or those of the session. */
export type WhoseView = Pick<CatalogView, "agent">;

/** The configuration of servers by a session or by the host itself. */
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
  /** Undefined: there are no servers. */
  readonly set: ServerSet | undefined;
  readonly listening: readonly Disposable[];
}

interface HeldServersOptions {
  readonly sets: ServerSets;
  readonly configured: ConfiguredServers;
  /** The session's current skills, which may declare servers. */
  skills(): ResolvedSkills;
  /** Called when the features of the servers may have changed. */
  onChanged(): void;
  /** Called when a server of the session's own conversation has changed and its tools can be called. */
  onServerChanged(change: ServerChange): void;
}

/** The sets of servers that one session holds: one for its own conversation, and one for each agent with its own servers. */
export class HeldServers implements Disposable {
  /** Servers that were stopped here, regardless of their configuration. */
  readonly stopped: Set<string> = new Set();
  readonly #enabled = new Set<string>();
  readonly #options: HeldServersOptions;
  readonly #held = new Map<string, Held>();
  /** The conversations for which servers were started. */
  readonly #started = new Set<string>();
  /** Increases when a server is stopped or enabled. */
  #version = 0;
  #user: ServerUser | undefined;

  constructor(options: HeldServersOptions) {
    this.#options = options;
  }

  get user(): ServerUser | undefined {
    return this.#user;
  }

  get own(): Held | undefined {
    return this.#user && this.of(this.#user.view);
  }

  /** The servers of all conversations. */
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

  /** Reads the configuration again. */
  refresh(): void {
    const user = this.#user;
    if (user === undefined) return;
    for (const [key, held] of this.#held) {
      if (key === "" || user.servers.ofAgents.has(key)) this.#hold(key);
      else this.#release(key, held);
    }
    this.#hold(this.#keyOf(user.view));
  }

  /** Starts the servers of a conversation, and returns them. */
  start(view: WhoseView): ServerSet | undefined {
    this.#started.add(this.#keyOf(view));
    const set = this.of(view)?.set;
    set?.lease.start();
    return set;
  }

  stop(name: string): void {
    this.stopped.add(name);
    this.#version++;
    this.refresh();
  }

  /** Undoes `stop`. With `enables`, it also overrides a configuration that disables the server. */
  unstop(name: string, enables = false): void {
    this.stopped.delete(name);
    if (enables) this.#enabled.add(name);
    this.#version++;
    this.refresh();
  }

  [Symbol.dispose](): void {
    this.#user = undefined;
    for (const [key, held] of [...this.#held]) this.#release(key, held);
  }

  /** Agents without their own servers share the session's. */
  #keyOf({ agent }: WhoseView): string {
    return agent !== undefined && this.#user?.servers.ofAgents.has(agent) ? agent : "";
  }

  /** The current servers of a conversation. */
  #hold(key: string): Held | undefined {
    const user = this.#user;
    if (user === undefined) return undefined;
    const { configured, skills } = this.#options;
    const outside = configured.outside(skills());
    const before = this.#held.get(key);
    const version = this.#version;
    if (before?.outside === outside && before.user === user && before.version === version) return before;
    const agent = key === "" ? undefined : key;
    const owned = chooseServers(outside, { servers: user.servers, agent, stopped: this.stopped, enabled: this.#enabled });
    return this.#swap(key, before, { outside, user, version, owned });
  }

  /** Releases the set before after the new one is held, so that connections in both stay open. */
  #swap(key: string, before: Held | undefined, next: Pick<Held, "outside" | "user" | "version" | "owned">): Held {
    const { sets } = this.#options;
    const servers = next.owned.map(({ server }) => server);
    const set = servers.length === 0 ? undefined : sets.hold(servers);
    const isSame = before !== undefined && before.set === set;
    const held: Held = { ...next, set, listening: isSame ? before.listening : this.#listenTo(key, set) };
    this.#held.set(key, held);
    if (isSame && set !== undefined) sets.release(set);
    if (isSame) return held;
    if (before !== undefined) this.#end(before);
    if (this.#started.has(key)) set?.lease.start();
    this.#options.onChanged();
    return held;
  }

  #listenTo(key: string, set: ServerSet | undefined): readonly Disposable[] {
    if (set === undefined) return [];
    return [set.view.subscribe(() => this.#options.onChanged()), set.lease.subscribe((change) => void this.#forward(change, key, set))];
  }

  /** Waits until the tools of a changed server can be called, since a listener may call them at once. */
  async #forward(change: ServerChange, key: string, set: ServerSet): Promise<void> {
    await set.view.ready(never);
    const isOwn = this.#user !== undefined && key === this.#keyOf(this.#user.view);
    if (isOwn && this.#held.get(key)?.set === set) this.#options.onServerChanged(change);
  }

  #release(key: string, held: Held): void {
    this.#held.delete(key);
    this.#started.delete(key);
    this.#end(held);
  }

  #end({ set, listening }: Held): void {
    for (const each of listening) each[Symbol.dispose]();
    if (set !== undefined) this.#options.sets.release(set);
  }
}

const never: AbortSignal = new AbortController().signal;

/** A server with the origin of its configuration. */
interface OwnedServer {
  readonly server: SessionServer;
  readonly origin: ServerOrigin;
}

/** A session's choices about its servers. */
interface ServerChoice {
  readonly servers: ResolvedServers;
  /** The agent whose own servers are included. */
  readonly agent: string | undefined;
  /** Servers that were stopped or enabled at run time, regardless of their configuration. */
  readonly stopped: ReadonlySet<string>;
  readonly enabled: ReadonlySet<string>;
}

/** The servers that are configured outside sessions: by the host's options, by skills and by plugins. */
export class ConfiguredServers {
  readonly #options: ResolvedHostOptions;
  readonly #plugins: PluginHost;
  readonly #bySkill = new WeakMap<Skill, ServersRead>();
  #bySkills = new WeakMap<ResolvedSkills, readonly OwnedServer[]>();
  /** Equal lists share one object, so that an unchanged list is recognized by identity. */
  #lists = new Map<string, readonly OwnedServer[]>();
  #ofPlugins: { readonly owned: readonly OwnedServer[]; readonly diagnostics: readonly Diagnostic[] } | undefined;

  constructor(options: ResolvedHostOptions, plugins: PluginHost) {
    this.#options = options;
    this.#plugins = plugins;
  }

  /** The servers for a view of the skills, lowest precedence first. The same array until one changes. */
  outside(skills: ResolvedSkills): readonly OwnedServer[] {
    const known = this.#bySkills.get(skills);
    if (known !== undefined) return known;
    const ofHost = this.#options.servers.servers.map((server) => ({ server, origin: { kind: "host" } as const }));
    const ofSkills = skills.withServers.flatMap((skill) =>
      this.#read(skill).servers.map((server) => ({ server, origin: { kind: "skill", source: skill.name } as const })),
    );
    const list = this.#shared([...ofHost, ...ofSkills, ...this.#readPlugins().owned]);
    this.#bySkills.set(skills, list);
    return list;
  }

  /** The problems of their configurations. */
  diagnostics(skills: ResolvedSkills): readonly Diagnostic[] {
    const ofSkills = skills.withServers.flatMap((skill) => this.#read(skill).diagnostics);
    return [...this.#options.servers.diagnostics, ...ofSkills, ...this.#readPlugins().diagnostics];
  }

  /** Reads the servers of plugins again on next use. */
  forgetPlugins(): void {
    this.#ofPlugins = undefined;
    this.#bySkills = new WeakMap();
  }

  #shared(list: readonly OwnedServer[]): readonly OwnedServer[] {
    const key = JSON.stringify(list);
    const known = this.#lists.get(key) ?? Object.freeze(list);
    // A host has few different lists, so clearing them all is cheap.
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

  /** Reads the servers of plugins once, until a plugin is replaced. */
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
 * Chooses the servers of one conversation. When several have the same name, the later origin takes precedence (host, skill,
 * plugin, agent, session). Disabled servers stay in the list and are never started.
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
