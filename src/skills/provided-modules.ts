import type { ModuleLoaderOptions } from "../io/module-loader/create-module-loader.ts";

/** What the modules of skills and plugins can import without anybody having installed it. */
export const providedModules: Pick<ModuleLoaderOptions, "hostModules" | "fallbackPackages"> = {
  hostModules: { skillhost: () => import("skillhost"), "skillhost/testing": () => import("skillhost/testing") },
  fallbackPackages: ["zod"],
};
