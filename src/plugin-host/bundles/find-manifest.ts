import { basename, join } from "node:path";
import { marketplacePlaces } from "../../formats/plugins/marketplace.ts";
import { type BundleDialect, manifestPlaces } from "../../formats/plugins/plugin-dialects.ts";
import { type PluginManifest, parsePluginManifest } from "../../formats/plugins/plugin-manifest.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { BundleFiles, isLinkOut, kindOf } from "./bundle-files.ts";

export type FoundManifest =
  | { readonly kind: "read"; readonly manifest: PluginManifest; readonly file: string; readonly text: string }
  /** There is one, and it forbids to use the bundle. */
  | { readonly kind: "refused"; readonly dialect: BundleDialect; readonly file: string }
  | { readonly kind: "absent" };

/** Where a manifest was found, and whose it is there. */
export type ManifestPlace = (typeof manifestPlaces)[number];

/**
 * Looks for a bundle's manifests where the dialects have theirs: in the order in which they count. One that is a link out of
 * the bundle is there, too: it must not give way to another.
 */
export function findManifests(files: BundleFiles): readonly ManifestPlace[] {
  const found = manifestPlaces.filter(({ path }) => files.has(path, "file") || isLinkOut(files, path));
  const standard = found.find(({ path }) => path === standardPath && isStandard(files));
  return standard === undefined ? found : [standard, ...found.filter((place) => place !== standard)];
}

/** Reads a manifest that was found. It must lie in the bundle itself, also where links lead. */
export function readManifest(files: BundleFiles, { path, dialect }: ManifestPlace): FoundManifest {
  const file = join(files.root, path);
  const refused: FoundManifest = { kind: "refused", dialect, file };
  if (files.find(path) === undefined) return refused;
  const text = files.read(file, maxJsonBytes);
  if (text === undefined) return refused;
  const { manifest, dialect: declared, diagnostics } = parsePluginManifest(text, { file, dialect, folderName: basename(files.root) });
  diagnostics.forEach((found) => void files.report(found));
  return manifest === undefined ? { ...refused, dialect: declared } : { kind: "read", manifest, file, text };
}

/**
 * Whether a folder is a bundle: by a manifest, or because it holds no code and has folders as plugins have them. What
 * holds code is asked for its module first.
 */
export function isBundleFolder(folder: string): boolean {
  if (hasManifest(folder)) return true;
  const files = new BundleFiles(folder);
  if (kindOf(folder) !== "folder" || codeFiles.some((path) => files.has(path, "file"))) return false;
  const parts = ["SKILL.md", ".mcp.json", "hooks/hooks.json", ...marketplacePlaces].some((path) => files.has(path, "file"));
  return parts || ["skills", "agents", "commands"].some((path) => files.has(path, "folder"));
}

const codeFiles = ["package.json", ...["ts", "mts", "js", "mjs", "cjs"].map((extension) => `index.${extension}`)];

/** Whether a folder says of itself that it is a bundle. */
export function hasManifest(folder: string): boolean {
  const files = new BundleFiles(folder);
  return kindOf(folder) === "folder" && manifestPlaces.some(({ path }) => files.has(path, "file"));
}

const standardPath = "plugin.json";

/** The neutral format comes before those of single clients. */
function isStandard(files: BundleFiles): boolean {
  const read = files.has(standardPath, "file") ? readTextFile(join(files.root, standardPath), maxJsonBytes) : undefined;
  return read?.ok === true && /"\$schema"\s*:\s*"https:\/\/(?:www\.)?agent-plugins\.org\//.test(read.text);
}
