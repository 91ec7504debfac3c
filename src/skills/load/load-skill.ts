import { realpathSync, type Stats } from "node:fs";
import { join } from "node:path";
import { canonicalJson } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { judgeRange } from "../../base/version-range.ts";
import { WorkSlices } from "../../base/wait.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import type { FileGuard } from "../../io/read-bounded.ts";
import type { Tool } from "../../tools/tool.ts";
import type { CheckedFolder, FolderView } from "../../trust/checked-folder.ts";
import { isBelowNodeModules } from "../../trust/installed-packages.ts";
import type { Pins } from "../../trust/pins/pins.ts";
import { isCopiedSkill } from "../../trust/skill-origin.ts";
import type { Admission, SkillTrust, TrustState } from "../../trust/skill-trust.ts";
import { sourceIdentity } from "../../trust/source-identity.ts";
import { scopeOfFolder } from "../../trust/trust-policy.ts";
import { assembleSkillOffers } from "../prompts/skill-prompts.ts";
import type { FolderListing } from "../store/folder-listing.ts";
import { createSkill } from "./create-skill.ts";
import { type Generation, losesSomething } from "./judge-reload.ts";
import { readSkill, type SkillText } from "./read-skill.ts";
import { type HeldTool, judgeTools, type SkillStanding } from "./skill-definitions.ts";
import { existsAt, isSkillFolder, viewFolder } from "./skill-path.ts";
import { type StageContext, stageTool, type ToolUnit } from "./stage-tool.ts";
import { isPlainListing, type RecalledSkill, type SkillTexts } from "./text-cache.ts";
import { listToolEntries, type ToolEntries, type ToolEntry } from "./tool-entries.ts";
import { isScript } from "./tool-module.ts";
import type { ToolRunner } from "./tool-runner.ts";

/** The trust result of an attempt: the state of the folder, and the tools that wait for approval. */
export interface TrustFindings {
  readonly trust?: TrustState | undefined;
  readonly held?: readonly HeldTool[] | undefined;
}

/** The outcome of an attempt to load a folder. A rejected attempt has already disposed of what it created. */
export type Staged =
  | { readonly kind: "absent" }
  /** Ready to be used; `replaced` are the units of the previous generation that this one does not contain. */
  | ({
      readonly kind: "ready";
      readonly generation: Generation;
      readonly replaced: readonly ToolUnit[];
      /** The checked view of the folder, if it was checked; must be released. */
      readonly view?: FolderView | undefined;
      /**
       * The states of the listed folders, if they and the files that were seen are all that the outcome depends on: an equal state of
       * these means an equal outcome.
       */
      readonly listed?: ReadonlyMap<string, Stats> | undefined;
    } & TrustFindings)
  | ({
      readonly kind: "rejected";
      readonly diagnostics: readonly Diagnostic[];
      readonly files: ReadonlySet<string>;
      /** Whether the folder is untrusted: nothing of it may be used, including what was loaded before. */
      readonly isUntrusted?: boolean | undefined;
      /** Whether the reason lies outside of the folder, so that the same files may load later. */
      readonly isPassing?: boolean | undefined;
    } & TrustFindings);

interface LoadSkillOptions {
  readonly loader: ModuleLoader;
  readonly runners: readonly ToolRunner[];
  /** False: runners only find what modules define, and no handler is created. Default: true. */
  readonly mayRun?: boolean | undefined;
  readonly hostVersion: string;
  readonly importTimeout: number;
  readonly signal: AbortSignal;
  /** The number of the folder's latest generation, active or not. Absent: there was none. */
  readonly lastGeneration?: number;
  /** The files of the folder. */
  readonly listing: FolderListing;
  /** Called when a resource list of one of the skill's modules was replaced. */
  onResourcesChanged?(): void;
  /** Called for each text file that was read, with its content, its state before it was read, and its hash, where known. Returns its hash. */
  seen(file: string, bytes: Uint8Array, stats?: Stats, hash?: string): string | undefined;
  /** What a cache knows of skills. Absent: every file is parsed. */
  readonly texts?: SkillTexts | undefined;
  /** Decides what may be loaded. Absent: everything may. */
  readonly trust?: SkillTrust | undefined;
  /** Decides which definitions of tools are offered. */
  pinsOf?(folder: string): Pins | undefined;
}

/**
 * Loads a folder beside the active generation. Units without changed files are carried over. The outcome is all or nothing: if an error
 * would remove something that works now, the attempt is rejected and what it created is disposed of. A first load has nothing to lose, so
 * its working parts are used.
 */
export async function loadSkill(
  folder: string,
  before: Generation | undefined,
  changed: ReadonlySet<string>,
  options: LoadSkillOptions,
): Promise<Staged> {
  const start = Date.now();
  // A folder whose code may not run is always read.
  const recalled = options.mayRun === false ? undefined : options.texts?.recall(folder);
  const now = recalled === undefined ? viewFolder(folder) : undefined;
  const admission = options.trust?.admit(folder);
  const { seen } = options;
  if (admission === undefined) return stageSkill(folder, before, changed, options, { start, seen, listed: now, recalled });
  const { state: trust, diagnostics, files } = admission;
  if (admission.kind === "refused")
    return isSkillFolder(folder) ? { kind: "rejected", diagnostics, files, trust, isUntrusted: true } : { kind: "absent" };
  let isTaken = false;
  try {
    const { view, guard, tree } = admission;
    const checked = {
      start,
      seen: ((file, bytes, stats, hash) => seen(file, bytes, stats, view?.hashOf(file) ?? hash)) satisfies LoadSkillOptions["seen"],
      admission,
      listed: view ?? now,
      view,
      guard,
      tree,
    };
    // A signed folder is always read.
    const known = view === undefined && guard === undefined ? recalled : undefined;
    const staged = await stageSkill(folder, before, changed, options, { ...checked, recalled: known });
    isTaken = staged.kind === "ready";
    return staged.kind === "absent" ? staged : { ...staged, trust };
  } finally {
    admission.conclude(isTaken);
    if (!isTaken) admission.view?.release();
  }
}

/** How the files of a folder are read. */
interface FolderReading extends Pick<LoadSkillOptions, "seen"> {
  readonly admission?: Admission;
  /** A time before the folder was listed, in milliseconds of `Date.now()`. */
  readonly start: number;
  /** The text of the skill, if a cache knows it. Then the folder need not be listed. */
  readonly recalled?: RecalledSkill | undefined;
  /** The folder as listed a moment ago, for what is read before any code runs. */
  readonly listed?: FolderView | undefined;
  readonly guard?: FileGuard | undefined;
  readonly view?: FolderView | undefined;
  readonly tree?: CheckedFolder | undefined;
}

async function stageSkill(
  folder: string,
  before: Generation | undefined,
  changed: ReadonlySet<string>,
  options: LoadSkillOptions,
  reading: FolderReading,
): Promise<Staged> {
  const { admission, listed: shown, recalled, seen, guard, view, tree } = reading;
  const extensions = options.runners.flatMap((runner) => runner.extensions);
  if (recalled !== undefined) seen(recalled.file, nothingRead, recalled.stats, recalled.digest);
  const text = recalled?.text ?? readSkill(folder, seen, extensions, guard, shown);
  if (text === undefined) return { kind: "absent" };
  let files = admission === undefined ? text.files : new Set([...text.files, ...admission.files]);
  const renamed = admission?.identityFault(text.name, text.manifest?.version);
  const ofTrust = [...(admission?.diagnostics ?? []), ...(renamed ? [renamed] : [])].map((each) => ({ source: text.name, ...each }));
  if (renamed?.severity === "error") return { kind: "rejected", diagnostics: ofTrust, files, isUntrusted: true };
  const refused = checkEngines(text, options.hostVersion);
  const found = recalled === undefined ? listEntries(folder, text, extensions, { refused, view: shown }) : noEntries;
  const mayHoldScripts = text.manifest === undefined && found.entries.length > 0;
  const listed = mayHoldScripts ? await withoutScripts(found, before, { source: text.name, guard }) : found;
  const generation = (options.lastGeneration ?? 0) + 1;
  const real = realPathOf(folder);
  const identity = sourceIdentity(folder, { signedBy: signerOf(admission), real });
  const declared = text.manifest?.permissions;
  // Only what runs has use for it.
  const mayDeclare = declared === undefined && listed.entries.length > 0;
  const isForeign = mayDeclare && (text.document?.allowedTools !== undefined || existsAt(join(folder, "agents"), shown));
  const foreign = isForeign
    ? (await import("./foreign-declaration.ts")).readForeignDeclaration(folder, text, { seen, guard, view: shown })
    : undefined;
  if (foreign !== undefined && foreign.files.size > 0) files = new Set([...files, ...foreign.files]);
  const permissions = declared ?? foreign?.permissions;
  const mayRun = options.mayRun ?? true;
  // Units created under another consent are created again and are not compared.
  const comparable = before?.skill.mayRun === mayRun ? before : undefined;
  // Units from other signed files cannot be reused, and the declared permissions decide what a tool may do.
  const isSameSource =
    comparable?.skill.name === text.name &&
    comparable.identity === identity &&
    comparable.tree === tree &&
    canonicalJson(comparable.skill.permissions ?? null) === canonicalJson(permissions ?? null);
  const kept = isSameSource ? comparable.units.filter((unit) => isUntouched(unit, changed)) : [];
  const standing = standingOf(real, admission);
  // Copied code is as much a stranger's as that of packages.
  const scope = standing.scope !== undefined && listed.entries.length > 0 && isCopiedSkill(real) ? "package" : standing.scope;
  const isTextOnly = listed.entries.length === 0;
  // Thousands of skills have nothing to run: what only tools need is not made for them.
  const context = (): StageContext => ({
    ...options,
    seen,
    guard,
    view,
    tree,
    standing,
    permissions,
    target: {
      skill: { name: text.name, folder, identity },
      generation,
      onResourcesChanged: () => options.onResourcesChanged?.(),
      checked: tree,
      permissions,
      scope,
    },
  });
  const units = isTextOnly ? [] : await stageUnits(listed.entries, kept, context());
  const { tools: all, twins } = withoutTwins(units, text.name);
  const written = new Set(units.flatMap((unit) => (isWritten(unit) && !kept.includes(unit) ? unit.tools : [])));
  const uses = usesByTool(units);
  const place = { folder, name: text.name, admission, written, uses, pins: options.pinsOf?.(folder) };
  const { tools, leftOut, held, ...judged } = await judgeTools(all, place);
  const offers = assembleSkillOffers(folder, text, units);
  // What holds for the whole skill is found with each of its modules.
  const ofUnits = [...new Map(units.flatMap((unit) => unit.diagnostics).map((each) => [canonicalJson(each), each])).values()];
  const diagnostics = [
    ...ofTrust,
    ...text.diagnostics,
    ...(foreign?.diagnostics.map((each) => ({ source: text.name, ...each })) ?? []),
    ...listed.diagnostics,
    ...ofUnits,
    ...twins,
    ...offers.diagnostics,
    ...judged.diagnostics,
  ];
  const isUseless = refused !== undefined || (text.document === undefined && text.manifest === undefined);
  if (options.signal.aborted || isUseless || (comparable && losesSomething(comparable, { text, listed, units, tools, leftOut, offers }))) {
    await discard(
      units.filter((unit) => !kept.includes(unit)),
      options.loader,
    );
    return { kind: "rejected", diagnostics, files: new Set([...files, ...units.flatMap((unit) => [...unit.files])]), held };
  }
  const isUnbound = view === undefined && found.entries.length === 0 && !isBelowNodeModules(real);
  const isPlain = isUnbound && (recalled !== undefined || isPlainText(text, shown));
  if (isPlain && mayRun) keepText(folder, text, options.texts, reading);
  const skill = createSkill(folder, {
    text,
    permissions,
    tools,
    uses,
    offers,
    listing: options.listing,
    generation,
    mayRun,
    scope,
    tree,
  });
  const replaced = before?.units.filter((unit) => !units.includes(unit)) ?? [];
  return {
    kind: "ready",
    generation: { skill, identity, text, units, files, diagnostics, tree },
    replaced,
    held,
    view,
    ...(isPlain && { listed: recalled?.listed ?? shown?.states }),
  };
}

const nothingRead = new Uint8Array();
const noEntries: ToolEntries = Object.freeze({ entries: [], diagnostics: [], lost: [] });

function keepText(folder: string, text: SkillText, texts: SkillTexts | undefined, { listed, start }: FolderReading): void {
  const state = listed?.states.get(folder);
  const entries = listed?.entriesOf(folder);
  if (state !== undefined && entries !== undefined && isPlainListing(entries)) texts?.keep(folder, text, state, start);
}

/**
 * Whether the listed folders and the files that were read determine a skill's text: there is no link, no manifest that names other paths,
 * and no name or placeholder that depends on a plugin around the folder.
 */
function isPlainText({ document, body, manifest, lost }: SkillText, listed: FolderView | undefined): boolean {
  if (listed === undefined || document === undefined || manifest !== undefined || lost.manifest || lost.document) return false;
  if (!document.isNamed || body?.usesPlugin !== false) return false;
  const entries = [...listed.states.keys()].flatMap((path) => listed.entriesOf(path) ?? []);
  return entries.every((entry) => entry.isFile() || entry.isDirectory());
}

const noUses: ReadonlyMap<string, readonly string[]> = new Map();

function usesByTool(units: readonly ToolUnit[]): ReadonlyMap<string, readonly string[]> {
  const used = units.filter(({ uses }) => uses.length > 0);
  if (used.length === 0) return noUses;
  return new Map(used.flatMap(({ tools, uses }) => tools.map(({ definition }) => [definition.name, uses] as const)));
}

/** Without a policy signatures are not checked, so none counts. */
function standingOf(real: string, admission: Admission | undefined): SkillStanding {
  const scope = scopeOfFolder(real);
  // Packages of other package managers than npm are not the project's own work either.
  return { scope: scope === "project" && isBelowNodeModules(real) ? "package" : scope, isSigned: signerOf(admission) !== undefined };
}

function realPathOf(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    // The folder was removed; reading it reports that.
    return folder;
  }
}

/** The key that signed the folder, if any. */
function signerOf(admission: Admission | undefined): string | undefined {
  return admission?.state.status === "signed" ? admission.state.key?.id : undefined;
}

function listEntries(
  folder: string,
  text: SkillText,
  extensions: readonly string[],
  { refused, view }: { readonly refused: Diagnostic | undefined; readonly view: FolderView | undefined },
): ToolEntries {
  if (refused) return { entries: [], diagnostics: [refused], lost: [] };
  // An unreadable manifest may have listed the tools, or none, and a disabled skill does not run.
  if (text.lost.manifest || text.manifest?.enabled === false) return { entries: [], diagnostics: [], lost: [] };
  const listed = listToolEntries(folder, text.manifest ?? {}, extensions, text.manifestFile, view);
  return { ...listed, diagnostics: listed.diagnostics.map((diagnostic) => ({ source: text.name, ...diagnostic })) };
}

/** Without a manifest, files in `tools/` may be scripts that a model is to run, as in many skills. They stay files. */
async function withoutScripts(
  { entries, diagnostics, lost }: ToolEntries,
  before: Generation | undefined,
  { source, guard }: { readonly source: string; readonly guard: FileGuard | undefined },
): Promise<ToolEntries> {
  // A file that had tools before does not become a script by one save.
  const wasTool = (key: string): boolean => before?.units.some((unit) => unit.key === key && unit.tools.length > 0) === true;
  const scripts: ToolEntry[] = [];
  for (const entry of entries) {
    if (entry.kind === "module" && !wasTool(entry.key) && (await isScript(entry.file, guard))) scripts.push(entry);
  }
  const hints = scripts.map((entry): Diagnostic => {
    const message =
      "This file exports no tool, so it is treated as a script and was not run. If it is a tool, export it with defineTool(…), or add a skill.json.";
    return { severity: "info", code: "TOOL_FILE_SCRIPT", file: entry.file, source, message };
  });
  return { entries: entries.filter((entry) => !scripts.includes(entry)), diagnostics: [...diagnostics, ...hints], lost };
}

/** A folder in `changed` includes everything in it, because it was replaced. */
function isUntouched(unit: ToolUnit, changed: ReadonlySet<string>): boolean {
  for (const file of unit.files) {
    for (const path of changed) if (path === file || (file.startsWith(path) && /^[\\/]/.test(file.slice(path.length)))) return false;
  }
  return true;
}

/**
 * Stages units one after the other, so that modules see each other's effects in a fixed order. Yields in between, because a folder can
 * contain thousands of tools.
 */
/** Others run in between: a folder can hold thousands of tools. */
async function stageUnits(entries: readonly ToolEntry[], kept: readonly ToolUnit[], context: StageContext): Promise<ToolUnit[]> {
  const units: ToolUnit[] = [];
  const reusable = new Map<string, ToolUnit[]>();
  for (const unit of kept) reusable.set(sameness(unit), [...(reusable.get(sameness(unit)) ?? []), unit]);
  const slices = new WorkSlices(entriesPerSlice);
  for (const entry of entries) {
    // A newer load has superseded this one.
    if (context.signal.aborted) break;
    units.push(reusable.get(sameness(entry))?.shift() ?? (await stageTool(entry, context)));
    await slices.spend(1);
  }
  return units;
}

const entriesPerSlice = 20;

/** A key that is equal for an entry and its unit. A tool in the manifest is identified by its content, not by its position. */
function sameness({ key, state }: { readonly key: string; readonly state: string }): string {
  return JSON.stringify([key.startsWith("inline:") ? "inline" : key, state]);
}

/** Whether the files determine the tool completely: a module may define something else each time it runs. */
function isWritten({ key }: ToolUnit): boolean {
  return !key.startsWith("module:");
}

/** The first of two tools with the same name keeps it. */
function withoutTwins(units: readonly ToolUnit[], source: string): { tools: Tool[]; twins: Diagnostic[] } {
  const byName = new Map<string, Tool>();
  const twins: Diagnostic[] = [];
  for (const tool of units.flatMap((unit) => unit.tools)) {
    const first = byName.get(tool.definition.name);
    if (first === undefined) byName.set(tool.definition.name, tool);
    else twins.push(nameTwice(tool, first, source));
  }
  return { tools: [...byName.values()], twins };
}

async function discard(units: readonly ToolUnit[], loader: ModuleLoader): Promise<void> {
  await Promise.all(units.map((unit) => unit.retire()));
  loader.invalidate(units.flatMap((unit) => [...unit.files]));
}

function nameTwice(tool: Tool, first: Tool, source: string): Diagnostic {
  const message = `This skill has two tools named "${tool.definition.name}"; the one in ${first.origin.file ?? "the manifest"} is used. Rename one.`;
  const file = tool.origin.file === undefined ? {} : { file: tool.origin.file };
  return { severity: "error", code: "TOOL_NAME_TWICE", ...file, source, message };
}

/** Reports that a skill cannot run on this host, which does not match the range in `engines.skillhost`. */
function checkEngines({ manifest, manifestFile, name }: SkillText, hostVersion: string): Diagnostic | undefined {
  const range = manifest?.engines?.["skillhost"];
  const verdict = range === undefined ? "met" : judgeRange(range, hostVersion);
  if (range === undefined || verdict === "met") return undefined;
  const message =
    verdict === "invalid-range"
      ? `"engines.skillhost" is ${JSON.stringify(range)}, which is not a valid semver range. Use one such as "^${hostVersion}".`
      : `This skill requires skillhost ${range}, but this is ${hostVersion}. Update skillhost, or install a version of the skill that supports it.`;
  return { severity: "error", code: "SKILL_ENGINE", file: manifestFile, source: name, message };
}
