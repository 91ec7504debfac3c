import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { PluginHost } from "../plugin-host/plugin-host.ts";
import type { CatalogMemo } from "../session/catalog-memo.ts";
import type { SessionEnvironment } from "../session/environment.ts";
import type { CatalogSource } from "../session/tool-catalog.ts";
import { resolveRoot } from "../skills/discover.ts";
import type { RootsLease, SkillStore } from "../skills/skill-store.ts";
import type { SourceSnapshot } from "../tools/tool-source.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
import type { ResolvedHostOptions } from "./host-options.ts";
import type { SkillViews } from "./skill-views.ts";

/** What the sessions of one host share. */
export interface EnvironmentParts {
  readonly options: ResolvedHostOptions;
  readonly plugins: PluginHost;
  readonly store: SkillStore;
  readonly views: SkillViews;
  readonly memo: CatalogMemo;
  /** What people approved for a place or for ever. */
  readonly approvals: ApprovalStore;
}

/** Gives one session the host's sources, and keeps loaded what only this session names. */
export function createSessionEnvironment(
  { options, plugins, store, views, memo, approvals }: EnvironmentParts,
  onRelease: (sessionId: string) => void,
): SessionEnvironment {
  let lease: RootsLease | undefined;
  let adopted: string | undefined;
  const rootsOf = (directories: readonly string[]): string[] => directories.map((entry) => resolveRoot(entry, options.workingDirectory));
  return {
    log: options.log,
    approvals,
    defaults: { sessionId: randomUUID(), workingDirectory: options.workingDirectory, hostHooks: plugins.hooks },
    catalog(view, pushed) {
      const skills = views.resolve(rootsOf(view.skillDirectories), view.disabledSkills);
      const ofSkills: CatalogSource = { kind: "skill", id: "skills", tools: skills.tools, diagnostics: skills.diagnostics };
      return memo([...plugins.sources, ofSkills, ...pushed.map(toSource)], view);
    },
    skills: (view) => views.skills(rootsOf(view.skillDirectories), view.disabledSkills),
    subscribe: (listener) => views.subscribe(listener),
    adopt({ view, sessionId }) {
      adopted = sessionId;
      const before = lease;
      lease = store.acquire(rootsOf(view.skillDirectories));
      before?.[Symbol.dispose]();
    },
    async ready(signal) {
      signal.throwIfAborted();
      await untilAborted(Promise.all([lease?.ready, plugins.ready()]), signal);
    },
    sessionDirectory: (sessionId) => join(options.sessionsDirectory, sessionId),
    release() {
      lease?.[Symbol.dispose]();
      lease = undefined;
      if (adopted !== undefined) onRelease(adopted);
    },
  };
}

function toSource({ tools, diagnostics }: SourceSnapshot, index: number): CatalogSource {
  return { kind: "external", id: String(index), tools, diagnostics };
}

function untilAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    work.then(() => resolve(), reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
