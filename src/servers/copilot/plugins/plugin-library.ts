import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { cp, mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { errorMessage, HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import type { Logger } from "../../../base/logger.ts";
import { writeFileAtomic } from "../../../io/atomic-write.ts";
import type { Bundle } from "../../../plugin-host/bundles/bundle.ts";
import type { ListedPlugin, ReadMarketplace, StoredEntry } from "../../../plugin-host/bundles/read-marketplace.ts";

/** A plugin that a user installed through a client. */
export interface InstalledPlugin {
  readonly name: string;
  /** Empty for a plugin that was installed from its folder. */
  readonly marketplace: string;
  readonly version: string | undefined;
  readonly enabled: boolean;
  /** The folder it was copied from; `folder` is the copy. */
  readonly origin: string;
  readonly folder: string;
  /** Its entry in the marketplace, which may be its whole definition. */
  readonly entry?: StoredEntry | undefined;
}

export interface LibraryPlace {
  /** The folder of the installed plugins and their index. */
  readonly directory: string;
  readonly dataDirectory: string;
  readonly log: Logger;
}

export interface Installed {
  readonly plugin: InstalledPlugin;
  readonly skillCount: number;
}

/** The plugins that a user installed through clients, from folders of this machine. Every later session has them. */
export class PluginLibrary {
  readonly #place: LibraryPlace;
  readonly #marketplaces: MarketplaceRegistry;
  #plugins: readonly InstalledPlugin[];
  #changing: Promise<unknown> = Promise.resolve();

  /** @throws HostError `PLUGIN_LIBRARY` when the index exists and cannot be read. */
  constructor(place: LibraryPlace) {
    this.#place = place;
    const { plugins, marketplaces } = readIndex(this.#index);
    this.#plugins = plugins;
    this.#marketplaces = new MarketplaceRegistry(marketplaces, () => this.#oneByOne(() => this.#save()));
  }

  get plugins(): readonly InstalledPlugin[] {
    return this.#plugins;
  }

  get marketplaces(): MarketplaceRegistry {
    return this.#marketplaces;
  }

  /** The plugins that are enabled. */
  get enabled(): readonly InstalledPlugin[] {
    return this.#plugins.filter(({ enabled }) => enabled);
  }

  /**
   * Installs a plugin from a folder, or from a marketplace as `plugin@marketplace`. Replaces one with the same name and origin.
   * @throws HostError `PLUGIN_SOURCE`, `PLUGIN_UNUSABLE`, `MARKETPLACE_UNKNOWN`; nothing has changed then.
   */
  install(source: string, workingDirectory: string): Promise<Installed> {
    return this.#oneByOne(async () => {
      const listed = await this.#marketplaces.find(source);
      if (listed !== undefined) return this.#copy(listed.folder, listed.marketplace, true, listed.entry);
      return this.#copy(localFolder(source, workingDirectory), "", true);
    });
  }

  /** Copies a plugin from its origin again. @throws HostError `PLUGIN_UNKNOWN`, and as `install`. */
  update(spec: string): Promise<Installed & { readonly previousVersion: string | undefined }> {
    return this.#oneByOne(async () => {
      const before = this.#find(spec);
      const listed = before.marketplace === "" ? undefined : await this.#marketplaces.find(`${before.name}@${before.marketplace}`);
      const installed = await this.#copy(listed?.folder ?? before.origin, before.marketplace, before.enabled, listed?.entry);
      return { ...installed, previousVersion: before.version };
    });
  }

  /** @throws HostError `PLUGIN_UNKNOWN`. */
  uninstall(spec: string, sourceId?: string): Promise<void> {
    return this.#oneByOne(async () => {
      const gone = this.#find(spec, sourceId);
      this.#plugins = this.#plugins.filter((plugin) => plugin !== gone);
      await this.#save();
      await rm(gone.folder, { recursive: true, force: true });
    });
  }

  /** @throws HostError `PLUGIN_UNKNOWN` when one is not installed; nothing has changed then. */
  setEnabled(specs: readonly string[], enabled: boolean): Promise<void> {
    return this.#oneByOne(async () => {
      const meant = new Set(specs.map((spec) => this.#find(spec)));
      this.#plugins = this.#plugins.map((plugin) => (meant.has(plugin) ? { ...plugin, enabled } : plugin));
      await this.#save();
    });
  }

  /** `entry`: the plugin's entry in a marketplace. Its folder needs no manifest then. */
  async #copy(origin: string, marketplace: string, enabled: boolean, entry?: StoredEntry): Promise<Installed> {
    // Read before copying: a folder that is not a plugin may be arbitrarily large.
    await this.#read(origin, entry);
    const staged = join(this.#place.directory, `.staged-${randomUUID()}`);
    try {
      await mkdir(this.#place.directory, { recursive: true });
      // Symbolic links stay links: one that leaves the plugin is refused when the plugin is read.
      await cp(origin, staged, { recursive: true, verbatimSymlinks: true, filter: (path) => !/[\\/](?:\.git|node_modules)$/.test(path) });
      const bundle = await this.#read(staged, entry);
      const { name, version, skills } = bundle;
      const folder = join(this.#place.directory, `${name}-${shortHash(`${marketplace}\n${marketplace === "" ? origin : name}`)}`);
      await rm(folder, { recursive: true, force: true });
      await rename(staged, folder);
      const plugin: InstalledPlugin = { name, marketplace, version, enabled, origin, folder, ...(entry && { entry }) };
      this.#plugins = [...this.#plugins.filter((other) => other.folder !== folder), plugin];
      await this.#save();
      return { plugin, skillCount: skills.length };
    } finally {
      await rm(staged, { recursive: true, force: true });
    }
  }

  async #read(folder: string, entry?: StoredEntry): Promise<Bundle> {
    const { fromStoredEntry } = await import("../../../plugin-host/bundles/read-marketplace.ts");
    const { loadBundle } = await import("../../../plugin-host/bundles/load-bundle.ts");
    const listed = entry && fromStoredEntry(entry, folder);
    const bundle = loadBundle(folder, { ...this.#place, workingDirectory: folder, hooks: "off", listed });
    const fault = bundle.diagnostics.find(({ severity }) => severity === "error");
    const isNamed = /^[A-Za-z0-9][\w.-]{0,63}$/.test(bundle.name) && !bundle.name.startsWith(".staged");
    if (!bundle.isRefused && isNamed && (bundle.manifestFile !== undefined || listed !== undefined)) return bundle;
    const why = bundle.isRefused && fault !== undefined ? fault.message : "it has no manifest with a valid name";
    throw new HostError("PLUGIN_UNUSABLE", `This plugin cannot be installed: ${why}`);
  }

  #find(spec: string, sourceId?: string): InstalledPlugin {
    const found = this.#plugins.filter((plugin) => {
      const isNamed = plugin.name === spec || `${plugin.name}@${plugin.marketplace}` === spec;
      return isNamed && (sourceId === undefined || sourceIdOf(plugin) === sourceId);
    });
    if (found.length === 1) return found[0]!;
    const why = found.length === 0 ? "is not installed" : "is installed from several marketplaces: use plugin@marketplace";
    throw new HostError("PLUGIN_UNKNOWN", `Plugin ${JSON.stringify(spec)} ${why}.`);
  }

  async #save(): Promise<void> {
    const index = { plugins: this.#plugins, marketplaces: this.#marketplaces.all };
    await mkdir(this.#place.directory, { recursive: true });
    await writeFileAtomic(this.#index, `${JSON.stringify(index, null, 2)}\n`);
  }

  #oneByOne<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#changing.then(work);
    // The caller gets the error; it must not fail the next change.
    this.#changing = done.catch(() => {});
    return done;
  }

  get #index(): string {
    return join(this.#place.directory, "plugins.json");
  }
}

/** Distinguishes plugins with the same name that were installed from folders. Undefined for those of marketplaces. */
export function sourceIdOf({ marketplace, origin }: InstalledPlugin): string | undefined {
  return marketplace === "" ? shortHash(origin) : undefined;
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** Resolves a source to a folder. @throws HostError `PLUGIN_SOURCE`. */
export function localFolder(source: string, workingDirectory: string): string {
  const path = /^~[\\/]/.test(source) ? join(homedir(), source.slice(2)) : resolve(workingDirectory, source);
  if (existsSync(path) && statSync(path).isDirectory()) return path;
  const isRemote = /^(?:https?|ssh|git):|^git@|^[\w-][\w.-]*\/[\w.-]+(?::|$)/.test(source);
  const advice = isRemote
    ? "skillhost does not fetch plugins from GitHub or other repositories. Clone the repository, and use its folder."
    : "The folder does not exist.";
  throw new HostError("PLUGIN_SOURCE", `${JSON.stringify(source)} cannot be installed. ${advice}`);
}

interface LibraryIndex {
  readonly plugins: readonly InstalledPlugin[];
  readonly marketplaces: readonly KnownMarketplace[];
}

function readIndex(file: string): LibraryIndex {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const { plugins, marketplaces } = isRecord(value) ? value : {};
    return {
      plugins: Array.isArray(plugins) ? plugins.flatMap(readPlugin) : [],
      marketplaces: Array.isArray(marketplaces) ? marketplaces.flatMap(readMarketplace) : [],
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { plugins: [], marketplaces: [] };
    throw new HostError("PLUGIN_LIBRARY", `${file} cannot be read (${errorMessage(error)}). Fix it or delete it.`, { cause: error });
  }
}

function readPlugin(value: unknown): readonly InstalledPlugin[] {
  const { name, marketplace, version, enabled, origin, folder, entry } = isRecord(value) ? value : {};
  const isWhole = typeof name === "string" && typeof marketplace === "string" && typeof origin === "string" && typeof folder === "string";
  if (!isWhole) return [];
  const { text, file, isOwnFolder } = isRecord(entry) ? entry : {};
  const stored: StoredEntry | undefined =
    typeof text === "string" && typeof file === "string" ? { text, file, isOwnFolder: isOwnFolder === true } : undefined;
  const plugin = {
    name,
    marketplace,
    version: typeof version === "string" ? version : undefined,
    enabled: enabled === true,
    origin,
    folder,
  };
  return [{ ...plugin, ...(stored && { entry: stored }) }];
}

function readMarketplace(value: unknown): readonly KnownMarketplace[] {
  const { name, folder } = isRecord(value) ? value : {};
  return typeof name === "string" && typeof folder === "string" ? [{ name, folder }] : [];
}

/** A plugin marketplace in a folder of this machine. */
interface KnownMarketplace {
  readonly name: string;
  readonly folder: string;
}

/** The marketplaces that a user added through clients. Each is read from its folder when it is used. */
class MarketplaceRegistry {
  readonly #save: () => Promise<void>;
  #all: readonly KnownMarketplace[];

  constructor(all: readonly KnownMarketplace[], save: () => Promise<void>) {
    this.#all = all;
    this.#save = save;
  }

  get all(): readonly KnownMarketplace[] {
    return this.#all;
  }

  /** @throws HostError `MARKETPLACE_UNUSABLE`. */
  async add(folder: string): Promise<string> {
    const { name } = await read(folder);
    this.#all = [...this.#all.filter((other) => other.name !== name), { name, folder }];
    await this.#save();
    return name;
  }

  /** @throws HostError `MARKETPLACE_UNKNOWN`. */
  async remove(name: string): Promise<void> {
    const gone = this.#find(name);
    this.#all = this.#all.filter((marketplace) => marketplace !== gone);
    await this.#save();
  }

  /** The plugins of a marketplace. @throws HostError `MARKETPLACE_UNKNOWN`, `MARKETPLACE_UNUSABLE`. */
  async browse(name: string): Promise<readonly ListedPlugin[]> {
    return (await read(this.#find(name).folder)).plugins;
  }

  /**
   * Finds a plugin by `plugin@marketplace`. Undefined: the text does not have this form.
   * @throws HostError `MARKETPLACE_UNKNOWN`, `MARKETPLACE_UNUSABLE`, `PLUGIN_SOURCE` when the marketplace does not contain the plugin.
   */
  async find(spec: string): Promise<{ readonly folder: string; readonly marketplace: string; readonly entry: StoredEntry } | undefined> {
    const [, name, marketplace] = /^([\w.-]+)@([\w.-]+)$/.exec(spec) ?? [];
    if (name === undefined || marketplace === undefined) return undefined;
    const list = await read(this.#find(marketplace).folder);
    const listed = list.plugins.find((plugin) => plugin.name === name);
    if (listed?.folder !== undefined) {
      const { toStoredEntry } = await import("../../../plugin-host/bundles/read-marketplace.ts");
      return { folder: listed.folder, marketplace, entry: toStoredEntry(list, listed) };
    }
    const why =
      listed === undefined ? "it does not list this plugin" : "the plugin is in another repository, and skillhost does not fetch plugins";
    throw new HostError("PLUGIN_SOURCE", `${JSON.stringify(spec)} cannot be installed from marketplace "${marketplace}": ${why}.`);
  }

  #find(name: string): KnownMarketplace {
    const found = this.#all.find((marketplace) => marketplace.name === name);
    if (found !== undefined) return found;
    const known =
      this.#all.length === 0
        ? "No marketplaces were added."
        : `The added marketplaces are: ${this.#all.map((one) => one.name).join(", ")}.`;
    throw new HostError("MARKETPLACE_UNKNOWN", `Marketplace ${JSON.stringify(name)} does not exist. ${known}`);
  }
}

async function read(folder: string): Promise<ReadMarketplace> {
  const { readMarketplace } = await import("../../../plugin-host/bundles/read-marketplace.ts");
  const marketplace = readMarketplace(folder);
  if (marketplace !== undefined && marketplace.name !== "") return marketplace;
  const why = marketplace?.diagnostics.find(({ severity }) => severity === "error")?.message ?? "It contains no marketplace.json.";
  throw new HostError("MARKETPLACE_UNUSABLE", `No marketplace found in ${folder}. ${why}`);
}
