import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type CheckReport, checkSkills } from "../../advice/check-skills.ts";
import type { InspectPython } from "../../advice/static-runner.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { packageVersion } from "../../base/package-root.ts";
import { counted } from "../../base/text.ts";
import { type ResolvedHostOptions, resolveHostOptions } from "../../host/host-options.ts";
import { createModuleLoader } from "../../io/module-loader/create-module-loader.ts";
import { type SchemaTarget, schemaTargets } from "../../models/schema-rules.ts";
import { importBundled, pythonPlugin } from "../../plugin-host/bundled.ts";
import type { Bundle } from "../../plugin-host/bundles/bundle.ts";
import { hasManifest, isBundleFolder, loadBundle } from "../../plugin-host/bundles/load-bundle.ts";
import { entryOf, type ReadMarketplace, readMarketplace } from "../../plugin-host/bundles/read-marketplace.ts";
import { providedModules } from "../../skills/load/tool-module.ts";
import { fixedPart } from "../../skills/store/skill-roots.ts";
import { findCallProblems } from "../call-problems.ts";
import { usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { deeperSkillsIn, named } from "../describe.ts";
import { toHostOptions } from "../open-host.ts";
import type { Output } from "../output.ts";
import { requireConsent } from "../project-consent.ts";

interface CheckCommandOptions {
  readonly strict?: boolean;
  /** Also loads modules, which runs their code. */
  readonly run?: boolean;
  /** Names of APIs, separated by commas. */
  readonly target?: readonly string[];
}

/** Checks skills; runs their code only with `run`. The exit code is 1 for errors, with `strict` also for warnings. */
export async function check(
  given: CommandContext,
  directories: readonly string[],
  { strict = false, run: runs = false, target = [] }: CheckCommandOptions,
): Promise<number> {
  const targets = readTargets(target);
  const context = runs ? await requireConsent(given, { directories }) : given;
  const { io, out } = context;
  const options = resolveHostOptions(toHostOptions(context, directories, false));
  const { disabledSkills, conflicts } = options;
  const { roots: found, bundles, marketplaces, diagnostics: ofBundles } = findBundles(options);
  const deeper = deeperSkillsIn(bundles.length + marketplaces.length === 0 ? found : [], out);
  const roots = [...found, ...deeper.flatMap(({ parents }) => parents)];
  // Imports of this package must resolve as they do in a host.
  const loader = createModuleLoader({ ...providedModules, guardExit: runs });
  try {
    const report = await checkSkills({
      roots,
      optionalRoots: new Set(roots),
      loader,
      hostVersion: packageVersion,
      strict,
      runs,
      inspectPython: await pythonInspector(context),
      targets,
      disabledSkills,
      conflicts,
      signal: io.signal,
    });
    const looked = report.skills.length + bundles.length + marketplaces.length;
    const named = isNamed(context, directories) ? roots : roots.filter((root) => looked === 0 || existsSync(fixedPart(root)));
    const diagnostics = [
      ...missingRoots(named, looked, out),
      ...ofBundles,
      ...deeper.map(({ parents: _parents, ...hint }) => hint),
      ...report.diagnostics,
      ...report.skills.flatMap(findCallProblems),
    ];
    const ok = !diagnostics.some(({ severity }) => severity === "error" || (strict && severity === "warning"));
    const tools = report.skills.reduce((sum, skill) => sum + skill.tools.length, 0);
    if (out.isJson)
      out.envelope({
        ok,
        data: {
          skills: report.skills,
          ...(bundles.length > 0 && { plugins: bundles.map(describeBundle) }),
          ...(marketplaces.length > 0 && { marketplaces: marketplaces.map(describeMarketplace) }),
          counts: { skills: report.skills.length, tools, ...count(diagnostics) },
        },
        diagnostics,
      });
    else print({ report, tools, bundles, diagnostics }, out);
    return ok ? 0 : 1;
  } finally {
    loader[Symbol.dispose]();
  }
}

function readTargets(given: readonly string[]): readonly SchemaTarget[] {
  const names = given.flatMap((names) => names.split(",")).map((name) => name.trim());
  const bad = names.find((name) => !(schemaTargets as readonly string[]).includes(name));
  if (bad !== undefined) throw usageError(`--target ${JSON.stringify(bad)}: the targets are ${schemaTargets.join(", ")}.`);
  return [...new Set(names)] as readonly SchemaTarget[];
}

/** Parses Python if the configuration names the plugin that runs it. The plugin's own configuration is ignored. */
async function pythonInspector({ config }: CommandContext): Promise<InspectPython | undefined> {
  const isNamed = (config.plugins ?? []).some((plugin) => (typeof plugin === "string" ? plugin : plugin.use) === pythonPlugin);
  if (!isNamed) return undefined;
  return (await importBundled(pythonPlugin))["inspectPython"] as InspectPython;
}

/** Whether directories are named. The default folder need not exist. */
function isNamed({ options, config }: CommandContext, directories: readonly string[]): boolean {
  return directories.length > 0 || options.skills !== undefined || config.skillDirectories !== undefined;
}

/** A check of nothing must fail: users rely on a passed check. */
function missingRoots(roots: readonly string[], looked: number, out: Output): readonly Diagnostic[] {
  const found = roots.flatMap((root) => rootFault(fixedPart(root)) ?? []);
  if (found.length > 0 || looked > 0) return found;
  const message = `No skills found in ${roots.map(out.path).join(", ")}. Create one with "skillhost new skill <name>".`;
  return [{ severity: "error", code: "SKILLS_NONE", message }];
}

function rootFault(root: string): Diagnostic | undefined {
  const stats = statSync(root, { throwIfNoEntry: false });
  const file = root;
  if (stats === undefined) {
    const message = 'This directory does not exist. Check the path, or create a skill with "skillhost new skill <name>".';
    return { severity: "error", code: "SKILLS_DIRECTORY_MISSING", file, message };
  }
  if (stats.isDirectory()) return undefined;
  return {
    severity: "error",
    code: "SKILLS_NOT_DIRECTORY",
    file,
    message: "This is not a directory. Pass the skill's folder, or a folder that contains skill folders.",
  };
}

function describeBundle({ name, version, dialect, folder, skills, agents, commands, hooks, mcpServers }: Bundle): object {
  const servers = [...mcpServers.keys()];
  const events = hooks.map(({ event }) => event);
  const names = { agents: agents.map((agent) => agent.name), commands: commands.map((command) => command.name) };
  return { name, ...(version !== undefined && { version }), dialect, folder, skills, ...names, hooks: events, mcpServers: servers };
}

function describeMarketplace({ name, file, plugins }: ReadMarketplace): object {
  return { name, file, plugins: plugins.map(({ components: _components, ...plugin }) => plugin) };
}

interface Findings {
  readonly report: CheckReport;
  readonly tools: number;
  readonly bundles: readonly Bundle[];
  readonly diagnostics: readonly Diagnostic[];
}

function print({ report, tools, bundles, diagnostics }: Findings, out: Output): void {
  for (const diagnostic of diagnostics) out.line(out.diagnostic(diagnostic));
  if (diagnostics.length > 0) out.line();
  const { errors, warnings, infos } = count(diagnostics);
  const found = [
    errors > 0 && counted(errors, "error"),
    warnings > 0 && counted(warnings, "warning"),
    infos > 0 && counted(infos, "hint"),
  ].filter((part) => part !== false);
  const parts = [...(bundles.length > 0 ? [counted(bundles.length, "plugin")] : []), counted(report.skills.length, "skill")];
  const what = `${parts.join(", ")} and ${counted(tools, "tool")} checked`;
  const python = report.skills.flatMap((skill) => skill.unrun).filter((file) => file.endsWith(".py")).length;
  const unrun = report.skills.reduce((sum, skill) => sum + skill.unrun.length, 0) - python;
  const nothing = unrun + python > 0 ? "no problems found without running code" : "no problems found";
  out.line(found.length === 0 ? `${what}: ${nothing}.` : `${what}: ${found.join(", ")}.`);
  if (unrun > 0)
    out.line(`${counted(unrun, "module")} not run. Use "skillhost check --run" to see whether ${unrun === 1 ? "it loads" : "they load"}.`);
  if (python > 0)
    out.line(
      `${counted(python, "Python file")} parsed but not run. "skillhost list" runs ${python === 1 ? "it" : "them"} and shows whether ${python === 1 ? "it loads" : "they load"}.`,
    );
  const computed = report.skills.flatMap((skill) => skill.computed);
  if (computed.length > 0) out.line(`These modules compute their definitions: ${named(computed.map(out.path))}.`);
}

function count(diagnostics: readonly Diagnostic[]): { readonly errors: number; readonly warnings: number; readonly infos: number } {
  const of = (severity: Diagnostic["severity"]): number => diagnostics.filter((diagnostic) => diagnostic.severity === severity).length;
  return { errors: of("error"), warnings: of("warning"), infos: of("info") };
}

interface BundlesToCheck {
  readonly bundles: readonly Bundle[];
  readonly marketplaces: readonly ReadMarketplace[];
  /** The folders to check for skills: the named ones, and those of their bundles. */
  readonly roots: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

type Options = Pick<ResolvedHostOptions, "roots" | "plugins" | "workingDirectory" | "pluginDataDirectory" | "log">;

/**
 * Finds bundles among the folders to check, those that the configuration names as plugins, and those inside a marketplace. Reads them
 * without writing or running anything. A folder may match several of these and contain skills too.
 */
function findBundles({ roots, plugins, workingDirectory, pluginDataDirectory, log }: Options): BundlesToCheck {
  const options = { workingDirectory, dataDirectory: pluginDataDirectory, log, isDry: true };
  const marketplaces = roots.flatMap((root) => readMarketplace(root) ?? []);
  const listed = marketplaces.flatMap((marketplace) =>
    marketplace.plugins.flatMap((plugin) =>
      plugin.folder === undefined ? [] : [loadBundle(plugin.folder, { ...options, listed: entryOf(marketplace, plugin) })],
    ),
  );
  const configured = plugins.flatMap((plugin) => folderOf(plugin, workingDirectory) ?? []).filter(isBundleFolder);
  const known = new Set(listed.map(({ folder }) => folder));
  const others = [...new Set([...roots.filter(hasManifest), ...configured])].map((folder) => loadBundle(folder, options));
  const bundles = [...listed, ...others.filter(({ folder }) => !known.has(folder))];
  return {
    bundles,
    marketplaces,
    roots: [...new Set([...roots, ...bundles.flatMap(({ skillDirectories }) => skillDirectories)])],
    diagnostics: distinct([...marketplaces, ...bundles].flatMap(({ diagnostics }) => diagnostics)),
  };
}

/** Plugins that share a folder repeat its diagnostics. */
function distinct(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const keyOf = ({ source: _source, ...rest }: Diagnostic): string => JSON.stringify(rest);
  return [...new Map(diagnostics.map((diagnostic) => [keyOf(diagnostic), diagnostic])).values()];
}

function folderOf(plugin: ResolvedHostOptions["plugins"][number], workingDirectory: string): string | undefined {
  const specifier = typeof plugin === "object" && "use" in plugin ? plugin.use : plugin;
  if (typeof specifier !== "string") return undefined;
  if (/^~[/\\]/.test(specifier)) return join(homedir(), specifier.slice(2));
  return /^(?:\.{1,2}(?:[/\\]|$)|[/\\]|[a-zA-Z]:[\\/])/.test(specifier) ? resolve(workingDirectory, specifier) : undefined;
}
