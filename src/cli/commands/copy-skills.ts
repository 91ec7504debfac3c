import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { counted } from "../../base/text.ts";
import type { InstallContext } from "../../packages/install.ts";
import { copiedSkills, lockFileName, readLock } from "../../packages/lock-file.ts";
import { skillPackages } from "../../packages/lock-project.ts";
import { addSkills, listed } from "../../packages/sources/add-skills.ts";
import { folderName } from "../../packages/sources/find-skills.ts";
import type { GitSource } from "../../packages/sources/git-source.ts";
import type { PreviewedSource, SkillsOutcome } from "../../packages/sources/install-skills.ts";
import { copiesNamed, removeSkills, updateSkills } from "../../packages/sources/update-skills.ts";
import { isPattern } from "../../skills/load/skill-path.ts";
import { resolveRoot } from "../../skills/store/skill-roots.ts";
import { logApproval } from "../../trust/approval-log.ts";
import type { ApprovalScope } from "../../trust/approvals.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { confirm } from "../confirm.ts";
import { hasTools, packageIsolationLine } from "../describe.ts";
import { describeSources } from "../describe-sources.ts";
import { directoriesForNew, isolationOf } from "../open-host.ts";
import { type PackageScopeOptions, withPackages } from "../package-context.ts";
import { assertOwnPlace, planTrust, trustMade } from "../scaffold/write-scaffold.ts";
import { visibleLine } from "../terminal-style.ts";

export interface CopyCommandOptions extends PackageScopeOptions {
  readonly yes?: boolean;
  readonly skill?: readonly string[];
}

/** More skills than this are copied only if the user names them or asks for all. */
const mostUnnamed = 50;

/**
 * Copies skills from Git repositories and websites into the project, or into the user's own folder. Settles with the exit code; undefined: a
 * web address is one of npm's packages.
 */
export async function addCopies(
  context: CommandContext,
  sources: readonly (GitSource | string)[],
  options: CopyCommandOptions,
): Promise<number | undefined> {
  return withPackages(context, options, async (packages) => {
    const into = folderForSkills(context, options);
    const project = planTrust(context, into);
    const outcome = await addSkills({
      context: packages,
      sources,
      into,
      wanted: options.skill,
      choose: (label, skills) => chooseSkills(context, { label, skills, options }),
      confirm: (preview, diagnostics) =>
        confirmCopies(context, preview, { diagnostics, yes: options.yes === true, packages, command: "add" }),
    });
    if (outcome === undefined) return undefined;
    if (outcome.kind === "done" && options.user !== true) await trustCopies(context, packages, { outcome, project });
    return reportCopies(context, outcome, packages);
  });
}

/** Shows what would be copied, asks, and logs the consent. */
async function confirmCopies(context: CommandContext, preview: readonly PreviewedSource[], review: Review): Promise<boolean> {
  const isAgreed = await askAboutCopies(context, preview, review);
  const { yes, command, packages } = review;
  const by = `skillhost ${command}${yes ? " --yes" : ""}`;
  if (isAgreed)
    for (const { url, commit, skills } of preview)
      for (const { path, digest, state } of skills)
        if (state !== "same")
          logApproval({
            action: "approved",
            kind: "skill",
            id: `${path} from ${url}${commit === undefined ? "" : ` at ${commit}`}`,
            digest,
            scope: scopeOf(packages),
            by,
          });
  return isAgreed;
}

function scopeOf({ project }: InstallContext): ApprovalScope {
  return project.scope === "user" ? { kind: "user" } : { kind: "location", id: project.folder };
}

/** @throws CliError `PATH_OUTSIDE`, `SKILLS_PATTERN` */
function folderForSkills(context: CommandContext, { user }: CopyCommandOptions): string {
  if (user === true) return join(skillhostHome(), "skills");
  const into = resolveRoot(directoriesForNew(context)[0]!, context.io.cwd);
  if (isPattern(into) && !existsSync(into))
    throw new CliError("SKILLS_PATTERN", `${into} is a pattern, so skills cannot be copied into it. Name a folder with --skills.`, 1);
  assertOwnPlace(context, into);
  return into;
}

export interface CopiesChange {
  /** The names that are copied skills, so that no package is meant. */
  readonly names: readonly string[];
  /** The command is complete. Absent: it continues with packages. */
  readonly exitCode?: number;
  /** The result so far. */
  readonly data: object;
  readonly diagnostics: readonly Diagnostic[];
}

export const noCopies: CopiesChange = { names: [], data: {}, diagnostics: [] };

interface ChangeRequest {
  readonly command: "remove" | "update";
  readonly names: readonly string[];
  readonly options: CopyCommandOptions;
}

/** The part of `remove` and `update` that concerns copied skills. */
export async function changeCopies(context: CommandContext, packages: InstallContext, request: ChangeRequest): Promise<CopiesChange> {
  const { command, names, options } = request;
  const lock = readLock(packages.project.folder);
  const known = names.filter((name) => copiesNamed(name, lock).length > 0);
  const copies = names.length === 0 ? copiedSkills(lock) : known.flatMap((name) => copiesNamed(name, lock));
  const paths = [...new Set(copies.map(({ path }) => path))];
  if (paths.length === 0) return noCopies;
  if (command === "remove") {
    if (known.length < names.length)
      throw usageError("Copied skills and packages cannot be removed by the same command. Run it once for each.");
    await removeSkills({ context: packages, paths, isForced: options.yes === true });
    for (const path of paths) logApproval({ action: "revoked", kind: "skill", id: path, scope: scopeOf(packages), by: "skillhost remove" });
    return { ...noCopies, names: known, exitCode: reportRemoved(context, paths, packages) };
  }
  return { ...(await updateCopies(context, packages, { ...request, paths })), names: known };
}

function reportRemoved({ out }: CommandContext, paths: readonly string[], { project: { folder } }: InstallContext): number {
  out.envelope({ ok: true, data: { changed: true, folder, packages: [], dependencies: [], removed: paths }, diagnostics: [] });
  if (!out.isJson) out.line(`Removed ${paths.map((path) => out.path(join(folder, path))).join(", ")}.`);
  out.note(`Written: ${out.path(join(folder, lockFileName))}.`);
  return 0;
}

async function updateCopies(
  context: CommandContext,
  packages: InstallContext,
  { names, options, paths }: ChangeRequest & { readonly paths: readonly string[] },
): Promise<CopiesChange> {
  const { folder } = packages.project;
  const { trust } = context.consent;
  // A new folder at the same path is not the one that was trusted, so the consent to the change has to renew that.
  const trusted = paths.map((path) => join(folder, path)).filter((path) => trust.allows(path));
  const outcome = await updateSkills({
    context: packages,
    paths,
    confirm: (preview, diagnostics) =>
      confirmCopies(context, preview, { diagnostics, yes: options.yes === true, packages, command: "update" }),
  });
  if (outcome.kind === "done") for (const path of trusted) await trustMade(context, path);
  // Packages follow if none or some of the names are theirs.
  const hasPackages =
    names.length === 0 ? skillPackages(folder).some(({ installed }) => !installed.isLink) : copiesOf(names, packages).length < names.length;
  if (outcome.kind === "declined" || !hasPackages) return { ...noCopies, exitCode: reportCopies(context, outcome, packages) };
  printCopies(context, outcome, packages);
  return { names: [], data: { changed: outcome.kind === "done", sources: outcome.sources }, diagnostics: outcome.diagnostics };
}

function copiesOf(names: readonly string[], { project }: InstallContext): readonly string[] {
  const lock = readLock(project.folder);
  return names.filter((name) => copiesNamed(name, lock).length > 0);
}

/** The whole project is trusted if it had no other code, otherwise only what was copied. */
async function trustCopies(
  context: CommandContext,
  { project: { folder } }: InstallContext,
  { outcome, project }: { readonly outcome: SkillsOutcome; readonly project: string | undefined },
): Promise<void> {
  const copied = outcome.sources.flatMap(({ skills }) =>
    skills.filter(({ state }) => state !== "same").map(({ path }) => join(folder, path)),
  );
  for (const made of project === undefined ? copied : [project]) await trustMade(context, made);
}

interface Choice {
  readonly label: string;
  readonly skills: readonly string[];
  readonly options: CopyCommandOptions;
}

async function chooseSkills(context: CommandContext, { label, skills, options }: Choice): Promise<readonly string[]> {
  const { io, out } = context;
  if (skills.length === 1) return skills;
  if (io.ask !== undefined && io.stdin.isTTY && io.stderr.isTTY && !out.isJson && options.yes !== true)
    return askWhich(context, label, skills);
  if (skills.length <= mostUnnamed) return skills;
  const advice = `Choose with --skill <name>, which can be repeated; --skill "*" means all of them.`;
  throw new CliError("GIT_SKILLS_MANY", `${label} contains ${skills.length} skills: ${visibleLine(listed(skills))}. ${advice}`, 1);
}

async function askWhich({ io, out }: CommandContext, label: string, skills: readonly string[]): Promise<readonly string[]> {
  const shown = skills.slice(0, mostUnnamed);
  out.line(`${visibleLine(label)} contains ${counted(skills.length, "skill")}:`);
  for (const [index, path] of shown.entries()) out.line(`  ${String(index + 1).padStart(2)}. ${visibleLine(folderName(path))}`);
  if (shown.length < skills.length) out.line(`  and ${skills.length - shown.length} more`);
  const answer = (await io.ask!('Which of them? Numbers or names with commas between them, or "all": ', io.signal)).trim();
  if (answer === "all") return skills;
  const named = answer.split(/[\s,]+/).filter((part) => part !== "");
  const chosen = named.map((part) => {
    const found = /^\d+$/.test(part) ? shown[Number(part) - 1] : skills.find((path) => folderName(path) === part || path === part);
    if (found === undefined)
      throw new CliError("GIT_SKILL_UNKNOWN", `${JSON.stringify(part)} is not one of these skills. Nothing was installed.`, 1);
    return found;
  });
  if (chosen.length === 0) throw new CliError("NOT_AGREED", "No skill was chosen, so nothing was installed.", 1);
  return [...new Set(chosen)];
}

interface Review {
  readonly packages: InstallContext;
  readonly command: "add" | "update";
  readonly diagnostics: readonly Diagnostic[];
  readonly yes: boolean;
}

/** Shows what would be copied, and asks. */
async function askAboutCopies(
  context: CommandContext,
  preview: readonly PreviewedSource[],
  { diagnostics, yes }: Review,
): Promise<boolean> {
  const { out } = context;
  const shown = describeSources(preview, out);
  if (!out.isJson) {
    for (const line of shown.lines) out.line(line);
    for (const diagnostic of diagnostics) out.line(out.diagnostic(diagnostic));
    if (preview.some(({ skills }) => skills.some(({ skill }) => hasTools(skill))))
      out.line(await packageIsolationLine(isolationOf(context)));
  }
  const edited = preview.flatMap(({ skills }) => skills.filter(({ state, isEdited }) => state === "changed" && isEdited));
  if (yes && edited.length > 0) {
    const names = edited.map(({ path }) => path).join(", ");
    const advice = "--yes does not overwrite such changes: run this at a terminal to agree, or remove the skill and add it again.";
    throw new CliError("SKILL_EDITED", `${names} was changed here since it was copied, so nothing was installed. ${advice}`, 1);
  }
  if (yes) return true;
  const whole = shown.isWhole ? undefined : () => describeSources(preview, out, { isCut: false }).lines;
  return confirm(context, { question: "Install it?", otherwise: "Review it, then run again with --yes to install it.", whole });
}

function reportCopies(context: CommandContext, outcome: SkillsOutcome, packages: InstallContext): number {
  const { out } = context;
  const { kind, sources, diagnostics } = outcome;
  const { folder } = packages.project;
  if (kind === "declined") {
    const error = { code: "NOT_AGREED", message: "Nothing was installed." };
    if (out.isJson) out.envelope({ ok: false, data: { changed: false, folder, sources }, diagnostics, error });
    else out.complain(error.message);
    return 1;
  }
  out.envelope({ ok: true, data: { changed: kind === "done", folder, sources }, diagnostics });
  printCopies(context, outcome, packages);
  return 0;
}

function printCopies(
  { out }: CommandContext,
  { kind, sources, diagnostics }: SkillsOutcome,
  { project: { folder } }: InstallContext,
): void {
  if (out.isJson) return;
  // The others were shown before the question.
  for (const diagnostic of diagnostics) if (diagnostic.code === "SKILL_GONE") out.line(out.diagnostic(diagnostic));
  if (kind === "unchanged") out.line("Already up to date.");
  for (const { state, path } of sources.flatMap(({ skills }) => skills)) {
    if (state !== "same") out.line(`${state === "new" ? "Added" : "Updated"} ${out.path(join(folder, path))}.`);
  }
  if (kind === "done") out.note(`Written: ${out.path(join(folder, lockFileName))}.`);
}
