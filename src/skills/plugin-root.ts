import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { manifestPlaces } from "../formats/plugins/plugin-dialects.ts";
import { parsePluginManifest } from "../formats/plugins/plugin-manifest.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { readTextFile } from "../io/read-bounded.ts";

// `skills/name` of a plugin, or one folder deeper, where skills are sorted by subject.
const mostLevels = 4;

/** The folder of the plugin that a skill comes with, for a body that asks for it; undefined: it comes with none, or does not ask. */
export function pluginRootOf(folder: string, body: string): string | undefined {
  return body.includes("${CLAUDE_PLUGIN_ROOT}") ? bundleOf(folder) : undefined;
}

/** The folder of the plugin that a skill comes with. */
export function bundleOf(folder: string): string | undefined {
  for (let at = folder, level = 0; level < mostLevels; at = dirname(at), level++) {
    if (manifestPlaces.some(({ path }) => existsSync(join(at, path)))) return at;
  }
  return undefined;
}

/** The name of a skill that does not give one: its folder's, or its plugin's where the folder is the plugin or its `skills`. */
export function defaultSkillName(folder: string): string {
  const name = basename(folder);
  const plugins = name === "skills" ? [folder, dirname(folder)] : [folder];
  return plugins.map(pluginName).find((found) => found !== undefined) ?? name;
}

function pluginName(folder: string): string | undefined {
  for (const { path, dialect } of manifestPlaces) {
    const file = join(folder, path);
    const read = existsSync(file) ? readTextFile(file, maxJsonBytes) : undefined;
    if (!read?.ok) continue;
    const { manifest } = parsePluginManifest(read.text, { file, dialect, folderName: basename(folder) });
    if (manifest !== undefined) return manifest.name;
  }
  return undefined;
}
