import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { patience } from "./test/slowness.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Tests that `npm run test:interop` runs, since each of them first installs a big program from npm, or starts servers or browsers. */
export const realPeers: string[] = [
  "copilot-guides",
  "copilot-python",
  "inspector",
  "language-server",
  "nats",
  "node-versions",
  "registry",
  "package-managers",
  "new-user",
].map((room) => `test/interop/${room}/**/*.test.ts`);

/** Tests that `npm run test:programs` runs, since most of their time is that of programs that they start: this package as built, git, Python. */
export const starting: string[] = [
  "test/advice/check-python.test.ts",
  "test/scripts/endurance.test.ts",
  "test/skills/escapes.test.ts",
  "test/skills/enclosed-programs.test.ts",
  "test/skills/isolated-limits.test.ts",
  "test/skills/isolated-offers.test.ts",
  "test/skills/isolated-network.test.ts",
  "test/skills/isolation{,-survival}.test.ts",
  "test/skills/spare-children.test.ts",
  "test/cli/{completion,connect,hostile-checkout,init,open-files,process,terminal,todos}.test.ts",
  "test/docs/{internals,samples}.test.ts",
  "test/host/{kill-session,takeover}.test.ts",
  "test/interop/copilot-sdk/*.test.ts",
  "test/io/{child-process,disk-cache}.test.ts",
  "test/mcp/{connection/connect-local,oauth/processes,real-servers,server-processes}.test.ts",
  "test/packages/git-{add,hostile,update}.test.ts",
  "test/plugin-host/use-bundles.test.ts",
  "test/plugins/language-server/{bridge,faults}.test.ts",
  "test/plugins/python-tools/*.test.ts",
  "test/plugins/workspace-tools/{confined-attempts,confined-shells,shells}.test.ts",
  "test/scripts/{bundle,measure-switches}.test.ts",
  "test/servers/copilot/{extensions,process}.test.ts",
  "test/servers/mcp/stdio.test.ts",
  "test/session/database/*.test.ts",
  "test/session/permissions/shell-deny.test.ts",
  "test/skills/open-files.test.ts",
  "test/skills-bundled/*.test.ts",
  "test/trust/admission/{exchanges,mounts}.test.ts",
];

/** Tests that `npm run test:soak` runs, since they take minutes. */
export const soaks: string[] = ["test/**/*.soak.test.ts"];

/** Tests that replace a module of Node.js with `vi.mock`: these need modules of their own. */
const mocking = ["test/io/file-lock.test.ts", "test/io/file-log.test.ts", "test/io/watch-limit.test.ts"];

/** Files that take longest. They start first, so that none of them runs alone at the end. */
const longest = [
  "test/contract/linear-time.soak.test.ts",
  "test/contract/broken-skills.test.ts",
  "test/servers/mcp/http-attacks.test.ts",
  "test/io/module-matrix.test.ts",
  "test/contract/linear-time.test.ts",
  "test/servers/copilot/listening.test.ts",
  "test/packages/add.test.ts",
  "test/skills/text-cache.test.ts",
  "test/tools/schema-evaluation.test.ts",
];

for (const file of [...mocking, ...longest]) {
  if (!existsSync(here(file))) throw new Error(`vitest.config.ts names ${file}, which does not exist.`);
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => longest.some((file) => moduleId.endsWith(`/${file}`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  resolve: {
    // The package's own name leads to the sources, so that tests and the code under test share one identity.
    alias: [
      { find: /^skillhost$/, replacement: here("./src/index.ts") },
      { find: /^skillhost\/plugins\/([\w-]+)$/, replacement: here("./plugins/$1/plugin.ts") },
      { find: /^skillhost\/(define|testing|adapters\/[\w-]+)$/, replacement: here("./src/$1.ts") },
    ],
  },
  test: {
    globalSetup: ["test/temp-root.ts"],
    setupFiles: ["test/setup.ts"],
    // Most objects of a test are short-lived, and the default of 16 MB fills too often: a tenth of the time was garbage collection.
    execArgv: ["--expose-gc", "--max-semi-space-size=64"],
    // Files wait for child processes and watchers much of their time.
    maxWorkers: availableParallelism() + 2,
    // Deadlines, and no measurements: on a busy machine they are longer.
    testTimeout: patience(30_000),
    hookTimeout: patience(30_000),
    expect: { poll: { timeout: patience(20_000), interval: 20 } },
    sequence: { sequencer: LongestFirst },
    slowTestThreshold: 2_000,
    reporters: ["dot"],
    // What a test prints is shown if it fails.
    silent: "passed-only",
    projects: [
      // Files share modules and nothing else: loading the modules once for each process saves more than half of the time.
      {
        extends: true,
        test: {
          name: "shared",
          include: ["test/**/*.test.ts"],
          exclude: ["test/fixtures/**", "**/node_modules/**", ...realPeers, ...starting, ...soaks, ...mocking],
          isolate: false,
        },
      },
      { extends: true, test: { name: "alone", include: mocking } },
    ],
  },
});
