import { basename, join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { type BundleDialect, manifestPlaces } from "../../formats/plugins/plugin-dialects.ts";
import { type PluginManifest, parsePluginManifest } from "../../formats/plugins/plugin-manifest.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { BundleFiles, kindOf } from "./bundle-files.ts";

export type FoundManifest =
  | { readonly kind: "read"; readonly manifest: PluginManifest; readonly file: string; readonly text: string }
  /** There is one, and it forbids to use the bundle. */
  | { readonly kind: "refused"; readonly dialect: BundleDialect; readonly file: string }
  | { readonly kind: "absent" };

/** Looks for a bundle's manifest where the dialects have theirs, and reads the first. The others are told. */
export function findManifest(files: BundleFiles): FoundManifest {
  const found = manifestPlaces.filter(({ path }) => files.has(path, "file") || isLinkOut(files, path));
  const standard = found.find(({ path }) => path === standardPath && isStandard(files));
  const [first, ...others] = standard === undefined ? found : [standard, ...found.filter((place) => place !== standard)];
  if (first === undefined) return { kind: "absent" };
  const file = join(files.root, first.path);
  const refused: FoundManifest = { kind: "refused", dialect: first.dialect, file };
  if (files.find(first.path) === undefined) return refused;
  const text = files.read(file, maxJsonBytes);
  if (text === undefined) return refused;
  const { manifest, dialect, diagnostics } = parsePluginManifest(text, { file, dialect: first.dialect, folderName: basename(files.root) });
  diagnostics.forEach((found) => void files.report(found));
  if (others.length > 0)
    files.report(
      unused(
        first.path,
        others.map(({ path }) => path),
        file,
      ),
    );
  return manifest === undefined ? { ...refused, dialect } : { kind: "read", manifest, file, text };
}

/**
 * Whether a folder is a bundle: by a manifest, or because it holds no code and has folders as plugins have them. What
 * holds code is asked for its module first.
 */
export function isBundleFolder(folder: string): boolean {
  if (hasManifest(folder)) return true;
  const files = new BundleFiles(folder);
  if (kindOf(folder) !== "folder" || codeFiles.some((path) => files.has(path, "file"))) return false;
  const parts = ["SKILL.md", ".mcp.json", "hooks/hooks.json"].some((path) => files.has(path, "file"));
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

/** A manifest that is a link out of the bundle is there, and must not be passed over for another. */
function isLinkOut(files: BundleFiles, path: string): boolean {
  return !files.has(path, "file") && kindOf(join(files.root, path)) === "file";
}

function unused(read: string, others: readonly string[], file: string): Diagnostic {
  const message = `The manifest at ${read} counts, and these are not read: ${others.join(", ")}.`;
  return { severity: "info", code: "BUNDLE_MANIFESTS", message, file };
}
