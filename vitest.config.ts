import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Tests that `npm run test:interop` runs, since each of them first installs a big program from npm. */
export const realPeers: string[] = ["test/interop/language-server/**/*.test.ts", "test/interop/registry/**/*.test.ts"];

/** Tests that `npm run test:soak` runs, since they take minutes. */
export const soaks: string[] = ["test/**/*.soak.test.ts"];

const sharing = ["advice", "base", "formats", "models", "plugin-host", "session", "skills", "tools", "trust"];
const inFolders = (folders: readonly string[]): string[] => folders.map((folder) => `test/${folder}/**/*.test.ts`);

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
    globalSetup: ["test/temp-root.ts"],
    setupFiles: ["test/setup.ts"],
    execArgv: ["--expose-gc"],
    // Vitest leaves a core to itself; with two of them that would run one file after the other.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 20_000,
    hookTimeout: 20_000,
    projects: [
      // Files of these folders share modules and nothing else: to load the modules once for each process saves a third of the time.
      { extends: true, test: { name: "shared", include: inFolders(sharing), exclude: soaks, isolate: false } },
      {
        extends: true,
        test: {
          name: "alone",
          include: inFolders(["**"]),
          exclude: ["test/fixtures/**", "**/node_modules/**", ...realPeers, ...soaks, ...inFolders(sharing)],
        },
      },
    ],
  },
});
