import { writeFileAtomic } from "../io/atomic-write.ts";
import { boundedFetch } from "../io/net/bounded-fetch.ts";
import { type ManagedProcess, spawnProcess } from "../io/process/child-process.ts";
import { findConfinement } from "../io/process/confine-process.ts";
import type { Scope } from "../io/scope.ts";
import type { PluginApi } from "./plugin-api.ts";

/** What a plugin may have of the machine. Programs that it starts end with it. */
export function createPluginMachine(scope: Scope): Pick<PluginApi, "startProcess" | "confinement" | "fetch" | "writeFile"> {
  const running = new Set<ManagedProcess>();
  // Registered before anything of the plugin, so that it runs last: the plugin's own ends may still want its programs.
  scope.onDispose(async () => {
    await Promise.all(Array.from(running, (process) => process.stop()));
  });
  return {
    async startProcess(spec) {
      const started = await spawnProcess(spec);
      if (started.kind !== "spawned") return started;
      const { process } = started;
      running.add(process);
      void process.ended.then(() => running.delete(process));
      if (!scope.signal.aborted) return started;
      await process.stop();
      return { kind: "failed-to-start", message: "The plugin that starts it is being disposed of." };
    },
    confinement: findConfinement,
    fetch: boundedFetch,
    writeFile: (path, data) => writeFileAtomic(path, data),
  };
}
