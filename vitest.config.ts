import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    // The package's own name leads to the sources, so that tests and the code under test share one identity.
    alias: [
      { find: /^skillhost$/, replacement: here("./src/index.ts") },
      { find: /^skillhost\/plugins\/([\w-]+)$/, replacement: here("./plugins/$1/plugin.ts") },
      { find: /^skillhost\/testing$/, replacement: here("./src/testing.ts") },
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/fixtures/**", "**/node_modules/**"],
    setupFiles: ["test/setup.ts"],
    execArgv: ["--expose-gc"],
    // Vitest leaves a core to itself; with two of them that would run one file after the other.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
