import { basename, extname, join, relative } from "node:path";
import { globSync } from "tinyglobby";
import { canonicalJson } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { placeInFile } from "../../io/place-in-file.ts";
import type { FolderView } from "../../trust/checked-folder.ts";
import { entriesAt, existsAt, isFolderAt, isPattern, pathInSkill } from "./skill-path.ts";

/**
 * A source of tools: a tool JSON file, an object in the manifest, or a module that defines tools. `key` is its place in the skill;
 * `state` is its content, as far as it is known without reading files.
 */
export type ToolEntry =
  | (ToolFile & { readonly kind: "json"; readonly sibling?: string })
  | (ToolFile & { readonly kind: "module" })
  | { readonly kind: "inline"; readonly key: string; readonly state: string; readonly file: string; readonly value: unknown };

interface ToolFile {
  readonly key: string;
  readonly state: string;
  readonly file: string;
  /** Relative to the skill, with forward slashes. */
  readonly path: string;
}

export interface ToolEntries {
  readonly entries: readonly ToolEntry[];
  readonly diagnostics: readonly Diagnostic[];
  /** Listed paths that cannot be used. */
  readonly lost: readonly string[];
}

const notTools = /\.d\.[cm]?ts$|\.(test|spec)\.[cm]?[jt]sx?$/;

/** The manifest's lists that may name modules. */
interface ListedFiles {
  readonly tools?: readonly unknown[];
  readonly prompts?: readonly string[];
  readonly resources?: readonly string[];
}

/**
 * Finds the tool entries of a skill. Without a list in the manifest: every tool JSON and every module in `tools/`, by name, except
 * helpers (`_name`), tests and type declarations. With one: what it names, in its order; the matches of a pattern by name. A module
 * beside a tool JSON of the same name is that tool's handler, not an entry.
 *
 * Modules that define prompts are found in the same way in `prompts/` and its list, beside text prompts. Modules that define resources
 * are found only by their list: in other skills a folder `resources/` contains files of any kind.
 */
export function listToolEntries(
  folder: string,
  lists: ListedFiles,
  extensions: readonly string[],
  manifest: string,
  view?: FolderView,
): ToolEntries {
  const diagnostics: Diagnostic[] = [];
  const lost: string[] = [];
  const listing = (key: Listing["key"]): Listing => {
    return { folder, manifest, extensions, key, isListed: lists[key] !== undefined, diagnostics, lost, view };
  };
  const ofTools = listing("tools");
  const items = (lists.tools ?? ["tools"]).flatMap((item, index): (string | ToolEntry)[] =>
    typeof item === "string" ? expandItem(item, ofTools) : [inlineEntry(item, index, manifest)],
  );
  const jsonBases = new Set(items.flatMap((item) => (typeof item === "string" && item.endsWith(".json") ? withoutExtension(item) : [])));
  const entries = new Map<string, ToolEntry>();
  const add = (item: string | ToolEntry, place: Listing): void => {
    const entry = typeof item === "string" ? toEntry(item, jsonBases, place) : item;
    if (entry) entries.set(entry.key, entry);
  };
  for (const item of items) add(item, ofTools);
  for (const item of lists.prompts ?? ["prompts"])
    for (const path of promptModules(item, listing("prompts"))) add(path, listing("prompts"));
  const ofResources = listing("resources");
  for (const item of lists.resources ?? []) for (const path of expandItem(item, ofResources)) add(path, ofResources);
  return { entries: [...entries.values()], diagnostics, lost };
}

interface Listing {
  readonly folder: string;
  readonly manifest: string;
  readonly extensions: readonly string[];
  readonly key: keyof ListedFiles;
  /** Whether the manifest lists the files. */
  readonly isListed: boolean;
  readonly diagnostics: Diagnostic[];
  readonly lost: string[];
  readonly view: FolderView | undefined;
}

/** The reader of text prompts reports the errors of the rest of the list. */
function promptModules(item: string, listing: Listing): string[] {
  if (isModule(item, listing)) return expandItem(item, listing);
  return expandItem(item, { ...listing, diagnostics: [], lost: [] }).filter((path) => isModule(path, listing));
}

function isModule(path: string, { extensions }: Listing): boolean {
  return extensions.includes(extname(path));
}

function inlineEntry(value: unknown, index: number, file: string): ToolEntry {
  return { kind: "inline", key: `inline:${index}`, state: canonicalJson(value), file, value };
}

/** The files that an item of the list means, relative to the skill, with forward slashes. */
function expandItem(item: string, listing: Listing): string[] {
  const { folder, diagnostics } = listing;
  if (isPattern(item)) {
    const found = globSync(item, { cwd: folder, expandDirectories: false, followSymbolicLinks: false }).sort();
    const matches = found.filter((match) => isTool(match, listing));
    if (matches.length === 0) diagnostics.push(nothingMatches(item, listing));
    return matches.filter((match) => isConfined(match, listing));
  }
  const path = item.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
  // Without a list the folder is optional.
  if (!listing.isListed && listing.view?.kindOf(join(folder, path)) === "nothing") return [];
  return isConfined(path, listing) ? filesAt(path, listing) : [];
}

/** The file itself, or the tools in a folder. */
function filesAt(path: string, listing: Listing): string[] {
  const { folder, isListed, diagnostics, lost, view } = listing;
  try {
    // A folder with the name of a tool file is an error, not a folder of tools.
    if (isFolderAt(join(folder, path), view) && !isRunnable(path, listing)) return toolFilesIn(path, listing);
    if (isListed) return [path];
    diagnostics.push(noFolder(join(folder, path)));
  } catch (error) {
    // Without a list the folder is optional.
    if (!isListed) return [];
    diagnostics.push(missing(path, error, listing));
  }
  lost.push(path);
  return [];
}

function toolFilesIn(directory: string, listing: Listing): string[] {
  const entries = entriesAt(join(listing.folder, directory), listing.view);
  const files = entries.filter((entry) => !entry.isDirectory() && isTool(entry.name, listing));
  const python = entries.filter(({ name }) => isPython(name, listing));
  if (python.length > 0)
    listing.diagnostics.push(
      unrunPython(
        join(listing.folder, directory),
        python.map(({ name }) => name),
        listing,
      ),
    );
  return files
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => ({ path: `${directory}/${entry.name}`, isLink: entry.isSymbolicLink() }))
    .filter(({ path, isLink }) => !isLink || isConfined(path, listing))
    .map(({ path }) => path);
}

function isPython(name: string, { extensions, key }: Listing): boolean {
  return key === "tools" && extname(name) === ".py" && !extensions.includes(".py") && !/^(?:_|\.|test_)|_test\.py$/.test(name);
}

/** Without a manifest they may be scripts that a model is to run, so the severity is only "info". */
function unrunPython(folder: string, names: readonly string[], { manifest, view }: Listing): Diagnostic {
  const message = `No runner for ${names.slice(0, 5).join(", ")}${names.length > 5 ? " and more" : ""}. If these are tools in Python, add the plugin that runs them: "plugins": ["skillhost/plugins/python-tools"] in skillhost.json, or in the options of createHost().`;
  return { severity: existsAt(manifest, view) ? "warning" : "info", code: "TOOL_PYTHON_PLUGIN", file: folder, message };
}

/** Tool files must lie in the skill; their imports may lie anywhere. */
function isConfined(path: string, { folder, manifest, isListed, diagnostics, lost, view }: Listing): boolean {
  const confined = pathInSkill(folder, path, isListed ? manifest : join(folder, path), view);
  if (confined.ok) return true;
  diagnostics.push(confined.diagnostic);
  lost.push(path);
  return false;
}

/** Whether an unlisted file is a tool. */
function isTool(path: string, listing: Listing): boolean {
  const name = basename(path);
  return !name.startsWith("_") && !name.startsWith(".") && !notTools.test(name) && isRunnable(path, listing);
}

function isRunnable(path: string, listing: Listing): boolean {
  return isModule(path, listing) || (extname(path) === ".json" && listing.key === "tools");
}

function toEntry(path: string, jsonBases: ReadonlySet<string>, listing: Listing): ToolEntry | undefined {
  const { folder, extensions, key, diagnostics } = listing;
  const file = join(folder, path);
  const extension = extname(path);
  if (extension === ".json" && key === "tools") {
    const sibling = siblingOf(path, listing);
    // Without its module the tool would become a client tool, which is not what its author meant.
    if (sibling !== undefined && !isConfined(relative(folder, sibling), listing)) return undefined;
    return { kind: "json", key: `json:${path}`, state: sibling ?? "", file, path, ...(sibling === undefined ? {} : { sibling }) };
  }
  if (extensions.includes(extension))
    return jsonBases.has(withoutExtension(path)) ? undefined : { kind: "module", key: `module:${path}`, state: "", file, path };
  diagnostics.push(noRunner(file, extension, listing));
  return undefined;
}

/** The module beside a tool JSON. Files that only a plugin runs define tools themselves and are not handlers for a JSON. */
function siblingOf(path: string, { folder, view }: Listing): string | undefined {
  const candidates = moduleExtensions.map((extension) => withoutExtension(path) + extension);
  // Not only regular files count: any other entry must not turn the tool into a client tool.
  return candidates.map((candidate) => join(folder, candidate)).find((file) => existsAt(file, view) && !isFolderAt(file, view));
}

function withoutExtension(path: string): string {
  return path.slice(0, path.length - extname(path).length);
}

function nothingMatches(pattern: string, { key, manifest }: Listing): Diagnostic {
  return {
    severity: "warning",
    code: "TOOL_PATTERN_EMPTY",
    file: manifest,
    message: `The pattern ${JSON.stringify(pattern)} in "${key}" matches ${key === "tools" ? "no tool" : "no module"}. Fix or remove it.`,
  };
}

function missing(path: string, error: unknown, { key, manifest }: Listing): Diagnostic {
  const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
  const what = isAbsent ? "does not exist" : `cannot be read (${errorMessage(error)})`;
  const message = `The file ${JSON.stringify(path)} in "${key}" ${what}. Add it, or remove it from the list.`;
  const start = placeInFile(manifest, JSON.stringify(path).slice(1));
  return { severity: "error", code: "TOOL_FILE_MISSING", file: manifest, message, ...(start && { range: { start } }) };
}

function noFolder(file: string): Diagnostic {
  const message = "This must be a folder with the skill's tools, but it is a file. Rename it, or list the tools in skill.json.";
  return { severity: "error", code: "TOOLS_NOT_A_FOLDER", file, message };
}

function noRunner(file: string, extension: string, { key, extensions }: Listing): Diagnostic {
  const [what, known] = key === "tools" ? ["as a tool", [".json or one of", ...extensions]] : ["as a module", ["one of", ...extensions]];
  const plugin = extension === ".py" ? ", or add the plugin skillhost/plugins/python-tools" : "";
  const message = `No runner for ${extension || "files without an extension"} ${what}. Use ${known.join(" ")}${plugin}.`;
  return { severity: "error", code: "TOOL_FILE_UNKNOWN", file, message };
}

export const moduleExtensions: readonly string[] = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx"];
