import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { counted } from "../../base/text.ts";
import type { InstallContext } from "../../packages/install.ts";
import { lockFileName } from "../../packages/lock-file.ts";
import { folderName } from "../../packages/sources/find-skills.ts";
import { addGitSkills, listed } from "../../packages/sources/git-skills.ts";
import type { GitSource } from "../../packages/sources/git-source.ts";
import type { PreviewedSource, SkillsOutcome } from "../../packages/sources/install-skills.ts";
import { isPattern } from "../../skills/load/skill-path.ts";
import { resolveRoot } from "../../skills/store/skill-roots.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { confirm } from "../confirm.ts";
import { describeSources } from "../describe-sources.ts";
import { skillDirectories } from "../open-host.ts";
import { type PackageScopeOptions, withPackages } from "../package-context.ts";
import { assertOwnPlace, planTrust, trustMade } from "../scaffold/write-scaffold.ts";
import { visibleLine } from "../terminal-style.ts";

export interface CopyCommandOptions extends PackageScopeOptions {
  readonly yes?: boolean;
  readonly skill?: readonly string[];
}

/** More skills than this are copied only if the user names them or asks for all. */
const mostUnnamed = 50;

/** Copies skills from Git repositories into the project, or into the user's own folder. */
export async function addCopies(context: CommandContext, sources: readonly GitSource[], options: CopyCommandOptions): Promise<number> {
  return withPackages(context, options, async (packages) => {
    const into = folderForSkills(context, options);
    const project = planTrust(context, into);
    const outcome = await addGitSkills({
      context: packages,
      sources,
      into,
      wanted: options.skill,
      choose: (label, skills) => chooseSkills(context, { label, skills, options }),
      confirm: (preview, diagnostics) => confirmCopies(context, preview, { diagnostics, yes: options.yes === true }),
    });
    if (outcome.kind === "done" && options.user !== true) await trustCopies(context, packages, { outcome, project });
    return reportCopies(context, outcome, packages);
  });
}

/** @throws CliError `PATH_OUTSIDE`, `SKILLS_PATTERN` */
function folderForSkills(context: CommandContext, { user }: CopyCommandOptions): string {
  if (user === true) return join(skillhostHome(), "skills");
  const into = resolveRoot(skillDirectories(context)[0]!, context.io.cwd);
  if (isPattern(into) && !existsSync(into))
    throw new CliError("SKILLS_PATTERN", `${into} is a pattern, so skills cannot be copied into it. Name a folder with --skills.`, 1);
  assertOwnPlace(context, into);
  return into;
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
  readonly diagnostics: readonly Diagnostic[];
  readonly yes: boolean;
}

/** Shows what would be copied, and asks. */
async function confirmCopies(context: CommandContext, preview: readonly PreviewedSource[], { diagnostics, yes }: Review): Promise<boolean> {
  const { out } = context;
  const shown = describeSources(preview, out);
  if (!out.isJson) {
    for (const line of shown.lines) out.line(line);
    for (const diagnostic of diagnostics) out.line(out.diagnostic(diagnostic));
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

function reportCopies({ out }: CommandContext, outcome: SkillsOutcome, { project }: InstallContext): number {
  const { kind, sources, diagnostics } = outcome;
  if (kind === "declined") {
    const error = { code: "NOT_AGREED", message: "Nothing was installed." };
    if (out.isJson) out.envelope({ ok: false, data: { changed: false, folder: project.folder, sources }, diagnostics, error });
    else out.complain(error.message);
    return 1;
  }
  out.envelope({ ok: true, data: { changed: kind === "done", folder: project.folder, sources }, diagnostics });
  if (out.isJson) return 0;
  const skills = sources.flatMap((source) => source.skills);
  if (kind === "unchanged") out.line("Already up to date.");
  for (const { state, path } of skills) {
    const full = out.path(join(project.folder, path));
    if (state !== "same") out.line(`${state === "new" ? "Added" : "Updated"} ${full}.`);
  }
  if (kind === "done") out.note(`Written: ${out.path(join(project.folder, lockFileName))}.`);
  return 0;
}
