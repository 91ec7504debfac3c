import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../base/errors.ts";
import { readManifest } from "../skills/store/package-skills.ts";
import type { ReadSkill } from "./read-skill-folder.ts";

export interface CompletedManifest {
  readonly manifest: Readonly<Record<string, unknown>>;
  /** The missing keys. Empty: it is unchanged. */
  readonly added: readonly string[];
}

/** Keywords by which registries and other hosts find packages with skills. */
const skillKeywords = ["agent-skill", "skillhost"];

/**
 * Completes the package.json that a folder with skills needs. The author's fields stay; missing ones come from the skill: name, version,
 * description, files, keywords, engines.
 * @throws HostError `PACK_NAME` when neither has a name that npm allows.
 */
export function completeManifest(folder: string, skills: readonly ReadSkill[], isOwnSkill: boolean): CompletedManifest {
  const written = readManifest(folder);
  const [skill] = skills;
  const wanted: Record<string, unknown> = {
    name: isOwnSkill ? skill?.name : undefined,
    version: (isOwnSkill ? skill?.version : undefined) ?? "1.0.0",
    description: isOwnSkill ? skill?.description : undefined,
    keywords: skillKeywords,
    type: "module",
    files: isOwnSkill ? packableEntries(folder) : ["skills"],
    engines: isOwnSkill && skill?.engines["skillhost"] !== undefined ? { skillhost: skill.engines["skillhost"] } : undefined,
  };
  const isNew = Object.keys(written).length === 0;
  // `type` is only added to a new package.json; without `files` npm would pack everything.
  const keys = Object.keys(wanted).filter((key) => wanted[key] !== undefined && (isNew || (key !== "type" && key !== "files")));
  const added = keys.filter((key) => !Object.hasOwn(written, key));
  const manifest: Record<string, unknown> = { ...Object.fromEntries(added.map((key) => [key, wanted[key]])), ...written };
  const keywords = Array.isArray(written["keywords"]) ? (written["keywords"] as unknown[]) : undefined;
  if (keywords !== undefined && !keywords.includes("agent-skill")) {
    manifest["keywords"] = [...keywords, ...skillKeywords.filter((word) => !keywords.includes(word))];
    added.push("keywords");
  }
  assertNamed(manifest, folder);
  return { manifest: inOrder(manifest), added };
}

/** The top-level entries of a skill that belong into its package: without hidden files, tests and leftovers of tools. */
export function packableEntries(folder: string): readonly string[] {
  const left = /^(?:\.|node_modules$|tests?$|package(?:-lock)?\.json$|.*\.tgz$|.*\.test\.|.*\.log$)/;
  return readdirSync(folder)
    .filter((name) => !left.test(name))
    .sort();
}

function assertNamed({ name, version }: Readonly<Record<string, unknown>>, folder: string): void {
  const file = existsSync(join(folder, "package.json")) ? "package.json" : "a package.json";
  if (typeof name !== "string" || !/^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(name) || name.length > 214) {
    throw new HostError(
      "PACK_NAME",
      `${JSON.stringify(name ?? "")} is not a valid npm package name. Use lowercase letters, digits and hyphens in ${file}.`,
    );
  }
  if (typeof version !== "string" || !/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/.test(version)) {
    throw new HostError(
      "PACK_VERSION",
      `${JSON.stringify(version)} is not a valid version. Set one such as 1.0.0 in ${file}, or in skill.json.`,
    );
  }
}

const firstKeys = ["name", "version", "description", "keywords", "license", "author", "type", "files", "engines"];

function inOrder(manifest: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const rank = (key: string): number => (firstKeys.includes(key) ? firstKeys.indexOf(key) : firstKeys.length);
  return Object.fromEntries(Object.entries(manifest).sort(([a], [b]) => rank(a) - rank(b)));
}
