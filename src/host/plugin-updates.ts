import type { PluginHost } from "../plugin-host/plugin-host.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import type { RootsLease, SkillStore } from "../skills/store/skill-store.ts";
import type { FolderConsent } from "./host-trust.ts";

export interface PluginUpdatesParts {
  readonly plugins: PluginHost;
  readonly store: SkillStore;
  readonly consent: FolderConsent;
  /** The store's own list: the host's runner first, then those of plugins. */
  readonly runners: ToolRunner[];
  /** The host's own skill directories, as paths. */
  readonly roots: readonly string[];
  /** Makes open sessions use the current hooks, agents and models of plugins. */
  refreshSessions(): Promise<void>;
  /** Called when contributions of plugins have changed. */
  onAdapted(): void;
}

/** Applies changes of plugins to the host: skill folders, tool runners and open sessions. */
export class PluginUpdates {
  readonly #parts: PluginUpdatesParts;
  #lease: RootsLease | undefined;
  #directories: readonly string[] = [];

  constructor(parts: PluginUpdatesParts) {
    this.#parts = parts;
  }

  /** Loads the skills for the first time. */
  begin(): RootsLease {
    const { runners, plugins } = this.#parts;
    runners.push(...plugins.toolRunners);
    return this.#acquire();
  }

  /** Settles when nothing uses replaced plugins any more. */
  async adapt(): Promise<void> {
    if (this.#lease === undefined) return;
    this.#parts.onAdapted();
    await Promise.all([this.#followDirectories(), this.#followRunners()]);
    await this.#parts.refreshSessions();
  }

  #acquire(): RootsLease {
    const { store, plugins, roots, consent } = this.#parts;
    this.#directories = plugins.skillDirectories;
    // An active plugin is trusted, and so are its skills.
    consent.name(this.#directories);
    this.#lease = store.acquire([...this.#directories, ...roots]);
    return this.#lease;
  }

  async #followDirectories(): Promise<void> {
    const { skillDirectories } = this.#parts.plugins;
    if (areEqual(skillDirectories, this.#directories)) return;
    const before = this.#lease;
    await this.#acquire().ready;
    before?.[Symbol.dispose]();
  }

  async #followRunners(): Promise<void> {
    const { runners, plugins, store } = this.#parts;
    const [own, ...before] = runners;
    const now = plugins.toolRunners;
    if (areEqual(before, now)) return;
    runners.splice(0, runners.length, ...(own === undefined ? [] : [own]), ...now);
    const changed = [...before.filter((runner) => !now.includes(runner)), ...now.filter((runner) => !before.includes(runner))];
    await store.reloadFiles(new Set(changed.flatMap(({ extensions }) => extensions)));
  }
}

function areEqual(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index]);
}
