import { createHash } from "node:crypto";
import { isAbsolute } from "node:path";
import { type Diagnostic, formatDiagnostic } from "../../../base/diagnostic.ts";
import { errorMessage } from "../../../base/errors.ts";
import { badParams } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import { type InstalledPlugin, localFolder, type PluginLibrary, sourceIdOf } from "../plugins/plugin-library.ts";
import { findSession, loadClientPlugins, reloadPlugins } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The plugins of the host and of sessions, those that users install through clients, and their marketplaces. */
export const plugins: MethodFamily = {
  async "plugins.list"(call) {
    const { plugins: installed } = await call.server.pluginLibrary();
    return { plugins: [...(await listOfHost(call)), ...installed.map(describePlugin)] };
  },
  async "session.plugins.list"(call) {
    const session = findSession(call.server, call.params);
    return { plugins: [...(await listOfHost(call)), ...session.plugins.listed] };
  },
  async "session.plugins.reload"({ server, params }) {
    const session = findSession(server, params);
    const wants = (flag: string): boolean => params.optionalFlag(flag) ?? true;
    const reload = { servers: wants("reloadMcp"), agents: wants("reloadCustomAgents"), hooks: wants("reloadHooks") };
    const withExtensions = wants("reloadExtensions");
    await reloadPlugins(server, session, reload);
    if (withExtensions) await session.extensions?.reload();
    return null;
  },
  // Hooks are those of plugins: projects and the user's settings have none.
  async "hooks.discover"({ server, params }) {
    const projects = params.texts("projectPaths");
    const places = params.flag("excludeHostHooks") ? [] : projects.length === 0 ? [undefined] : projects;
    const found = await Promise.all(places.map((projectPath) => discoverHooks(server, projectPath)));
    const diagnostics = found.flatMap((one) => one.diagnostics);
    const saidOf = (wanted: string): readonly string[] => [
      ...new Set(diagnostics.filter(({ severity }) => severity === wanted).map(formatDiagnostic)),
    ];
    return { hooks: found.flatMap(({ hooks }) => hooks), warnings: saidOf("warning"), errors: saidOf("error") };
  },
  "plugins.builtin.set"({ server, params }) {
    const paths = params.texts("paths");
    const relative = paths.find((path) => !isAbsolute(path));
    if (relative !== undefined) throw badParams(params.method, `${JSON.stringify(relative)} is not an absolute path.`);
    server.builtinPlugins = paths;
  },
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
      // A marketplace is read from its folder on each request, so a refresh only checks that this works.
      return marketplaces.browse(name).then(
        () => ({ name, success: true }),
        (error: unknown) => ({ name, success: false, error: errorMessage(error) }),
      );
    });
    return { results: await Promise.all(results) };
  },
};

async function listOfHost({ server }: Call): Promise<readonly object[]> {
  const host = await server.host();
  return host.plugins.map(({ name, version, state }) => ({
    name,
    marketplace: "",
    ...(version !== undefined && { version }),
    enabled: state === "active",
  }));
}

/** The hooks that a session in a project has. Undefined: in any. */
async function discoverHooks(
  server: ServerContext,
  projectPath: string | undefined,
): Promise<{ readonly hooks: readonly object[]; readonly diagnostics: readonly Diagnostic[] }> {
  using plugins = await loadClientPlugins(server, [], projectPath);
  const hooks = plugins.hooks.map(({ name, folder, command }, index) => {
    const hash = createHash("sha256").update(JSON.stringify([projectPath, folder, index, command]));
    const at = projectPath === undefined ? {} : { projectPath };
    return { id: hash.digest("hex").slice(0, 32), hookType: command.moment, origin: "plugin", source: name, ...at, enabled: true };
  });
  return { hooks, diagnostics: plugins.diagnostics };
}

/** A plugin in the form of the protocol. */
function describePlugin(plugin: InstalledPlugin): object {
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
