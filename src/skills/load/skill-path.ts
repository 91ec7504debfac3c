import { type Dirent, existsSync, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { isDynamicPattern } from "tinyglobby";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { isOutOfFiles } from "../../base/errors.ts";
import { manifestPlaces } from "../../formats/plugins/plugin-dialects.ts";
import { parsePluginManifest } from "../../formats/plugins/plugin-manifest.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { confinePath } from "../../io/confine-path.ts";
import { type CheckedTree, readTextFile } from "../../io/read-bounded.ts";
import { FolderView } from "../../trust/checked-folder.ts";

type SkillPath = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly diagnostic: Diagnostic };

/** Resolves a path that must stay inside a skill's folder; otherwise `PATH_OUTSIDE` in words for the author of `file`. */
export function pathInSkill(folder: string, path: string, file: string, view?: PathKinds): SkillPath {
  const confined = confinePath(folder, path, view && ((target) => isPlain(target, view)));
  if (confined.ok) return confined;
  return { ok: false, diagnostic: { severity: "error", code: "PATH_OUTSIDE", file, message: confined.message } };
}

/**
 * Resolves `SKILL.md` and `skill.json` in the skill's folder, whose content models get without a question. Skills of one plugin may share
 * such a file by a link to a file of the same name in the plugin.
 */
export function documentInSkill(folder: string, name: string, view?: FolderView): SkillPath {
  const file = join(folder, name);
  // The usual case, without resolving the file or its folder.
  if (view?.kindOf(file) === "file" || isRegularFile(file)) return { ok: true, path: file };
  const within = pathInSkill(folder, name, file, view);
  return within.ok || !isSharedInBundle(folder, file) ? within : { ok: true, path: file };
}

function isRegularFile(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    // A folder without search permission: reading the file reports that.
    return false;
  }
}

function isSharedInBundle(folder: string, file: string): boolean {
  const bundle = pluginRootOf(folder);
  if (bundle === undefined || !confinePath(bundle, relative(bundle, file)).ok) return false;
  return basename(realpathSync.native(file)).toLowerCase() === basename(file).toLowerCase();
}

/** The part of a folder view that path checks need. */
type PathKinds = Pick<FolderView, "kindOf"> | Pick<CheckedTree, "kindOf">;

function isPlain(target: string, view: PathKinds): boolean {
  const kind = view.kindOf(target);
  return kind === "file" || kind === "folder";
}

/** Whether a path exists. */
export function existsAt(path: string, view: FolderView | undefined): boolean {
  const kind = view?.kindOf(path);
  return kind === undefined ? existsSync(path) : kind !== "nothing";
}

/** Whether a path is a folder. Throws the system's error if it does not exist. */
export function isFolderAt(path: string, view: FolderView | undefined): boolean {
  const kind = view?.kindOf(path);
  return kind === undefined || kind === "nothing" ? statSync(path).isDirectory() : kind === "folder";
}

/** The entries of a folder. Throws the system's error if it is not a folder. */
export function entriesAt(folder: string, view: FolderView | undefined): readonly Dirent[] {
  const known = view?.entriesOf(folder);
  if (known !== undefined) return known;
  // Not through a link: what lies behind one is not certain to be in the skill.
  const isKnown = view?.kindOf(folder) === "folder";
  const state = isKnown ? statSync(folder) : undefined;
  const entries = readdirSync(folder, { withFileTypes: true });
  if (isKnown) view?.noteList(folder, entries, state);
  return entries;
}

/**
 * Lists a skill's folder once for a whole load. Throws the system's error when no more files can be opened: without this check all files
 * would seem to be missing at such a moment. Undefined: the folder cannot be listed, which is reported where it is read.
 */
export function viewFolder(folder: string): FolderView | undefined {
  try {
    const state = statSync(folder);
    const view = new FolderView(folder);
    view.noteList(folder, readdirSync(folder, { withFileTypes: true }), state);
    return view;
  } catch (error) {
    if (isOutOfFiles(error)) throw error;
    return undefined;
  }
}

// `skills/name` in a plugin, or one folder deeper if skills are grouped by subject.
const mostLevels = 4;

/** The folder of the plugin that contains a skill. */
export function pluginRootOf(folder: string): string | undefined {
  for (let at = folder, level = 0; level < mostLevels; at = dirname(at), level++) {
    if (manifestPlaces.some(({ path }) => existsSync(join(at, path)))) return at;
  }
  return undefined;
}

/** The default name of a skill: its folder's, or its plugin's if the folder is the plugin or its `skills`. */
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

/** Whether a folder contains `SKILL.md` in any case, or `skill.json`. */
export function isSkillFolder(folder: string): boolean {
  return existsSync(join(folder, "SKILL.md")) || existsSync(join(folder, "skill.json")) || hasSkillDocument(folder);
}

/** Whether a folder contains `SKILL.md` in any case. */
export function hasSkillDocument(folder: string): boolean {
  return namesIn(folder).some((name) => name.toLowerCase() === "skill.md");
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Removed or unreadable since it was listed: it contains no skill now.
    return [];
  }
}

/** Whether a path is a glob pattern. Paths without any character of patterns do not load the library that decides. */
export function isPattern(path: string): boolean {
  return /[*?[({!\\]/.test(path) && isDynamicPattern(path);
}
