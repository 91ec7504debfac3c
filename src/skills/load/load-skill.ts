import { realpathSync } from "node:fs";
import { canonicalJson } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { judgeRange } from "../../base/version-range.ts";
import { WorkSlices } from "../../base/work-slices.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import type { FileGuard } from "../../io/read-bounded.ts";
import type { Tool } from "../../tools/tool.ts";
import type { CheckedFolder } from "../../trust/checked-folder.ts";
import type { FolderView } from "../../trust/folder-view.ts";
import { isBelowNodeModules } from "../../trust/installed-packages.ts";
import type { Pins } from "../../trust/pins/pins.ts";
import type { Admission, SkillTrust, TrustState } from "../../trust/skill-trust.ts";
import { sourceIdentity } from "../../trust/source-identity.ts";
import { scopeOfFolder } from "../../trust/trust-policy.ts";
import { assembleSkillOffers } from "../prompts/skill-prompts.ts";
import type { FolderListing } from "../store/folder-listing.ts";
import { createSkill } from "./create-skill.ts";
import { type Generation, losesSomething } from "./judge-reload.ts";
import { readSkill, type SkillText } from "./read-skill.ts";
import { type HeldTool, judgeTools, type SkillStanding } from "./skill-definitions.ts";
import { isSkillFolder } from "./skill-path.ts";
import { type StageContext, stageTool, type ToolUnit } from "./stage-tool.ts";
import { listToolEntries, type ToolEntries, type ToolEntry } from "./tool-entries.ts";
import { isScript } from "./tool-module.ts";
import type { ToolRunner } from "./tool-runner.ts";

/** What an attempt tells of trust: how the folder stands, and which of its tools wait for somebody to approve them. */
export interface TrustFindings {
  readonly trust?: TrustState | undefined;
  readonly held?: readonly HeldTool[] | undefined;
}

/** How an attempt to load a folder ended. What a rejected one had made has been ended. */
export type Staged =
  | { readonly kind: "absent" }
  /** To be taken; `replaced` are the units of the generation before that have no place in this one. */
  | ({
      readonly kind: "ready";
      readonly generation: Generation;
      readonly replaced: readonly ToolUnit[];
      /** What was found of the folder when it was checked, where it was; to be released. */
      readonly view?: FolderView | undefined;
    } & TrustFindings)
  | ({
      readonly kind: "rejected";
      readonly diagnostics: readonly Diagnostic[];
      readonly files: ReadonlySet<string>;
      /** Whether the folder must not be trusted: nothing of it may serve, what was loaded before included. */
      readonly isUntrusted?: boolean | undefined;
      /** Whether the reason has nothing to do with the folder, so that the same files may load later. */
      readonly isPassing?: boolean | undefined;
    } & TrustFindings);

interface LoadSkillOptions {
  readonly loader: ModuleLoader;
  readonly runners: readonly ToolRunner[];
  /** False: the runners only find what modules define, and nothing that could run is made. Default: true. */
  readonly mayRun?: boolean | undefined;
  readonly hostVersion: string;
  readonly importTimeout: number;
  readonly signal: AbortSignal;
  /** The number of the latest generation of the folder, whether it serves or not. Absent: there was none. */
  readonly lastGeneration?: number;
  /** The files of the folder. */
  readonly listing: FolderListing;
  /** Another list of resources has taken the place of one that a module of the skill gave. */
  onResourcesChanged?(): void;
  /** Told of each text file that was read, with what it contained, and its hash where that is known. */
  seen(file: string, bytes: Uint8Array, hash?: string): void;
  /** Has the say about what may be loaded. Absent: everything may. */
  readonly trust?: SkillTrust | undefined;
  /** Has the say about which definitions of tools are offered. */
  pinsOf?(folder: string): Pins | undefined;
}

/**
 * Loads a folder, beside the generation that serves now. Units none of whose files are in `changed` are carried over as
 * they are. The outcome is all or nothing: when something that works now would be lost to a fault, the attempt is
 * rejected and what was made for it is ended. On a first load there is nothing to lose, so what works of it is taken.
 */
export async function loadSkill(
  folder: string,
  before: Generation | undefined,
  changed: ReadonlySet<string>,
  options: LoadSkillOptions,
): Promise<Staged> {
  const admission = options.trust?.admit(folder);
  if (admission === undefined) return stageSkill(folder, before, changed, options);
  const { state: trust, diagnostics, files } = admission;
  if (admission.kind === "refused")
    return isSkillFolder(folder) ? { kind: "rejected", diagnostics, files, trust, isUntrusted: true } : { kind: "absent" };
  let isTaken = false;
  try {
    const { view, guard, tree } = admission;
    const seen = (file: string, bytes: Uint8Array): void => options.seen(file, bytes, view?.hashOf(file));
    const staged = await stageSkill(folder, before, changed, { ...options, seen, admission, view, guard, tree });
    isTaken = staged.kind === "ready";
    return staged.kind === "absent" ? staged : { ...staged, trust };
  } finally {
    admission.conclude(isTaken);
    if (!isTaken) admission.view?.release();
  }
}

interface StageOptions extends LoadSkillOptions {
  readonly admission?: Admission;
  readonly guard?: FileGuard | undefined;
  readonly view?: FolderView | undefined;
  readonly tree?: CheckedFolder | undefined;
}

async function stageSkill(
  folder: string,
  before: Generation | undefined,
  changed: ReadonlySet<string>,
  options: StageOptions,
): Promise<Staged> {
  const { admission, ...context } = options;
  const { view, tree } = context;
  const extensions = options.runners.flatMap((runner) => runner.extensions);
  const text = readSkill(folder, options.seen, extensions, options.guard, options.view);
  if (text === undefined) return { kind: "absent" };
  const files = new Set([...text.files, ...(admission?.files ?? [])]);
  const renamed = admission?.identityFault(text.name, text.manifest?.version);
  const ofTrust = [...(admission?.diagnostics ?? []), ...(renamed ? [renamed] : [])].map((each) => ({ source: text.name, ...each }));
  if (renamed?.severity === "error") return { kind: "rejected", diagnostics: ofTrust, files, isUntrusted: true };
  const refused = checkEngines(text, options.hostVersion);
  const found = listEntries(folder, text, extensions, { refused, view });
  const listed = text.manifest === undefined ? withoutScripts(found, before, { source: text.name, guard: options.guard }) : found;
  const generation = (options.lastGeneration ?? 0) + 1;
  const identity = sourceIdentity(folder, { signedBy: signerOf(admission) });
  const permissions = text.manifest?.permissions;
  const mayRun = options.mayRun ?? true;
  // What was made under another consent is made again, and cannot be what this one is measured by.
  const comparable = before?.skill.mayRun === mayRun ? before : undefined;
  // What was made of other signed files is not a part of these, and what a tool may do depends on what is declared.
  const isSameSource =
    comparable?.skill.name === text.name &&
    comparable.identity === identity &&
    comparable.tree === tree &&
    canonicalJson(comparable.text.manifest?.permissions ?? null) === canonicalJson(permissions ?? null);
  const kept = isSameSource ? comparable.units.filter((unit) => isUntouched(unit, changed)) : [];
  const target = {
    skill: { name: text.name, folder, identity },
    generation,
    onResourcesChanged: () => options.onResourcesChanged?.(),
    checked: tree,
  };
  const standing = standingOf(folder, admission);
  const units = await stageUnits(listed.entries, kept, { ...context, target, standing, permissions });
  const { tools: all, twins } = withoutTwins(units, text.name);
  const written = new Set(units.flatMap((unit) => (isWritten(unit) && !kept.includes(unit) ? unit.tools : [])));
  const uses = usesByTool(units);
  const place = { folder, name: text.name, admission, written, uses, pins: options.pinsOf?.(folder) };
  const { tools, leftOut, held, ...judged } = await judgeTools(all, place);
  const offers = assembleSkillOffers(folder, text, units);
  const ofUnits = units.flatMap((unit) => unit.diagnostics);
  const diagnostics = [
    ...ofTrust,
    ...text.diagnostics,
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
  const skill = createSkill(folder, { text, tools, uses, offers, listing: options.listing, generation, mayRun, tree });
  const replaced = before?.units.filter((unit) => !units.includes(unit)) ?? [];
  return { kind: "ready", generation: { skill, identity, text, units, files, diagnostics, tree }, replaced, held, view };
}

function usesByTool(units: readonly ToolUnit[]): ReadonlyMap<string, readonly string[]> {
  const used = units.filter(({ uses }) => uses.length > 0);
  return new Map(used.flatMap(({ tools, uses }) => tools.map(({ definition }) => [definition.name, uses] as const)));
}

/** Without a policy nobody looks at signatures, so that none counts. */
function standingOf(folder: string, admission: Admission | undefined): SkillStanding {
  const real = realPathOf(folder);
  const scope = scopeOfFolder(real);
  // What other package managers than npm installed is no work of the project either.
  return { scope: scope === "project" && isBelowNodeModules(real) ? "package" : scope, isSigned: signerOf(admission) !== undefined };
}

function realPathOf(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    // It went meanwhile: reading it reports that.
    return folder;
  }
}

/** The key that vouches for the folder, if one does. */
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
  // A manifest that cannot be read may have said which tools there are, or that there are none; and what is switched off
  // does not run.
  if (text.lost.manifest || text.manifest?.enabled === false) return { entries: [], diagnostics: [], lost: [] };
  const listed = listToolEntries(folder, text.manifest ?? {}, extensions, text.manifestFile, view);
  return { ...listed, diagnostics: listed.diagnostics.map((diagnostic) => ({ source: text.name, ...diagnostic })) };
}

/**
 * Without a manifest nobody has said that what lies in `tools/` are tools: many skills keep scripts there that a model is to run.
 * Those are left to it, as files.
 */
function withoutScripts(
  { entries, diagnostics, lost }: ToolEntries,
  before: Generation | undefined,
  { source, guard }: { readonly source: string; readonly guard: FileGuard | undefined },
): ToolEntries {
  // What had tools before is no script now because of one save.
  const wasTool = (key: string): boolean => before?.units.some((unit) => unit.key === key && unit.tools.length > 0) === true;
  const scripts = entries.filter((entry) => entry.kind === "module" && !wasTool(entry.key) && isScript(entry.file, guard));
  const told = scripts.map((entry): Diagnostic => {
    const message =
      "This file exports no tool, so it is treated as a script and was not run. If it is a tool, export it with defineTool(…), or add a skill.json.";
    return { severity: "info", code: "TOOL_FILE_SCRIPT", file: entry.file, source, message };
  });
  return { entries: entries.filter((entry) => !scripts.includes(entry)), diagnostics: [...diagnostics, ...told], lost };
}

/** A folder in `changed` stands for everything in it: it was replaced by another. */
function isUntouched(unit: ToolUnit, changed: ReadonlySet<string>): boolean {
  for (const file of unit.files) {
    for (const path of changed) if (path === file || (file.startsWith(path) && /^[\\/]/.test(file.slice(path.length)))) return false;
  }
  return true;
}

/** One after the other: modules share the one thread, and their order is what they see of each other. */
/** Others run in between: a folder can hold thousands of tools. */
async function stageUnits(entries: readonly ToolEntry[], kept: readonly ToolUnit[], context: StageContext): Promise<ToolUnit[]> {
  const units: ToolUnit[] = [];
  const reusable = new Map<string, ToolUnit[]>();
  for (const unit of kept) reusable.set(sameness(unit), [...(reusable.get(sameness(unit)) ?? []), unit]);
  const slices = new WorkSlices(entriesPerSlice);
  for (const entry of entries) {
    // Whoever wanted this wants something newer by now.
    if (context.signal.aborted) break;
    units.push(reusable.get(sameness(entry))?.shift() ?? (await stageTool(entry, context)));
    await slices.spend(1);
  }
  return units;
}

const entriesPerSlice = 20;

/** Equal for an entry and what was made of it. A tool in the manifest is known by what it says, whatever its place in the list. */
function sameness({ key, state }: { readonly key: string; readonly state: string }): string {
  return JSON.stringify([key.startsWith("inline:") ? "inline" : key, state]);
}

/** Whether a file says it all: what a module defines may be another thing each time it runs. */
function isWritten({ key }: ToolUnit): boolean {
  return !key.startsWith("module:");
}

/** The first of two tools of one name keeps it. */
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

/** Says why a skill cannot run on this host: `engines.skillhost` names a range of versions that it does not meet. */
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
