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
import type { PluginAgent, PluginCommand } from "../plugin-api.ts";

/** A folder with skills, agents, hooks and servers that was made for some agent, as it was read. Immutable. */
export interface Bundle {
  /** The folder's name where the manifest gives none, or cannot be read. */
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly dialect: BundleDialect;
  /** Absolute. */
  readonly folder: string;
  /** Absolute. Absent: the folder has no manifest. */
  readonly manifestFile?: string;
  /** Its manifest forbids to use it, or cannot be read: nothing of it counts. */
  readonly isRefused: boolean;
  /** Absolute: skill folders, or folders of them. */
  readonly skillDirectories: readonly string[];
  /** The names of the skill folders, as they were when it was read. */
  readonly skills: readonly string[];
  readonly agents: readonly PluginAgent[];
  readonly commands: readonly PluginCommand[];
  readonly hooks: readonly HookCommand[];
  /** As the options of a session take them: literal. */
  readonly mcpServers: ReadonlyMap<string, object>;
  /** Files whose text is put before every conversation. */
  readonly context: readonly BundleContext[];
  /** What is wrong with it, each part on its own. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files whose change may make it another: all but those of its skills, which are loaded by themselves. */
  readonly files: ReadonlySet<string>;
  /** The folder in which it may keep what is to last. It is made when something of the bundle needs it. */
  readonly data: BundleData;
}

export interface BundleContext {
  /** Relative to the bundle. */
  readonly path: string;
  readonly text: string;
}

/** What a marketplace says about a bundle that it lists. */
export interface ListedEntry extends Pick<Sources, "given" | "replacesSkills"> {
  readonly name: string;
  readonly version: string | undefined;
  readonly description: string | undefined;
  /** False: the entry is the whole definition, and a manifest must not name parts. True: it is added to the manifest. */
  readonly isStrict: boolean;
  /** The marketplace's file. */
  readonly file: string;
}

export interface BundleData {
  /** Absolute. */
  readonly path: string;
  /** Makes it if it is not there. @throws the system's error. */
  ensure(): string;
}

export interface BundleOptions {
  /** Where sessions work: what bundles call the project or workspace. */
  readonly workingDirectory: string;
  /** Holds a folder for each bundle that wants to keep something. */
  readonly dataDirectory: string;
  /**
   * Whether the programs that its hooks name may run. Whoever names a bundle in a configuration or option wants it whole;
   * one that was found some other way should have them off.
   */
  readonly hooks?: "run" | "off" | undefined;
  /** True: nothing is made on the disk, so what it brings is only to be looked at. */
  readonly isDry?: boolean | undefined;
  /** What its variables are filled with. Default: the process's. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** What a person was asked for, by name: `${user_config.name}` in its MCP servers. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** What the marketplace that lists it says. Absent: what one in the folder says about the folder itself, if that has no manifest. */
  readonly listed?: ListedEntry | undefined;
  readonly log: Logger;
}

/** Where in the manifest a path was named. */
interface NamedAt {
  readonly file: string;
  readonly start: Position | undefined;
}

const mostFiles = 1_000;
const mostEntries = 5_000;

interface BundleFilesOptions {
  /** Links may lead anywhere in this folder: the checkout or installed package that the bundle is a part of. Default: the bundle's own. */
  readonly reach?: string;
  /** Collects what was read or looked for. */
  readonly seen?: Set<string>;
}

/**
 * The files of one bundle. Nothing outside of its folder is looked at, unless a link in it leads to another place of what
 * the bundle is a part of; what cannot be had is reported.
 */
export class BundleFiles {
  readonly root: string;
  readonly diagnostics: Diagnostic[] = [];
  /** What was read or looked for, and may change what the bundle is. */
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
   * The absolute path of something in the bundle that is there; undefined, and reported if it leads out or was named. What
   * a manifest names must be in the bundle itself, also where links lead.
   */
  find(path: string, named?: NamedAt): string | undefined {
    const confined = named === undefined ? this.#confine(path) : confinePath(this.root, path);
    const place = named ?? { file: join(this.root, path), start: undefined };
    if (!confined.ok) {
      if (!this.#linksOut.has(path)) this.report(faultAt("error", "BUNDLE_PATH", `${confined.message} It is ignored.`, place));
      return undefined;
    }
    if (kindOf(confined.path) !== undefined) return confined.path;
    if (named !== undefined)
      this.report(faultAt("error", "BUNDLE_FILE_MISSING", `${JSON.stringify(path.slice(0, 200))} does not exist. Fix the path.`, place));
    return undefined;
  }

  /** Whether there is something at a path, and it stays inside. Only a link that leads out is reported. */
  has(path: string, kind: "file" | "folder"): boolean {
    if (kind === "file") this.seen.add(join(this.root, path));
    const confined = this.#confine(path);
    if (!confined.ok && confined.reason === "link-out" && !this.#linksOut.has(path)) {
      this.#linksOut.add(path);
      this.report({ severity: "error", code: "BUNDLE_PATH", message: `${confined.message} It is ignored.`, file: join(this.root, path) });
    }
    return confined.ok && kindOf(confined.path) === kind;
  }

  /** The text of a file of the bundle; what is wrong with it is reported. */
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

  /** What a folder of the bundle holds, by name. What leads out of the bundle is reported and left out. */
  list(folder: string): readonly { readonly path: string; readonly name: string; readonly kind: "file" | "folder" }[] {
    const entries = this.#entries(folder);
    if (entries.length > mostEntries) {
      const message = `This folder has ${entries.length} entries, but only the first ${mostEntries} are read. Split them into several folders.`;
      this.report({ severity: "error", code: "BUNDLE_TOO_MANY", message, file: folder });
    }
    return entries.slice(0, mostEntries).flatMap(({ name }) => {
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

  /** The files below a folder whose names fit, by path. A folder that is reached twice counts once. */
  walk(folder: string, fits: RegExp, depth: number): readonly string[] {
    const seen = new Set<string>();
    const files: string[] = [];
    const visit = (at: string, left: number): void => {
      const real = realpathSync.native(at);
      if (seen.has(real) || files.length >= mostFiles) return;
      seen.add(real);
      for (const { path, name, kind } of this.list(at)) {
        if (kind === "file" && fits.test(name)) files.push(path);
        else if (kind === "folder" && left > 0 && name !== "node_modules" && name !== ".git") visit(path, left - 1);
      }
    };
    if (kindOf(folder) === "folder") visit(folder, depth);
    return files.slice(0, mostFiles);
  }

  /** A path as the bundle's own files would name it. */
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

function faultAt(severity: Diagnostic["severity"], code: string, message: string, { file, start }: NamedAt): Diagnostic {
  return { severity, code, message, file, ...(start && { range: { start } }) };
}

/** Whether there is a file at a path that is not the bundle's to read: a link out of it. */
export function isLinkOut(files: BundleFiles, path: string): boolean {
  return !files.has(path, "file") && kindOf(join(files.root, path)) === "file";
}

/** What lies at a path, links followed; undefined: nothing that could be read. */
export function kindOf(path: string): "file" | "folder" | undefined {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    const stats = statSync(path);
    return stats.isDirectory() ? "folder" : stats.isFile() ? "file" : undefined;
  } catch {
    // A link that leads nowhere, or a folder that must not be looked into: nothing that could be used.
    return undefined;
  }
}

/** A component that is named, or written, in a manifest or in the entry of a marketplace. */
export type PlacedSource = ComponentSource & {
  /** The file that says so, and its text. */
  readonly file: string;
  readonly text: string;
};

/** What is said of a bundle's components; a bundle without a manifest says nothing. */
export interface Sources {
  readonly dialect: BundleDialect;
  readonly name: string;
  readonly given: Readonly<Partial<Record<ComponentKind, readonly PlacedSource[]>>>;
  /** The usual folder of skills does not count, although the dialect adds it to those that are named. */
  readonly replacesSkills: boolean;
  /** The manifest, or the folder where there is none. */
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

/** The components of both, the first's first. */
export function joinedSources(one: Sources["given"], other: Sources["given"]): Sources["given"] {
  const kinds = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<ComponentKind>;
  return Object.fromEntries([...kinds].map((kind) => [kind, [...(one[kind] ?? []), ...(other[kind] ?? [])]]));
}
