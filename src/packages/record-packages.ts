import { join, resolve } from "node:path";
import { isPlainRecord } from "../base/read-fields.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { productionNames, readManifest, usedPackages } from "../skills/store/package-skills.ts";
import type { TreeRequest } from "./resolve-tree.ts";

/**
 * Notes in package.json, under `skillhost.packages`, whose skills somebody wanted by adding the package, and forgets those
 * that are taken away. `before`: the dependencies before the change.
 */
export async function recordPackages(project: string, { add = [], remove = [] }: TreeRequest, before: readonly string[]): Promise<void> {
  const manifest = readManifest(project);
  const dependencies = productionNames(manifest);
  const fresh = dependencies.filter((name) => !before.includes(name));
  const named = add.flatMap((spec) => nameOf(spec, project, manifest) ?? []);
  const wanted = new Set([...usedPackages(manifest), ...(add.length > 0 ? [...fresh, ...named] : [])]);
  for (const name of [...remove, ...[...wanted].filter((name) => !dependencies.includes(name))]) wanted.delete(name);
  const packages = [...wanted].sort();
  if (JSON.stringify(packages) === JSON.stringify(usedPackages(manifest))) return;
  await writeRecord(project, manifest, packages);
}

/** The dependency that a specification names. */
function nameOf(spec: string, project: string, manifest: Readonly<Record<string, unknown>>): string | undefined {
  if (!spec.startsWith("file:")) return /^(?:@[^/@]+\/)?[^/@]+/.exec(spec)?.[0];
  const path = resolve(project, spec.slice(5));
  const { dependencies } = manifest;
  if (!isPlainRecord(dependencies)) return undefined;
  const isSame = (value: unknown): boolean =>
    typeof value === "string" && value.startsWith("file:") && resolve(project, value.slice(5)) === path;
  return Object.keys(dependencies).find((name) => isSame(dependencies[name]));
}

async function writeRecord(project: string, manifest: Readonly<Record<string, unknown>>, packages: readonly string[]): Promise<void> {
  const file = join(project, "package.json");
  const own = isPlainRecord(manifest["skillhost"]) ? manifest["skillhost"] : {};
  const { packages: _, ...rest } = own;
  const skillhost = packages.length > 0 ? { ...rest, packages } : rest;
  const { skillhost: _before, ...others } = manifest;
  const changed = Object.keys(skillhost).length > 0 ? { ...manifest, skillhost } : others;
  const text = readTextFile(file, maxBytes);
  const indent = (text.ok ? /^[ \t]+(?=")/m.exec(text.text)?.[0] : undefined) ?? "  ";
  await writeFileAtomic(file, `${JSON.stringify(changed, undefined, indent)}\n`, { inside: project });
}

const maxBytes = 16 * 1024 * 1024;
