import { Emitter } from "../base/emitter.ts";
import type { PluginHost } from "../plugin-host/plugin-host.ts";
import type { PromptAndResourceSource } from "../session/prompts-resources/prompts-and-resources.ts";
import { type ResolvedSkills, resolveOverrides } from "../skills/resolve-overrides.ts";
import type { SkillsSnapshot } from "../skills/skill.ts";
import type { SkillStore } from "../skills/store/skill-store.ts";
import type { SkillEntry } from "../tools/tool-source.ts";
import type { ResolvedHostOptions } from "./host-options.ts";

/** The skills as sessions see them: equal views of one snapshot give one object, so a thousand sessions resolve once. */
export interface SkillViews {
  /** `roots` and `disabled` come on top of the host's own. */
  resolve(roots: readonly string[], disabled: readonly string[]): ResolvedSkills;
  /** The active ones, after those of plugins' tool sources that are not switched off and whose names no folder has. */
  skills(roots: readonly string[], disabled: readonly string[]): readonly SkillEntry[];
  /** What the active ones of folders offer beside tools. The same object until something of it may be different. */
  offers(roots: readonly string[], disabled: readonly string[]): PromptAndResourceSource;
  setDisabled(name: string, isDisabled: boolean): void;
  /** Tells that `resolve` may give something else now. */
  subscribe(listener: () => void): Disposable;
}

export function createSkillViews(options: ResolvedHostOptions, store: SkillStore, plugins: PluginHost): SkillViews {
  const disabledHere = new Set(options.disabledSkills);
  const changed = new Emitter<{ changed: undefined }>((error) => options.log.error("A skill listener failed.", { error }));
  let snapshot: SkillsSnapshot | undefined;
  let resolved = new Map<string, ResolvedSkills>();
  const joined = new WeakMap<ResolvedSkills, { readonly of: readonly SkillEntry[]; readonly all: readonly SkillEntry[] }>();
  let listings = 0;
  const offered = new WeakMap<ResolvedSkills, { readonly listings: number; readonly source: PromptAndResourceSource }>();
  store.onResources(() => {
    listings++;
    changed.emit("changed", undefined);
  });
  store.subscribe(() => changed.emit("changed", undefined));
  plugins.subscribe(() => changed.emit("changed", undefined));
  return {
    resolve(roots, disabled) {
      if (snapshot !== store.snapshot) {
        snapshot = store.snapshot;
        resolved = new Map();
      }
      const disabledSkills = new Set([...disabledHere, ...disabled]);
      const { skillDirectories } = plugins;
      const key = JSON.stringify([skillDirectories, roots, [...disabledSkills].sort()]);
      const known =
        resolved.get(key) ??
        resolveOverrides(snapshot, {
          roots: [...plugins.skillDirectories, ...options.packageRoots, ...options.roots, ...roots],
          optionalRoots: new Set([...options.optionalRoots, ...plugins.skillDirectories]),
          disabledSkills,
          conflicts: options.conflicts,
        });
      resolved.set(key, known);
      return known;
    },
    skills(roots, disabled) {
      const own = this.resolve(roots, disabled);
      if (plugins.skills.length === 0) return own.skills;
      const known = joined.get(own);
      if (known?.of === plugins.skills) return known.all;
      const hidden = new Set([...disabledHere, ...disabled, ...own.skills.map(({ name }) => name)]);
      const all = [...plugins.skills.filter(({ name }) => !hidden.has(name) && !hidden.has("*")), ...own.skills];
      joined.set(own, { of: plugins.skills, all });
      return all;
    },
    offers(roots, disabled) {
      const own = this.resolve(roots, disabled);
      const known = offered.get(own);
      if (known?.listings === listings) return known.source;
      const source = sourceOf(own);
      offered.set(own, { listings, source });
      return source;
    },
    setDisabled(name, isDisabled) {
      if (isDisabled === disabledHere.has(name)) return;
      if (isDisabled) disabledHere.add(name);
      else disabledHere.delete(name);
      changed.emit("changed", undefined);
    },
    subscribe: (listener) => changed.on("changed", listener),
  };
}

function sourceOf({ offers: { prompts, resources, resourceTemplates } }: ResolvedSkills): PromptAndResourceSource {
  return {
    kind: "skill",
    id: "skills",
    prompts,
    // The files of the skills are looked for when somebody reads this.
    get resources() {
      return resources.resources;
    },
    resourceTemplates,
  };
}
