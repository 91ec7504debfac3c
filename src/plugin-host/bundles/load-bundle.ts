import { createHash } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join, resolve, sep } from "node:path";
import { errorMessage } from "../../base/errors.ts";
import { createVariableLookup, type VariableLookup } from "../../formats/mcp/expand-variables.ts";
import type { Bundle, BundleData, BundleOptions } from "./bundle.ts";
import { BundleFiles, kindOf } from "./bundle-files.ts";
import type { Sources } from "./component-sources.ts";
import { type FoundManifest, findManifest } from "./find-manifest.ts";
import { loadAgents } from "./load-agents.ts";
import { loadCommands } from "./load-commands.ts";
import { loadContext } from "./load-context.ts";
import { loadHooks } from "./load-hooks.ts";
import { loadServers } from "./load-servers.ts";
import { loadSkillFolders } from "./load-skill-folders.ts";

/**
 * Reads a folder that was made for some agent: what its manifest names, or what lies where that agent looks for it. Each
 * part fails on its own, with a diagnostic; nothing outside of the folder is read, and nothing is run. Never throws.
 */
export function loadBundle(folder: string, options: BundleOptions): Bundle {
  const root = realPath(resolve(folder));
  const files = new BundleFiles(root);
  if (kindOf(root) !== "folder") {
    files.report({ severity: "error", code: "BUNDLE_UNREADABLE", message: "There is no such folder. Correct the path.", file: root });
    return refused(files, options, { kind: "absent" });
  }
  const found = findManifest(files);
  if (found.kind === "refused") return refused(files, options, found);
  const sources = sourcesOf(found, root);
  const data = dataOf(sources.name, root, options);
  try {
    return load(files, sources, data, options, found);
  } catch (error) {
    // Disks fail in between; whoever loads many bundles goes on with the others.
    files.report({
      severity: "error",
      code: "BUNDLE_UNREADABLE",
      message: `This plugin cannot be read: ${errorMessage(error)}`,
      file: root,
    });
    return refused(files, options, found);
  }
}

function load(files: BundleFiles, sources: Sources, data: BundleData, options: BundleOptions, found: FoundManifest): Bundle {
  const environment = options.environment ?? process.env;
  const variables = variablesOf(files.root, data, options, environment);
  const { skillDirectories, skills } = loadSkillFolders(files, sources);
  const components = {
    agents: loadAgents(files, sources, variables),
    commands: loadCommands(files, sources, promptPlaces(files.root, data, options)),
    hooks: loadHooks(files, sources, options.hooks ?? "run"),
    mcpServers: loadServers(files, sources, { variables, data, environment }),
    context: loadContext(files, sources),
  };
  const count = skills.length + components.mcpServers.size;
  const rest = [components.agents, components.commands, components.hooks, components.context];
  if (count === 0 && rest.every(({ length }) => length === 0))
    files.report({ severity: "warning", code: "BUNDLE_EMPTY", message: "Nothing in this plugin can be used here.", file: files.root });
  const manifest = found.kind === "read" ? found.manifest : undefined;
  return Object.freeze({
    name: sources.name,
    ...(manifest?.version !== undefined && { version: manifest.version }),
    ...(manifest?.description !== undefined && { description: manifest.description }),
    dialect: sources.dialect,
    folder: files.root,
    ...(found.kind === "read" && { manifestFile: found.file }),
    isRefused: false,
    skillDirectories,
    skills,
    ...components,
    diagnostics: named(files, sources.name),
    files: files.seen,
    data,
  });
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

function sourcesOf(found: FoundManifest, root: string): Sources {
  if (found.kind === "read") {
    const { dialect, name, components, variables } = found.manifest;
    return { dialect, name, given: components, manifestFile: found.file, manifestText: found.text, variables };
  }
  // Claude Code's manifest may be left out, and its folders are what everybody else's are modelled on.
  const name =
    basename(root)
      .replace(/[^\w.-]+/g, "-")
      .replace(/^[^a-zA-Z0-9]+/, "")
      .slice(0, 64) || "plugin";
  return { dialect: "claude", name, given: {}, manifestFile: root, manifestText: "", variables: [] };
}

/** Two plugins of one name keep their things apart, and one that is updated where it lies finds its own again. */
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
  // Made when somebody asks where it is: what is told of a folder should be true.
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
    // It is not there, or a link that leads nowhere: whoever looks for the folder says so.
    return path;
  }
}
