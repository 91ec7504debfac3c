import { errorMessage } from "../../../base/errors.ts";
import { type InstalledPlugin, localFolder, type PluginLibrary, sourceIdOf } from "../plugins/plugin-library.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Plugins that users install through clients, and the marketplaces that they come from. */
export const library: MethodFamily = {
  async "plugins.install"(call) {
    const { plugin, skillCount } = await (await libraryOf(call)).install(call.params.text("source"), await folderOf(call));
    return { plugin: describePlugin(plugin), skillsInstalled: skillCount };
  },
  async "plugins.uninstall"(call) {
    await (await libraryOf(call)).uninstall(call.params.text("name"), call.params.optionalText("directSourceId"));
  },
  async "plugins.update"(call) {
    return describeUpdate(await (await libraryOf(call)).update(call.params.text("name")));
  },
  async "plugins.updateAll"(call) {
    const own = await libraryOf(call);
    const results: object[] = [];
    for (const plugin of own.plugins) {
      const { name, marketplace } = plugin;
      const spec = marketplace === "" ? name : `${name}@${marketplace}`;
      const outcome = await own.update(spec).then(
        (done) => ({ success: true, ...describeUpdate(done) }),
        (error: unknown) => ({ success: false, error: errorMessage(error) }),
      );
      results.push({ name, marketplace, ...outcome });
    }
    return { results };
  },
  async "plugins.enable"(call) {
    await (await libraryOf(call)).setEnabled(call.params.texts("names"), true);
  },
  async "plugins.disable"(call) {
    await (await libraryOf(call)).setEnabled(call.params.texts("names"), false);
  },
  async "plugins.marketplaces.list"(call) {
    const { marketplaces } = await libraryOf(call);
    return { marketplaces: marketplaces.all.map(({ name, folder }) => ({ name, source: `Local: ${folder}` })) };
  },
  async "plugins.marketplaces.add"(call) {
    const { marketplaces } = await libraryOf(call);
    return { name: await marketplaces.add(localFolder(call.params.text("source"), await folderOf(call))) };
  },
  async "plugins.marketplaces.browse"(call) {
    const plugins = await (await libraryOf(call)).marketplaces.browse(call.params.text("name"));
    return { plugins: plugins.map(({ name, description }) => ({ name, ...(description !== undefined && { description }) })) };
  },
  async "plugins.marketplaces.remove"(call) {
    const own = await libraryOf(call);
    const name = call.params.text("name");
    const dependentPlugins = own.plugins.filter(({ marketplace }) => marketplace === name).map((plugin) => plugin.name);
    if (dependentPlugins.length > 0 && !call.params.flag("force")) return { removed: false, dependentPlugins };
    for (const plugin of dependentPlugins) await own.uninstall(`${plugin}@${name}`);
    await own.marketplaces.remove(name);
    return { removed: true };
  },
  async "plugins.marketplaces.refresh"(call) {
    const { marketplaces } = await libraryOf(call);
    const wanted = call.params.optionalText("name");
    const names = wanted === undefined ? marketplaces.all.map(({ name }) => name) : [wanted];
    const results = names.map(async (name) => {
      // They are read from their folders whenever somebody looks: what is left to find out is whether they can be.
      return marketplaces.browse(name).then(
        () => ({ name, success: true }),
        (error: unknown) => ({ name, success: false, error: errorMessage(error) }),
      );
    });
    return { results: await Promise.all(results) };
  },
};

/** A plugin as clients list it. */
export function describePlugin(plugin: InstalledPlugin): object {
  const { name, marketplace, version, enabled } = plugin;
  const directSourceId = sourceIdOf(plugin);
  return { name, marketplace, ...(directSourceId !== undefined && { directSourceId }), ...(version !== undefined && { version }), enabled };
}

function describeUpdate({ plugin, skillCount, previousVersion }: Awaited<ReturnType<PluginLibrary["update"]>>): object {
  return {
    ...(previousVersion !== undefined && { previousVersion }),
    ...(plugin.version !== undefined && { newVersion: plugin.version }),
    skillsInstalled: skillCount,
  };
}

function libraryOf({ server }: Call): Promise<PluginLibrary> {
  return server.pluginLibrary();
}

async function folderOf({ server, params }: Call): Promise<string> {
  return params.optionalText("workingDirectory") ?? (await server.host()).workingDirectory;
}
