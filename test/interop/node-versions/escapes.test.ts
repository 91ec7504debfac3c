import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { buildPackage } from "../../built-package.ts";
import { patience } from "../../slowness.ts";
import { installPeer } from "../install-peer.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("../../..", import.meta.url));
// What Node.js limits by itself differs: 22 has a stable flag, 26 a permission for the network.
const versions = ["22", "24", "26"] as const;
const programOf = (version: string): string => join(here, `node_modules/node-${version}/bin/node`);

if (process.platform === "linux" && process.arch === "x64") {
  try {
    installPeer(here, "node_modules/node-22/bin/node");
  } catch {
    // Reported as skipped tests.
  }
}

const environment = { ...process.env, FORCE_COLOR: "0" };

describe.skipIf(!versions.every((version) => existsSync(programOf(version))))("another version of Node.js", () => {
  test.each(versions)("%s limits isolated skills as the security page says", { timeout: patience(300_000) }, (version) => {
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const args = [vitest, "run", "--config", "vitest.programs.config.ts", "--silent=false", "test/skills/escapes.test.ts"];
    const { status, stdout } = spawnSync(programOf(version), args, { cwd: root, env: environment, encoding: "utf8" });
    expect(stdout).toMatch(/^\| read a file by its absolute path \| files \| reached \| reached \| refused: ERR_ACCESS_DENIED \|/m);
    expect(status).toBe(0);
    process.stdout.write(stdout);
  });

  test.each(versions)("%s has doctor say how far limits are enforced", { timeout: patience(60_000) }, (version) => {
    const args = [buildPackage().bin, "doctor"];
    const { stdout } = spawnSync(programOf(version), args, { cwd: here, env: environment, encoding: "utf8" });
    expect(stdout).toContain(`Node ${version}.`);
    expect(stdout).toMatch(/limits of isolated skills are (?:enforced \(bubblewrap|partly enforced \(the permission model)/);
  });
});
