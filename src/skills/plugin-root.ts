import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { manifestPlaces } from "../formats/plugins/plugin-dialects.ts";

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
