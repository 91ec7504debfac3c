import { defineConfig, type ViteUserConfig } from "vitest/config";
import base, { realPeers, soaks } from "./vitest.config.ts";

const { projects: _, ...shared } = base.test ?? {};

// What needs a big program from npm: a language server, a package registry. And, once more, the tests of the Copilot wire,
// which hold what is sent against the schemas of the official runtime: those are two files of 147 MB.
const contract = ["test/servers/copilot/**/*.test.ts"];

const config: ViteUserConfig = defineConfig({
  ...base,
  test: {
    ...shared,
    include: [...realPeers, ...contract],
    globalSetup: ["test/temp-root.ts", "test/interop/copilot-schemas.ts"],
    exclude: ["**/node_modules/**", ...soaks],
    testTimeout: 120_000,
    hookTimeout: 300_000,
    // They wait for programs most of the time.
    maxWorkers: 2,
  },
});
export default config;
