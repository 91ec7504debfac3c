import { readdirSync, readFileSync } from "node:fs";
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { patience } from "./test/slowness.ts";
import base, { soaks } from "./vitest.config.ts";

const { projects: _, ...shared } = base.test ?? {};

// Tests of `npm test` that do more rounds here.
const longer = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".test.ts") && !file.includes("node_modules"))
  .map((file) => `test/${file.replaceAll("\\", "/")}`)
  .filter((file) => readFileSync(file, "utf8").includes('/rounds.ts"'));

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
