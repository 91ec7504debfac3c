import type { PluginApi } from "skillhost";

/** What the operations need of their host. */
export type Machine = Pick<PluginApi, "startProcess" | "fetch" | "writeFile" | "log">;
