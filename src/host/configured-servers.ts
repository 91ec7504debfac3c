import { homedir } from "node:os";
import type { Diagnostic } from "../base/diagnostic.ts";
import { createVariableLookup } from "../formats/mcp/expand-variables.ts";
import { withGithubTools } from "../mcp/connection/github-tools.ts";
import type { PluginHost } from "../plugin-host/plugin-host.ts";
import {
  type ConfiguredServer,
  isStartable,
  type ResolvedServers,
  readServers,
  type ServersRead,
} from "../session/servers/server-options.ts";
import type { ServerOrigin } from "../session/servers/session-servers.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import type { Skill } from "../skills/skill.ts";
import type { ResolvedHostOptions } from "./host-options.ts";

/** A server with whoever configured it. */
export interface OwnedServer {
  readonly server: ConfiguredServer;
  readonly origin: ServerOrigin;
}

/** What a session says about its servers. */
export interface ServerChoice {
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
export function chooseServers(outside: readonly OwnedServer[], { servers, agent, stopped, enabled }: ServerChoice): readonly OwnedServer[] {
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
