import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { isPluginName } from "../../plugin-host/define-plugin.ts";
import { readSkill, type SkillText } from "../../skills/load/read-skill.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import { listToolEntries, moduleExtensions } from "../../skills/load/tool-entries.ts";
import { discoverRoot, resolveRoot } from "../../skills/store/skill-roots.ts";
import { checkToolName } from "../../tools/tool.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { didYouMean } from "../did-you-mean.ts";
import { directoriesForNew } from "../open-host.ts";
import { readTemplate } from "../scaffold/copy-skill.ts";
import { schemaPath, testHint } from "../scaffold/installed-package.ts";
import { pluginFiles } from "../scaffold/plugin-template.ts";
import { type SkillKind, skillFiles, toolFiles } from "../scaffold/skill-template.ts";
import { assertOwnPlace, writeScaffold, writeTrusted } from "../scaffold/write-scaffold.ts";
import { visibleLine } from "../terminal-style.ts";

export interface NewSkillOptions {
  readonly kind?: SkillKind;
  /** The example or bundled skill to begin with. */
  readonly from?: string;
}

/** Creates a skill in the first skill directory. */
export async function newSkill(context: CommandContext, name: string, { kind = "typescript", from }: NewSkillOptions): Promise<number> {
  checkSkillName(name);
  const root = rootsOf(context)[0]!;
  if (existsSync(root) && isSkillFolder(root))
    throw usageError(`${root} is itself a skill. Choose the folder that contains the skills with --skills.`);
  const folder = join(root, name);
  if (existsSync(folder))
    throw new CliError("FILE_EXISTS", `${folder} already exists, so nothing was written. Choose another name, or move the folder away.`, 1);
  assertOwnPlace(context, folder);
  const schema = schemaPath(folder);
  const { files, packages } =
    from === undefined ? { files: skillFiles(name, { kind, schema }), packages: [] } : readTemplate(from, name, schema);
  const hints = packages.length === 0 ? [] : [`Its tools import npm packages: npm install ${packages.join(" ")}`];
  return printCreated(context, await writeTrusted(context, folder, files), folder, hints);
}

/** Creates a tool in the named skill, or in the only one. */
export async function newTool(context: CommandContext, name: string, options: { readonly skill?: string }): Promise<number> {
  const check = checkToolName(name);
  if (!check.ok) throw usageError(visibleLine(check.message));
  const skill = chooseSkill(context, options.skill);
  assertOwnPlace(context, skill.folder);
  const written = writeScaffold(skill.folder, toolFiles(name, "typescript"));
  return printCreated(
    context,
    written,
    skill.folder,
    isUsed(skill, name) ? [] : [`Add "tools/${name}.ts" to "tools" in ${context.out.path(skill.text.manifestFile)}.`],
  );
}

/** The rule as the specification words it; its validator is more lenient. */
export function checkSkillName(name: string): void {
  if (/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) && name.length <= 64) return;
  const words =
    name
      .normalize("NFKD")
      .replace(/\p{M}/gu, "")
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? [];
  const nearest = words.join("-").slice(0, 64).replace(/-$/, "");
  const advice = nearest === "" ? "" : ` Use "${nearest}".`;
  throw usageError(`"${visibleLine(name)}" is not a valid skill name: use up to 64 lowercase letters, digits and single hyphens.${advice}`);
}

interface FoundSkill {
  readonly folder: string;
  readonly text: SkillText;
}

function chooseSkill(context: CommandContext, wanted: string | undefined): FoundSkill {
  const skills = rootsOf(context)
    .flatMap((root) => discoverRoot(root).folders)
    .flatMap((folder) => {
      const text = readSkill(folder, () => {});
      return text ? [{ folder, text }] : [];
    });
  const names = skills.map(({ text }) => text.name);
  if (skills.length === 0) throw new CliError("SKILL_UNKNOWN", 'No skills found. Create one with "skillhost new skill <name>".', 1);
  if (wanted === undefined && skills.length > 1)
    throw usageError(`There are several skills. Choose one with --skill: ${names.map(visibleLine).join(", ")}.`);
  // As elsewhere, the later of two skills with the same name wins.
  const found =
    wanted === undefined ? skills[0] : skills.findLast(({ text, folder }) => text.name === wanted || basename(folder) === wanted);
  if (found === undefined) throw new CliError("SKILL_UNKNOWN", `Skill "${wanted}" does not exist.${didYouMean(wanted!, names)}`, 1);
  return found;
}

function isUsed({ folder, text }: FoundSkill, tool: string): boolean {
  const { entries } = listToolEntries(folder, text.manifest ?? {}, moduleExtensions, text.manifestFile);
  return entries.some(({ file }) => file === join(folder, "tools", `${tool}.ts`));
}

function rootsOf(context: CommandContext): readonly string[] {
  return directoriesForNew(context).map((entry) => resolveRoot(entry, context.io.cwd));
}

function printCreated(context: CommandContext, files: readonly string[], folder: string, hints: readonly string[]): number {
  const { out } = context;
  const test = files.find((file) => file.endsWith(".test.mjs"));
  const next = [...hints, ...(test === undefined ? [] : [testHint(context, test)]), `Load it: skillhost dev ${out.path(folder)}`];
  if (out.isJson) out.envelope({ ok: true, data: { folder, files, next }, diagnostics: [] });
  else for (const file of files) out.line(out.path(file));
  for (const step of next) out.note(step);
  return 0;
}

/** Creates a plugin below `plugins`, with a test. */
export async function newPlugin(context: CommandContext, name: string): Promise<number> {
  const { io, out } = context;
  if (!isPluginName(name)) {
    const what = 'must be up to 64 letters, digits, ".", "_" and "-", beginning with a letter or digit';
    throw usageError(`${visibleLine(name)} is not a valid plugin name: it ${what}.`);
  }
  const folder = join(io.cwd, "plugins", name);
  assertOwnPlace(context, folder);
  const files = await writeTrusted(context, folder, pluginFiles(name));
  const test = files.find((file) => file.endsWith(".test.mjs"))!;
  const next = [
    testHint(context, test),
    `Add it to skillhost.json: { "plugins": ["./plugins/${name}"] }, or createHost({ plugins: ["./plugins/${name}"] }).`,
  ];
  if (out.isJson) out.envelope({ ok: true, data: { folder, files, next }, diagnostics: [] });
  else for (const file of files) out.line(out.path(file));
  for (const step of next) out.note(step);
  return 0;
}
