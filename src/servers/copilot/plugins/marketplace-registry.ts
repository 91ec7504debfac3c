import { HostError } from "../../../base/errors.ts";
import type { ListedPlugin, ReadMarketplace, StoredEntry } from "../../../plugin-host/bundles/read-marketplace.ts";

/** A plugin marketplace in a folder of this machine. */
export interface KnownMarketplace {
  readonly name: string;
  readonly folder: string;
}

/** The marketplaces that a user added through clients. Each is read from its folder when it is used. */
export class MarketplaceRegistry {
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
