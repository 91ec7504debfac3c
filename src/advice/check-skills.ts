import { basename } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { type ModuleSource, parseModule } from "../formats/modules/module-source.ts";
import { withLint } from "../formats/skills/lint-skill-document.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { readTextFile } from "../io/read-bounded.ts";
import type { SchemaTarget } from "../models/schema-rules.ts";
import { loadSkill, type Staged } from "../skills/load/load-skill.ts";
import { createModuleRunner } from "../skills/load/stage-tool.ts";
import { listToolEntries, moduleExtensions } from "../skills/load/tool-entries.ts";
import { type ConflictRules, resolveOverrides } from "../skills/resolve-overrides.ts";
import type { LoadedFolder, RootListing } from "../skills/skill.ts";
import { FolderListing } from "../skills/store/folder-listing.ts";
import { discoverRoot } from "../skills/store/skill-roots.ts";
import { type AdvisedEntry, adviseSkill, isOwnModule, placesOf } from "./advise-skill.ts";
import { adviseTargets } from "./advise-targets.ts";
import { lintSkillFolder } from "./lint-skill-folder.ts";
import { createPythonInspector, createStaticRunner, type InspectPython } from "./static-runner.ts";

export interface CheckOptions {
  /** Resolved skill folders or folders of skills, as in the options of a host. */
  readonly roots: readonly string[];
  /** Roots that may be missing without a report. */
  readonly optionalRoots?: ReadonlySet<string>;
  /** Parses and resolves modules without running them. */
  readonly loader: ModuleLoader;
  readonly hostVersion: string;
  /** Also checks SKILL.md against the specification. */
  readonly strict: boolean;
  /** Also loads the modules, which runs their code. */
  readonly runs?: boolean;
  /** The time limit for loading a module, in milliseconds, default 60,000. */
  readonly importTimeout?: number;
  /** Parses tools in Python. Absent: the configuration has no runner for them. */
  readonly inspectPython?: InspectPython | undefined;
  /** Compares the tools with what these APIs take. */
  readonly targets?: readonly SchemaTarget[];
  readonly disabledSkills?: readonly string[];
  readonly conflicts?: ConflictRules;
  readonly signal: AbortSignal;
}

interface CheckedSkill {
  readonly name: string;
  readonly folder: string;
  /** The tools with statically known names. */
  readonly tools: readonly string[];
  /** Its modules and Python files that were not run, so that load errors are unknown. */
  readonly unrun: readonly string[];
  /** Those with computed tools, whose names are unknown. */
  readonly computed: readonly string[];
}

export interface CheckReport {
  readonly skills: readonly CheckedSkill[];
  /** Sorted by file and position; `source` is the skill. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Reports problems of skills and suggests improvements, without running their code. Never rejects because of the content of skills. */
export async function checkSkills(options: CheckOptions): Promise<CheckReport> {
  const listings = options.roots.map((root) => discoverRoot(root));
  const folders = new Map<string, LoadedFolder>();
  const skills: CheckedSkill[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const folder of new Set(listings.flatMap((listing) => listing.folders))) {
    options.signal.throwIfAborted();
    const checked = await checkSkill(folder, options);
    if (checked === undefined) continue;
    skills.push(checked.skill);
    diagnostics.push(...checked.diagnostics);
    folders.set(folder, checked.loaded);
  }
  diagnostics.push(...clashes(listings, folders, options));
  return { skills, diagnostics: inOrder(diagnostics) };
}

interface Checked {
  readonly skill: CheckedSkill;
  readonly diagnostics: readonly Diagnostic[];
  readonly loaded: LoadedFolder;
}

async function checkSkill(folder: string, options: CheckOptions): Promise<Checked | undefined> {
  const { loader, hostVersion, signal, runs = false, importTimeout = 60_000 } = options;
  const parse = createParser();
  const computed: string[] = [];
  const onUnknown = (file: string): void => void computed.push(file);
  const runners = [
    runs ? createModuleRunner(loader) : createStaticRunner(loader, parse, onUnknown),
    ...(options.inspectPython ? [createPythonInspector(options.inspectPython, onUnknown)] : []),
  ];
  const limits: Diagnostic[] = [];
  const listing = new FolderListing(folder, { onLimit: (problem) => void (problem && limits.push(problem)) });
  const staged = await loadSkill(folder, undefined, new Set(), {
    loader,
    runners,
    hostVersion,
    importTimeout,
    signal,
    listing,
    seen: () => {},
  });
  if (staged.kind === "absent") return undefined;
  // Listing a folder reports content beyond its limits.
  void listing.files;
  const skill = staged.kind === "ready" ? staged.generation.skill : undefined;
  const own = staged.kind === "ready" ? staged.generation.diagnostics : staged.diagnostics;
  const name = skill?.name ?? basename(folder);
  const entries = staged.kind === "ready" ? advisedEntries(folder, staged) : [];
  const tools = (skill?.tools ?? []).map(({ definition, origin }) => ({ definition, file: origin.file }));
  const { targets = [] } = options;
  const advice = [...adviseSkill(entries, parse), ...(targets.length === 0 ? [] : adviseTargets(tools, placesOf(entries, parse), targets))];
  const modules =
    staged.kind === "ready"
      ? staged.generation.units.flatMap((unit) => [...unit.files].filter((file) => isOwnModule(file) || isPython(file)))
      : [];
  if (staged.kind === "ready") await Promise.all(staged.generation.units.map((unit) => unit.retire()));
  const linted = options.strict ? withLint(own, lintSkillFolder(folder)) : own;
  return {
    skill: {
      name,
      folder,
      tools: skill?.tools.map((tool) => tool.definition.name) ?? [],
      unrun: [...new Set(runs ? modules.filter(isPython) : modules)],
      computed,
    },
    diagnostics: [...linted, ...limits, ...advice].map((diagnostic) => ({ source: name, ...diagnostic })),
    loaded: { folder, ...(skill && { skill }), diagnostics: [], stale: false },
  };
}

function isPython(file: string): boolean {
  return file.endsWith(".py");
}

function advisedEntries(folder: string, { generation }: Extract<Staged, { kind: "ready" }>): readonly AdvisedEntry[] {
  const { manifest, manifestFile } = generation.text;
  const files = new Map(generation.units.map((unit) => [unit.key, unit.files]));
  const { entries } = listToolEntries(folder, manifest ?? {}, moduleExtensions, manifestFile);
  return entries.flatMap((entry) => {
    const own = files.get(entry.key);
    return own ? [{ entry, files: own }] : [];
  });
}

/** Parses each file once, for all its tools. */
export function createParser(): (file: string) => ModuleSource | undefined {
  const parsed = new Map<string, ModuleSource | undefined>();
  return (file) => {
    if (!parsed.has(file)) {
      const read = readTextFile(file, maxDocumentBytes);
      parsed.set(file, read.ok ? parseModule(file, read.text) : undefined);
    }
    return parsed.get(file);
  };
}

function clashes(
  listings: readonly RootListing[],
  folders: ReadonlyMap<string, LoadedFolder>,
  options: CheckOptions,
): readonly Diagnostic[] {
  const roots = new Map(listings.map((listing) => [listing.root, listing]));
  const view = {
    roots: options.roots,
    ...(options.optionalRoots && { optionalRoots: options.optionalRoots }),
    disabledSkills: new Set(options.disabledSkills),
    conflicts: options.conflicts ?? "override",
  };
  // A missing requirement may be installed where the skill is used.
  return resolveOverrides({ roots, folders }, view).diagnostics.map((found) =>
    found.code === "SKILL_REQUIRES" ? { ...found, severity: "warning" } : found,
  );
}

/** Sorted by file and position; duplicates of shared code are removed. */
function inOrder(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const distinct = [...new Map(diagnostics.map((diagnostic) => [JSON.stringify(diagnostic), diagnostic])).values()];
  const keyOf = ({ file = "", range }: Diagnostic): readonly [string, number, number] => [
    file,
    range?.start.line ?? 0,
    range?.start.column ?? 0,
  ];
  return distinct.sort((a, b) => {
    const [one, other] = [keyOf(a), keyOf(b)];
    return one[0] === other[0] ? one[1] - other[1] || one[2] - other[2] : one[0] < other[0] ? -1 : 1;
  });
}
