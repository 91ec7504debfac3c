import type { PluginApi } from "skillhost";

/** What the operations use of the host. Processes receive the environment of commands, not that of the host. */
export type Machine = Pick<PluginApi, "fetch" | "writeFile" | "log" | "confinement"> & {
  startProcess(spec: Omit<Parameters<PluginApi["startProcess"]>[0], "env" | "environment">): ReturnType<PluginApi["startProcess"]>;
};
