import { onTestFinished } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import type { Host } from "../../src/host/host.ts";
import type { PluginsChange } from "../../src/plugin-host/plugin-reloads.ts";
import { createTestHost, type TestHost, type TestHostOptions } from "../../src/testing.ts";
import type { Tool } from "../../src/tools/tool.ts";
import type { SourceSnapshot, ToolSource } from "../../src/tools/tool-source.ts";
import { tempFolder } from "../skills/kit.ts";
import { patience } from "../slowness.ts";

/** A host over an empty folder with these plugins, closed after the test. */
export async function hostWith(plugins: TestHostOptions["plugins"], options: TestHostOptions = {}): Promise<TestHost> {
  const workingDirectory = options.workingDirectory ?? tempFolder();
  const kit = await createTestHost({ skillDirectories: [], watch: false, ...options, workingDirectory, plugins });
  onTestFinished(() => kit.close());
  return kit;
}

/** Edits files and waits until the host reports a change of a plugin that meets the condition, by default the first. */
export async function pluginsChanged(
  host: Host,
  edit: () => void,
  until: (change: PluginsChange) => boolean = () => true,
): Promise<PluginsChange> {
  await host.idle();
  const reported = new Promise<PluginsChange>((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error("The host has reported no change of a plugin.")), patience(10_000));
    const listening = host.on("plugins.changed", (change) => {
      if (!until(change)) return;
      clearTimeout(limit);
      listening[Symbol.dispose]();
      resolve(change);
    });
  });
  edit();
  return reported;
}

export function found(host: Host, code: string): readonly Diagnostic[] {
  return host.diagnostics.filter((diagnostic) => diagnostic.code === code);
}

/** A tool source whose snapshot the test replaces. */
export function sourceOfTools(
  id: string,
  initial: readonly Tool[] = [],
): ToolSource & { publish(tools: readonly Tool[]): void; offer(offers: Partial<SourceSnapshot>): void; readonly ended: number } {
  const listeners = new Set<() => void>();
  const state = { snapshot: { tools: initial, skills: [], diagnostics: [] } as ToolSource["snapshot"], ended: 0 };
  return {
    id,
    get snapshot() {
      return state.snapshot;
    },
    get ended() {
      return state.ended;
    },
    ready: async () => {},
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    publish(tools) {
      state.snapshot = { ...state.snapshot, tools };
      for (const listener of listeners) listener();
    },
    offer(offers) {
      const { tools, skills, diagnostics } = state.snapshot;
      state.snapshot = { tools, skills, diagnostics, ...offers };
      for (const listener of listeners) listener();
    },
    async [Symbol.asyncDispose]() {
      state.ended++;
    },
  };
}
