import { defineConfig, type ViteUserConfig } from "vitest/config";
import base, { starting } from "./vitest.config.ts";

const { projects: _, ...shared } = base.test ?? {};

// What starts many programs. They share modules and nothing else, as the other tests do.
const config: ViteUserConfig = defineConfig({
  ...base,
  test: { ...shared, name: "programs", include: starting, exclude: ["**/node_modules/**"], isolate: false },
});
export default config;
