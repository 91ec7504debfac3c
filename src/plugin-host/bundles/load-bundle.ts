import { createHash } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join, resolve, sep } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { createVariableLookup, type VariableLookup } from "../../formats/mcp/mcp-dialects.ts";
import { marketplacePlaces } from "../../formats/plugins/marketplace.ts";
import { type BundleDialect, manifestPlaces } from "../../formats/plugins/plugin-dialects.ts";
import { type PluginManifest, parsePluginManifest } from "../../formats/plugins/plugin-manifest.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { installedRoot } from "../../io/module-loader/package-config.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { locationOf } from "../../trust/trust-file.ts";
import {
  type Bundle,
  type BundleData,
  BundleFiles,
  type BundleOptions,
  isLinkOut,
  joinedSources,
  kindOf,
  type ListedEntry,
  placedIn,
  type Sources,
} from "./bundle.ts";
import { loadAgents, loadCommands, loadContext, loadHooks, loadServers, loadSkillFolders } from "./load-components.ts";
import { ownEntry } from "./read-marketplace.ts";

/**
 * Reads a plugin folder that was made for some agent: the components that its manifest names, or those in the usual places. Of
 * several manifests, the first that adds anything is used. An invalid component becomes a diagnostic and does not affect the
 * others, except hooks: a bundle whose hooks cannot be read is refused. Nothing outside the folder is read, unless a link leads
 * there within the same checkout or package, and no code runs. Never throws.
 */
export function loadBundle(folder: string, options: BundleOptions): Bundle {
  const root = realPath(resolve(folder));
  const seen = new Set<string>();
  const files = new BundleFiles(root, { seen });
  if (kindOf(root) !== "folder") {
    files.report({ severity: "error", code: "BUNDLE_UNREADABLE", message: "This folder does not exist. Fix the path.", file: root });
    return refused(files, options, { kind: "absent" });
  }
  const places = findManifests(files);
  const [first, ...others] = places;
  const bundle = loadManifest(root, seen, first, options);
  if (first === undefined || bundle.isRefused || !isEmpty(bundle)) return finished(bundle, files, unused(first, others));
  for (const place of others) {
    const other = loadManifest(root, seen, place, options);
    if (other.isRefused || isEmpty(other)) continue;
    const left = others.filter(({ path }) => path !== place.path);
    return finished(other, files, `The manifest at ${first.path} adds nothing, so the one at ${place.path} is used${listOf(left)}.`);
  }
  return finished(bundle, files, unused(first, others));
}

function loadManifest(root: string, seen: Set<string>, place: ManifestPlace | undefined, options: BundleOptions): Bundle {
  const own = new BundleFiles(root, { seen });
  const found: FoundManifest = place === undefined ? { kind: "absent" } : readManifest(own, place);
  if (found.kind === "refused") return refused(own, options, found);
  const listed = options.listed ?? (found.kind === "absent" ? ownEntry(own) : undefined);
  const clash = found.kind === "read" && listed !== undefined ? clashOf(found, listed) : undefined;
  if (clash !== undefined) {
    own.report(clash);
    return refused(own, options, found);
  }
  const sources = sourcesOf(found, root, listed);
  const reach = sources.dialect === "agent-plugins" ? root : (installedRoot(root) ?? locationOf(root));
  const files = new BundleFiles(root, { reach, seen });
  own.diagnostics.forEach((found) => void files.report(found));
  try {
    return load(files, sources, options, found, listed);
  } catch (error) {
    // A file may disappear while it is read. Other bundles must load all the same.
    files.report({
      severity: "error",
      code: "BUNDLE_UNREADABLE",
      message: `This plugin cannot be read: ${errorMessage(error)}`,
      file: root,
    });
    return refused(files, options, found);
  }
}

function load(files: BundleFiles, sources: Sources, options: BundleOptions, found: FoundManifest, listed: ListedEntry | undefined): Bundle {
  const environment = options.environment ?? process.env;
  const data = dataOf(sources.name, files.root, options);
  const variables = variablesOf(files.root, data, options, environment);
  const { skillDirectories, skills } = loadSkillFolders(files, sources);
  const agents = loadAgents(files, sources, variables);
  const commands = loadCommands(files, sources, promptPlaces(files.root, data, options));
  const hooks = loadHooks(files, sources, options.hooks ?? "run");
  if (hooks === undefined) {
    const message =
      "This plugin is rejected: its hooks are not valid, and they may be meant to block calls. Fix the problems reported about them.";
    files.report({ severity: "error", code: "BUNDLE_HOOKS", message, file: sources.manifestFile });
    return refused(files, options, found);
  }
  const components = {
    agents,
    commands,
    hooks,
    mcpServers: loadServers(files, sources, { variables, data, environment }),
    context: loadContext(files, sources),
  };
  const manifest = found.kind === "read" ? found.manifest : undefined;
  const [version, description] = [manifest?.version ?? listed?.version, manifest?.description ?? listed?.description];
  const bundle = {
    name: sources.name,
    ...(version !== undefined && { version }),
    ...(description !== undefined && { description }),
    dialect: sources.dialect,
    folder: files.root,
    ...(found.kind === "read" && { manifestFile: found.file }),
    isRefused: false,
    skillDirectories,
    skills,
    ...components,
  };
  if (isEmpty(bundle))
    files.report({ severity: "warning", code: "BUNDLE_EMPTY", message: "Nothing in this plugin can be used here.", file: files.root });
  return Object.freeze({ ...bundle, diagnostics: named(files, sources.name), files: files.seen, data });
}

function isEmpty({ skills, agents, commands, hooks, mcpServers, context }: Omit<Bundle, "diagnostics" | "files" | "data">): boolean {
  return mcpServers.size === 0 && [skills, agents, commands, hooks, context].every(({ length }) => length === 0);
}

/** As in Claude Code, the manifest must not name components if the entry is the whole definition. */
function clashOf({ manifest, file }: Extract<FoundManifest, { kind: "read" }>, listed: ListedEntry): Diagnostic | undefined {
  const [kind] = Object.keys(manifest.components);
  if (listed.isStrict || kind === undefined) return undefined;
  const message = `This manifest declares ${kind}, but its entry in ${listed.file} has "strict": false, so only the entry may declare them. The plugin is not loaded; remove one of the two.`;
  return { severity: "error", code: "BUNDLE_CLASH", message, file };
}

function unused(read: ManifestPlace | undefined, others: readonly ManifestPlace[]): string | undefined {
  return read === undefined || others.length === 0 ? undefined : `The manifest at ${read.path} is used${listOf(others)}.`;
}

function listOf(places: readonly ManifestPlace[]): string {
  return places.length === 0 ? "" : `, and these are not read: ${places.map(({ path }) => path).join(", ")}`;
}

/** Adds the problems that were found while searching manifests, and a note about unused ones. */
function finished(bundle: Bundle, { diagnostics: before }: BundleFiles, message: string | undefined): Bundle {
  const keyOf = (found: Diagnostic): string => `${found.file}\0${found.message}`;
  const known = new Set(bundle.diagnostics.map(keyOf));
  const others = before.filter((found) => !known.has(keyOf(found)));
  const file = bundle.manifestFile ?? bundle.folder;
  const note: readonly Diagnostic[] = message === undefined ? [] : [{ severity: "info", code: "BUNDLE_MANIFESTS", message, file }];
  if (others.length + note.length === 0) return bundle;
  const added = [...others, ...note].map((diagnostic) => ({ ...diagnostic, source: bundle.name }));
  return Object.freeze({ ...bundle, diagnostics: [...bundle.diagnostics, ...added] });
}

function refused(files: BundleFiles, options: BundleOptions, found: FoundManifest): Bundle {
  const name = basename(files.root);
  return Object.freeze({
    name,
    dialect: found.kind === "refused" ? found.dialect : "claude",
    folder: files.root,
    ...(found.kind === "refused" && { manifestFile: found.file }),
    isRefused: true,
    skillDirectories: [],
    skills: [],
    agents: [],
    commands: [],
    hooks: [],
    mcpServers: new Map(),
    context: [],
    diagnostics: named(files, name),
    files: files.seen,
    data: dataOf(name, files.root, options),
  });
}

function sourcesOf(found: FoundManifest, root: string, listed: ListedEntry | undefined): Sources {
  const entry = { given: listed?.given ?? {}, replacesSkills: listed?.replacesSkills ?? false };
  if (found.kind === "read") {
    const { dialect, components, variables } = found.manifest;
    const given = joinedSources(placedIn(components, found.file, found.text), entry.given);
    return {
      dialect,
      name: listed === undefined ? found.manifest.name : nameOf(listed.name),
      ...entry,
      given,
      manifestFile: found.file,
      variables,
    };
  }
  // Claude Code's manifest is optional, and other clients use folders like its own.
  return { dialect: "claude", name: nameOf(listed?.name ?? basename(root)), ...entry, manifestFile: listed?.file ?? root, variables: [] };
}

function nameOf(text: string): string {
  return (
    text
      .replace(/[^\w.-]+/g, "-")
      .replace(/^[^a-zA-Z0-9]+/, "")
      .slice(0, 64) || "plugin"
  );
}

/** The data folder depends on name and location, so that plugins with the same name do not share it, and an update keeps it. */
function dataOf(name: string, root: string, { dataDirectory, isDry = false }: BundleOptions): BundleData {
  const path = join(dataDirectory, `${name.replace(/[^\w.-]+/g, "-")}-${createHash("sha256").update(root).digest("hex").slice(0, 12)}`);
  return {
    path,
    ensure() {
      if (!isDry) mkdirSync(path, { recursive: true, mode: 0o700 });
      return path;
    },
  };
}

function variablesOf(
  root: string,
  data: BundleData,
  options: BundleOptions,
  environment: NonNullable<BundleOptions["environment"]>,
): VariableLookup {
  const places = { folder: root, workspace: options.workingDirectory, home: homedir(), separator: sep };
  const known = createVariableLookup({ environment, places, settings: options.settings ?? {} });
  // The data folder is created when its path is first used.
  return (reference) => (reference.kind === "place" && reference.name === "data" ? data.ensure() : known(reference));
}

function promptPlaces(root: string, data: BundleData, { workingDirectory }: BundleOptions): Readonly<Record<string, string>> {
  return {
    "${CLAUDE_PLUGIN_ROOT}": root,
    "${CLAUDE_PLUGIN_DATA}": data.path,
    "${CLAUDE_PROJECT_DIR}": workingDirectory,
    "${extensionPath}": root,
    "${workspacePath}": workingDirectory,
  };
}

function named(files: BundleFiles, name: string): Bundle["diagnostics"] {
  return files.diagnostics.map((diagnostic) => ({ ...diagnostic, source: diagnostic.source ?? name }));
}

function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // The folder does not exist, or is a broken link. The caller reports it.
    return path;
  }
}

type FoundManifest =
  | { readonly kind: "read"; readonly manifest: PluginManifest; readonly file: string; readonly text: string }
  /** The manifest is invalid or cannot be read, so the bundle must not be used. */
  | { readonly kind: "refused"; readonly dialect: BundleDialect; readonly file: string }
  | { readonly kind: "absent" };

/** The path of a manifest and its dialect. */
type ManifestPlace = (typeof manifestPlaces)[number];

/**
 * Finds the manifests of a bundle in the places of all dialects, by precedence. One that is a link out of the bundle counts too,
 * since another manifest must not take its place.
 */
function findManifests(files: BundleFiles): readonly ManifestPlace[] {
  const found = manifestPlaces.filter(({ path }) => files.has(path, "file") || isLinkOut(files, path));
  const standard = found.find(({ path }) => path === standardPath && isStandard(files));
  return standard === undefined ? found : [standard, ...found.filter((place) => place !== standard)];
}

/** Reads a manifest, which must lie inside the bundle itself, even through links. */
function readManifest(files: BundleFiles, { path, dialect }: ManifestPlace): FoundManifest {
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
 * Whether a folder is a bundle: it has a manifest, or it has the usual folders of plugins and no code. A folder with code is a
 * module first.
 */
export function isBundleFolder(folder: string): boolean {
  if (hasManifest(folder)) return true;
  const files = new BundleFiles(folder);
  if (kindOf(folder) !== "folder" || codeFiles.some((path) => files.has(path, "file"))) return false;
  const parts = ["SKILL.md", ".mcp.json", "hooks/hooks.json", ...marketplacePlaces].some((path) => files.has(path, "file"));
  return parts || ["skills", "agents", "commands"].some((path) => files.has(path, "folder"));
}

const codeFiles = ["package.json", ...["ts", "mts", "js", "mjs", "cjs"].map((extension) => `index.${extension}`)];

/** Whether a folder has the manifest of a bundle. */
export function hasManifest(folder: string): boolean {
  const files = new BundleFiles(folder);
  return kindOf(folder) === "folder" && manifestPlaces.some(({ path }) => files.has(path, "file"));
}

const standardPath = "plugin.json";

/** Whether the root manifest has the neutral format, which takes precedence over those of single clients. */
function isStandard(files: BundleFiles): boolean {
  const read = files.has(standardPath, "file") ? readTextFile(join(files.root, standardPath), maxJsonBytes) : undefined;
  return read?.ok === true && /"\$schema"\s*:\s*"https:\/\/(?:www\.)?agent-plugins\.org\//.test(read.text);
}
