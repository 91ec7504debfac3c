import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * Installs what the lock file in a folder lists, or its package.json where packages for other systems are missing in registries, unless `entry`, a path below the folder, exists. Several processes may do so at the
 * same time: each installs beside the folder's own `node_modules`, and the first one to finish moves its result there.
 */
export function installPeer(folder: string, entry: string): string {
  const path = join(folder, entry);
  if (existsSync(path)) return path;
  const staging = mkdtempSync(join(folder, "installing-"));
  try {
    const isLocked = existsSync(join(folder, "package-lock.json"));
    for (const file of ["package.json", ...(isLocked ? ["package-lock.json"] : [])]) copyFileSync(join(folder, file), join(staging, file));
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
    execFileSync("npm", isLocked ? ["ci", ...options.slice(0, 3)] : ["install", ...options], {
      cwd: staging,
      stdio: "pipe",
      timeout: 280_000,
    });
    renameSync(join(staging, "node_modules"), join(folder, "node_modules"));
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return path;
}
