import { Emitter } from "../base/emitter.ts";
import type { PluginHost } from "../plugin-host/plugin-host.ts";
import type { PromptAndResourceSource } from "../session/prompts-resources/prompts-and-resources.ts";
import { type ResolvedSkills, resolveOverrides } from "../skills/resolve-overrides.ts";
import type { SkillsSnapshot } from "../skills/skill.ts";
import type { SkillStore } from "../skills/store/skill-store.ts";
import type { SkillEntry } from "../tools/tool-source.ts";
import type { ResolvedHostOptions } from "./host-options.ts";

interface JoinedSkills {
  readonly ofPlugins: readonly SkillEntry[];
  readonly all: readonly SkillEntry[];
}

interface SkillFeatures {
  readonly listings: number;
  readonly source: PromptAndResourceSource;
}

/** The skills as sessions see them. Equal views of one snapshot share one result, so that many sessions resolve once. */
export class SkillViews {
  readonly #options: ResolvedHostOptions;
  readonly #store: SkillStore;
  readonly #plugins: PluginHost;
  readonly #disabled: Set<string>;
  readonly #changed: Emitter<{ changed: undefined }>;
  readonly #joined = new WeakMap<ResolvedSkills, JoinedSkills>();
  readonly #features = new WeakMap<ResolvedSkills, SkillFeatures>();
  #snapshot: SkillsSnapshot | undefined;
  #resolved = new Map<string, ResolvedSkills>();
  /** The results for the previous snapshot. */
  #previous: ReadonlyMap<string, ResolvedSkills> = new Map();
  /** Counts the changes of resource files. */
  #listings = 0;

  constructor(options: ResolvedHostOptions, store: SkillStore, plugins: PluginHost) {
    this.#options = options;
    this.#store = store;
    this.#plugins = plugins;
    this.#disabled = new Set(options.disabledSkills);
    this.#changed = new Emitter((error) => options.log.error("A skill listener failed.", { error }));
    store.onResources(() => {
      this.#listings++;
      this.#emitChanged();
    });
    store.subscribe(() => this.#emitChanged());
    plugins.subscribe(() => this.#emitChanged());
  }

  /** `roots` and `disabled` are added to the host's own. */
  resolve(roots: readonly string[], disabled: readonly string[]): ResolvedSkills {
    if (this.#snapshot !== this.#store.snapshot) {
      this.#snapshot = this.#store.snapshot;
      this.#previous = this.#resolved;
      this.#resolved = new Map();
    }
    const { packageRoots, optionalRoots, conflicts, roots: ownRoots } = this.#options;
    const { skillDirectories } = this.#plugins;
    const disabledSkills = new Set([...this.#disabled, ...disabled]);
    const key = JSON.stringify([skillDirectories, roots, [...disabledSkills].sort()]);
    const known =
      this.#resolved.get(key) ??
      resolveOverrides(
        this.#snapshot,
        {
          roots: [...skillDirectories, ...packageRoots, ...ownRoots, ...roots],
          optionalRoots: new Set([...optionalRoots, ...skillDirectories]),
          disabledSkills,
          conflicts,
        },
        this.#previous.get(key),
      );
    this.#resolved.set(key, known);
    return known;
  }

  /** The active skills of folders, after those of plugins' tool sources that are not disabled and whose names no folder uses. */
  skills(roots: readonly string[], disabled: readonly string[]): readonly SkillEntry[] {
    const own = this.resolve(roots, disabled);
    const ofPlugins = this.#plugins.skills;
    if (ofPlugins.length === 0) return own.skills;
    const known = this.#joined.get(own);
    if (known?.ofPlugins === ofPlugins) return known.all;
    const hidden = new Set([...this.#disabled, ...disabled, ...own.skills.map(({ name }) => name)]);
    const all = [...ofPlugins.filter(({ name }) => !hidden.has(name) && !hidden.has("*")), ...own.skills];
    this.#joined.set(own, { ofPlugins, all });
    return all;
  }

  /** The prompts and resources of the active skills of folders. The same object until one of them may have changed. */
  offers(roots: readonly string[], disabled: readonly string[]): PromptAndResourceSource {
    const own = this.resolve(roots, disabled);
    const known = this.#features.get(own);
    if (known?.listings === this.#listings) return known.source;
    const { prompts, resources, resourceTemplates } = own.offers;
    const source: PromptAndResourceSource = {
      kind: "skill",
      id: "skills",
      prompts,
      // Lists the files of the skills on first access.
      get resources() {
        return resources.resources;
      },
      resourceTemplates,
    };
    this.#features.set(own, { listings: this.#listings, source });
    return source;
  }

  setDisabled(name: string, isDisabled: boolean): void {
    if (isDisabled === this.#disabled.has(name)) return;
    if (isDisabled) this.#disabled.add(name);
    else this.#disabled.delete(name);
    this.#emitChanged();
  }

  /** Calls `listener` when `resolve` may return another result. */
  subscribe(listener: () => void): Disposable {
    return this.#changed.on("changed", listener);
  }

  #emitChanged(): void {
    this.#changed.emit("changed", undefined);
  }
}
