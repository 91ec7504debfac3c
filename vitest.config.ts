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
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
