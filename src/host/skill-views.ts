import { Emitter } from "../base/emitter.ts";
import { type ResolvedSkills, resolveOverrides } from "../skills/resolve-overrides.ts";
import type { SkillsSnapshot } from "../skills/skill.ts";
import type { SkillStore } from "../skills/skill-store.ts";
import type { ResolvedHostOptions } from "./host-options.ts";

/** The skills as sessions see them: equal views of one snapshot give one object, so a thousand sessions resolve once. */
export interface SkillViews {
  /** `roots` and `disabled` come on top of the host's own. */
  resolve(roots: readonly string[], disabled: readonly string[]): ResolvedSkills;
  setDisabled(name: string, isDisabled: boolean): void;
  /** Tells that `resolve` may give something else now. */
  subscribe(listener: () => void): Disposable;
}

export function createSkillViews(options: ResolvedHostOptions, store: SkillStore): SkillViews {
  const disabledHere = new Set(options.disabledSkills);
  const changed = new Emitter<{ changed: undefined }>((error) => options.log.error("A listener for skills failed.", { error }));
  let snapshot: SkillsSnapshot | undefined;
  let resolved = new Map<string, ResolvedSkills>();
  store.subscribe(() => changed.emit("changed", undefined));
  return {
    resolve(roots, disabled) {
      if (snapshot !== store.snapshot) {
        snapshot = store.snapshot;
        resolved = new Map();
      }
      const disabledSkills = new Set([...disabledHere, ...disabled]);
      const key = JSON.stringify([roots, [...disabledSkills].sort()]);
      const known =
        resolved.get(key) ??
        resolveOverrides(snapshot, { roots: [...options.roots, ...roots], disabledSkills, conflicts: options.conflicts });
      resolved.set(key, known);
      return known;
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
