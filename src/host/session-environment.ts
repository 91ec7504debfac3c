import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { CatalogMemo } from "../session/catalog-memo.ts";
import type { SessionEnvironment } from "../session/environment.ts";
import type { CatalogSource } from "../session/tool-catalog.ts";
import { resolveRoot } from "../skills/discover.ts";
import type { RootsLease, SkillStore } from "../skills/skill-store.ts";
import type { SourceSnapshot } from "../tools/tool-source.ts";
import type { ResolvedHostOptions } from "./host-options.ts";
import type { SkillViews } from "./skill-views.ts";

/** What the sessions of one host share. */
export interface EnvironmentParts {
  readonly options: ResolvedHostOptions;
  readonly store: SkillStore;
  readonly views: SkillViews;
  readonly memo: CatalogMemo;
}

/** Gives one session the host's sources, and keeps loaded what only this session names. */
export function createSessionEnvironment({ options, store, views, memo }: EnvironmentParts, onRelease: () => void): SessionEnvironment {
  let lease: RootsLease | undefined;
  const rootsOf = (directories: readonly string[]): string[] => directories.map((entry) => resolveRoot(entry, options.workingDirectory));
  return {
    log: options.log,
    defaults: { sessionId: randomUUID(), workingDirectory: options.workingDirectory },
    catalog(view, pushed) {
      const skills = views.resolve(rootsOf(view.skillDirectories), view.disabledSkills);
      return memo([{ kind: "skill", id: "skills", tools: skills.tools, diagnostics: skills.diagnostics }, ...pushed.map(toSource)], view);
    },
    subscribe: (listener) => views.subscribe(listener),
    adopt({ view }) {
      const before = lease;
      lease = store.acquire(rootsOf(view.skillDirectories));
      before?.[Symbol.dispose]();
    },
    async ready(signal) {
      signal.throwIfAborted();
      await untilAborted(lease?.ready ?? Promise.resolve(), signal);
    },
    sessionDirectory: (sessionId) => join(options.sessionsDirectory, sessionId),
    release() {
      lease?.[Symbol.dispose]();
      lease = undefined;
      onRelease();
    },
  };
}

function toSource({ tools, diagnostics }: SourceSnapshot, index: number): CatalogSource {
  return { kind: "external", id: String(index), tools, diagnostics };
}

function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
