import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** GitHub's server, installed from the lock file in this folder if it is missing; or the reason why it is not available. */
export function findRealServer(): { readonly path: string | undefined; readonly reason: string } {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { path: undefined, reason: "the lock file names the server for Linux on x64" };
  }
  const path = join(here, "node_modules/@github/copilot-language-server-linux-x64/copilot-language-server");
  if (existsSync(path)) return { path, reason: "" };
  try {
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: here, stdio: "pipe", timeout: 280_000 });
    return { path, reason: "" };
  } catch (error) {
    const why = String((error as { stderr?: unknown }).stderr ?? error)
      .split("\n")
      .find((line) => /error/i.test(line));
    return { path: undefined, reason: `the server could not be installed: ${why ?? "npm failed"}` };
  }
}
