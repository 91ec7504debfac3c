import { defineConfig, type ViteUserConfig } from "vitest/config";
import { patience } from "./test/slowness.ts";
import base, { soaks } from "./vitest.config.ts";

const { projects: _, ...shared } = base.test ?? {};

// Tests of `npm test` that do more rounds here (`test/rounds.ts`).
const longer = [
  "test/formats/**/*fuzz.test.ts",
  "test/models/fuzz*.test.ts",
  "test/io/{kill,module-leaks,module-matrix,watch-limit}.test.ts",
  "test/host/kill-session.test.ts",
  "test/skills/leaks.test.ts",
  "test/plugin-host/plugin-leaks.test.ts",
];

// What takes minutes: fuzzers, races and endurance, each with many more rounds than its seed in `npm test`.
const config: ViteUserConfig = defineConfig({
  ...base,
  test: {
    ...shared,
    env: { SKILLHOST_SOAK: "1" },
    include: [...soaks, ...longer],
    exclude: ["**/node_modules/**"],
    testTimeout: patience(600_000),
    hookTimeout: patience(120_000),
  },
});
export default config;
