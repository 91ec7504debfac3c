import { defineConfig, type ViteUserConfig } from "vitest/config";
import base, { realPeers } from "./vitest.config.ts";

const { projects: _, ...shared } = base.test ?? {};

// What needs a big program from npm: a language server, a package registry.
const config: ViteUserConfig = defineConfig({
  ...base,
  test: { ...shared, include: realPeers, exclude: ["**/node_modules/**"], testTimeout: 120_000, hookTimeout: 300_000, maxWorkers: 1 },
});
export default config;
