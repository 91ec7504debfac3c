import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPackage } from "./built-package.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Puts skillhost, as users get it, and other packages of this checkout into the node_modules of a folder. */
export function installSkillhost(folder: string, others: readonly string[] = []): void {
  const installed = join(folder, "node_modules/skillhost");
  const shipped = dirname(dirname(dirname(buildPackage().bin)));
  mkdirSync(installed, { recursive: true });
  symlinkSync(join(shipped, "dist"), join(installed, "dist"));
  symlinkSync(join(root, "package.json"), join(installed, "package.json"));
  symlinkSync(join(root, "schemas"), join(installed, "schemas"));
  for (const name of others) {
    mkdirSync(dirname(join(folder, "node_modules", name)), { recursive: true });
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
}
