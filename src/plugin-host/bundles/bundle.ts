import { type Dirent, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, join, relative, resolve, sep } from "node:path";
import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { HookCommand } from "../../formats/plugins/hook-config.ts";
import type { BundleDialect, ComponentKind } from "../../formats/plugins/plugin-dialects.ts";
import type { ComponentSource, Components } from "../../formats/plugins/plugin-manifest.ts";
import { decodeText } from "../../formats/text/decode-text.ts";
import { type Confined, confinePath, isInside, realPathOfDeepest } from "../../io/confine-path.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import type { Plugin } from "../define-plugin.ts";
import type { PluginAgent, PluginCommand } from "../plugin-api.ts";

/** A plugin folder with skills, agents, hooks and servers that was made for some agent. Immutable. */
export interface Bundle {
  /** The folder's name if the manifest gives none or cannot be read. */
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly dialect: BundleDialect;
  /** Absolute. */
  readonly folder: string;
  /** Absolute. Absent: the folder has no manifest. */
  readonly manifestFile?: string;
  /** Whether nothing of it is used, because its manifest is invalid or cannot be read. */
  readonly isRefused: boolean;
  /** Absolute paths of skill folders, or of folders of them. */
  readonly skillDirectories: readonly string[];
  /** The names of its skills when it was read. */
  readonly skills: readonly string[];
  readonly agents: readonly PluginAgent[];
  readonly commands: readonly PluginCommand[];
  readonly hooks: readonly HookCommand[];
  /** Configurations in the form of session options, without variables. */
  readonly mcpServers: ReadonlyMap<string, object>;
  /** Files whose text is added to every conversation. */
  readonly context: readonly BundleContext[];
  /** Its problems. Each affects only one component. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files whose change may change the bundle. Its skills are not included, since the skill store watches them. */
  readonly files: ReadonlySet<string>;
  /** The folder in which it may store data, which is created on first use. */
  readonly data: BundleData;
}

export interface BundleContext {
  /** Relative to the bundle. */
  readonly path: string;
  readonly text: string;
}

/** The entry of a bundle in a marketplace. */
export interface ListedEntry extends Pick<Sources, "given" | "replacesSkills"> {
  readonly name: string;
  readonly version: string | undefined;
  readonly description: string | undefined;
  /** Whether the entry adds to the manifest. Otherwise it is the whole definition, and the manifest must not name components. */
  readonly isStrict: boolean;
  /** The marketplace's file. */
  readonly file: string;
}

export interface BundleData {
  /** Absolute. */
  readonly path: string;
  /** Creates the folder if it does not exist. @throws the system's error. */
  ensure(): string;
}

export interface BundleOptions {
  /** The working directory of sessions, which bundles call the project or workspace. */
  readonly workingDirectory: string;
  /** Holds a folder for each bundle that stores data. */
  readonly dataDirectory: string;
  /**
   * Whether the programs of its hooks may run. They should be off for a bundle that was not named in a configuration or option.
   */
  readonly hooks?: "run" | "off" | undefined;
  /** True: nothing is written to the disk, so the bundle can be inspected but not used. */
  readonly isDry?: boolean | undefined;
  /** The environment for its variables. Default: that of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Settings from the user by name, for `${user_config.name}` in its MCP servers. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** Its entry in a marketplace. Absent: the entry for the folder itself in the folder's own marketplace, if it has no manifest. */
  readonly listed?: ListedEntry | undefined;
  readonly log: Logger;
}

/** The place in a manifest that names a path. */
interface NamedAt {
  readonly file: string;
  readonly start: Position | undefined;
}

const maxFiles = 1_000;
const maxEntries = 5_000;

interface BundleFilesOptions {
  /** Links may lead anywhere in this folder: the checkout or installed package that contains the bundle. Default: the bundle's own. */
  readonly reach?: string;
  /** Collects the paths that were read or checked. */
  readonly seen?: Set<string>;
}

/**
 * The files of one bundle. Nothing outside its folder is read, unless a link leads there within `reach`. Paths that cannot be
 * used are reported.
 */
export class BundleFiles {
  readonly root: string;
  readonly diagnostics: Diagnostic[] = [];
  /** The paths that were read or checked, whose change may change the bundle. */
  readonly seen: Set<string>;
  readonly #reach: string;
  readonly #linksOut = new Set<string>();

  constructor(root: string, { reach = root, seen = new Set() }: BundleFilesOptions = {}) {
    this.root = resolve(root);
    this.#reach = resolve(reach);
    this.seen = seen;
  }

  report(diagnostic: Diagnostic): void {
    if (this.diagnostics.length < 500) this.diagnostics.push(diagnostic);
  }

  /**
   * The absolute path of an existing file or folder of the bundle. Undefined: it does not exist, which is reported if a manifest
   * names it, or it leads out of the bundle. A path from a manifest must stay inside the bundle itself, even through links.
   */
  find(path: string, named?: NamedAt): string | undefined {
    const confined = named === undefined ? this.#confine(path) : confinePath(this.root, path);
    const place = named ?? { file: join(this.root, path), start: undefined };
    if (!confined.ok) {
      if (!this.#linksOut.has(path)) this.report(errorAt("BUNDLE_PATH", `${confined.message} It is ignored.`, place));
      return undefined;
    }
    if (kindOf(confined.path) !== undefined) return confined.path;
    if (named !== undefined)
      this.report(errorAt("BUNDLE_FILE_MISSING", `${JSON.stringify(path.slice(0, 200))} does not exist. Fix the path.`, place));
    return undefined;
  }

  /** Whether a file or folder exists inside the bundle. Only a link that leads out is reported. */
  has(path: string, kind: "file" | "folder"): boolean {
    if (kind === "file") this.seen.add(join(this.root, path));
    const confined = this.#confine(path);
    if (!confined.ok && confined.reason === "link-out" && !this.#linksOut.has(path)) {
      this.#linksOut.add(path);
      this.report({ severity: "error", code: "BUNDLE_PATH", message: `${confined.message} It is ignored.`, file: join(this.root, path) });
    }
    return confined.ok && kindOf(confined.path) === kind;
  }

  /** The text of a file of the bundle. Problems are reported. */
  read(file: string, maxBytes: number): string | undefined {
    this.seen.add(file);
    const read = readTextFile(file, maxBytes);
    if (!read.ok) {
      this.report(read.diagnostic);
      return undefined;
    }
    const { text, diagnostics } = decodeText(read.bytes, file);
    diagnostics.forEach((found) => void this.report(found));
    return text;
  }

  /** The entries of a folder of the bundle, sorted by name. Those that lead out of the bundle are reported and left out. */
  list(folder: string): readonly { readonly path: string; readonly name: string; readonly kind: "file" | "folder" }[] {
    const entries = this.#entries(folder);
    if (entries.length > maxEntries) {
      const message = `This folder has ${entries.length} entries, but only the first ${maxEntries} are read. Split them into several folders.`;
      this.report({ severity: "error", code: "BUNDLE_TOO_MANY", message, file: folder });
    }
    return entries.slice(0, maxEntries).flatMap(({ name }) => {
      const path = join(folder, name);
      const confined = this.#confine(relative(this.root, path).split(sep).join("/"));
      if (!confined.ok) {
        this.report({ severity: "error", code: "BUNDLE_PATH", message: `${confined.message} It is ignored.`, file: path });
        return [];
      }
      const kind = kindOf(path);
      return kind === undefined ? [] : [{ path, name, kind }];
    });
  }

  /** The files below a folder whose names match. A folder that links reach twice is read once. */
  walk(folder: string, fits: RegExp, depth: number): readonly string[] {
    const seen = new Set<string>();
    const files: string[] = [];
    const visit = (at: string, left: number): void => {
      const real = realpathSync.native(at);
      if (seen.has(real) || files.length >= maxFiles) return;
      seen.add(real);
      for (const { path, name, kind } of this.list(at)) {
        if (kind === "file" && fits.test(name)) files.push(path);
        else if (kind === "folder" && left > 0 && name !== "node_modules" && name !== ".git") visit(path, left - 1);
      }
    };
    if (kindOf(folder) === "folder") visit(folder, depth);
    return files.slice(0, maxFiles);
  }

  /** A path relative to the bundle. */
  nameOf(path: string): string {
    return relative(this.root, path).split(sep).join("/") || basename(this.root);
  }

  #confine(path: string): Confined {
    const confined = confinePath(this.root, path);
    if (confined.ok || confined.reason !== "link-out" || this.#reach === this.root) return confined;
    const target = join(this.root, path);
    const real = relative(realPathOfDeepest(this.#reach), realPathOfDeepest(target));
    const isWithin = isInside(".", real) && !real.split(sep).includes(".git");
    return isWithin ? { ok: true, path: target } : confined;
  }

  #entries(folder: string): readonly Dirent[] {
    try {
      return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      const message = `This folder cannot be read (${errorMessage(error)}). Check its permissions.`;
      this.report({ severity: "error", code: "BUNDLE_UNREADABLE", message, file: folder });
      return [];
    }
  }
}

function errorAt(code: string, message: string, { file, start }: NamedAt): Diagnostic {
  return { severity: "error", code, message, file, ...(start && { range: { start } }) };
}

/** Whether a path is a link to a file outside the bundle. */
export function isLinkOut(files: BundleFiles, path: string): boolean {
  return !files.has(path, "file") && kindOf(join(files.root, path)) === "file";
}

/** The kind of a path, following links. Undefined: nothing readable is there. */
export function kindOf(path: string): "file" | "folder" | undefined {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    const stats = statSync(path);
    return stats.isDirectory() ? "folder" : stats.isFile() ? "file" : undefined;
  } catch {
    // A broken link, or a path without permission.
    return undefined;
  }
}

/** A component that a manifest or a marketplace entry names or contains. */
export type PlacedSource = ComponentSource & {
  /** The file of the manifest or marketplace, and its text. */
  readonly file: string;
  readonly text: string;
};

/** The definition of a bundle's components by its manifest and marketplace entry. */
export interface Sources {
  readonly dialect: BundleDialect;
  readonly name: string;
  readonly given: Readonly<Partial<Record<ComponentKind, readonly PlacedSource[]>>>;
  /** Whether the named skills replace the usual folder, even if the dialect adds them to it. */
  readonly replacesSkills: boolean;
  /** The manifest, or the folder if there is none. */
  readonly manifestFile: string;
  /** Names of environment variables that its MCP servers get. */
  readonly variables: readonly string[];
}

/** Components with the file that names them. */
export function placedIn(components: Components, file: string, text: string): Sources["given"] {
  return Object.fromEntries(
    Object.entries(components).map(([kind, sources]) => [kind, sources.map((source): PlacedSource => ({ ...source, file, text }))]),
  );
}

/** The components of both definitions, in this order. */
export function joinedSources(one: Sources["given"], other: Sources["given"]): Sources["given"] {
  const kinds = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<ComponentKind>;
  return Object.fromEntries([...kinds].map((kind) => [kind, [...(one[kind] ?? []), ...(other[kind] ?? [])]]));
}

const bundles = new WeakMap<Plugin, Bundle>();

/** Notes the bundle from which a plugin was created. */
export function rememberBundle(plugin: Plugin, bundle: Bundle): void {
  bundles.set(plugin, bundle);
}

/** The bundle from which a plugin was created. */
export function bundleOf(plugin: Plugin): Bundle | undefined {
  return bundles.get(plugin);
}
