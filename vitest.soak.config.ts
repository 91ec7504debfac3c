import { defineConfig, type ViteUserConfig } from "vitest/config";
import base, { soaks } from "./vitest.config.ts";

const { projects: _, ...shared } = base.test ?? {};

// What takes minutes: fuzzers, races and endurance, each with many more rounds than its seed in `npm test`.
const config: ViteUserConfig = defineConfig({
  ...base,
  test: { ...shared, include: soaks, exclude: ["**/node_modules/**"], testTimeout: 600_000, hookTimeout: 120_000 },
});
export default config;
