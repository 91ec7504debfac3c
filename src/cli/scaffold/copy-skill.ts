import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { packageRoot } from "../../base/package-root.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import { resolveRoot } from "../../skills/store/skill-roots.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { didYouMean } from "../did-you-mean.ts";
import { directoriesForNew } from "../open-host.ts";
import { visibleLine } from "../terminal-style.ts";
import { assertOwnPlace, type ScaffoldFiles, writeTrusted } from "./write-scaffold.ts";

const prefix = "skillhost:";
const bundledSkills = join(packageRoot, "skills");
const examples = join(packageRoot, "examples");

export function isBundledName(name: string): boolean {
  return name.startsWith(prefix);
}

/** Copies bundled skills into the project or the user's own folder, to be used and changed there. */
export async function addBundled(
  context: CommandContext,
  names: readonly string[],
  { user = false }: { readonly user?: boolean },
): Promise<number> {
  const { io, out } = context;
  if (!names.every(isBundledName))
    throw usageError(`Bundled skills (${prefix}<name>) and packages cannot be added by the same command. Run the command once for each.`);
  const root = user ? join(skillhostHome(), "skills") : resolveRoot(directoriesForNew(context)[0]!, io.cwd);
  const chosen = names.map((name) => findBundled(name.slice(prefix.length)));
  const folders = chosen.map((name) => join(root, name));
  const taken = folders.find(existsSync);
  if (taken !== undefined) throw new CliError("FILE_EXISTS", `${taken} already exists, so nothing was written. Move it away first.`, 1);
  const files: string[] = [];
  for (const [index, folder] of folders.entries()) {
    if (!user) assertOwnPlace(context, folder);
    files.push(...(await writeTrusted(context, folder, filesOf(join(bundledSkills, chosen[index]!)))));
  }
  if (out.isJson) out.envelope({ ok: true, data: { changed: true, folders, files }, diagnostics: [] });
  else for (const folder of folders) out.line(`Added ${out.path(folder)}.`);
  return 0;
}

function findBundled(name: string): string {
  const known = skillsIn(bundledSkills);
  if (known.includes(name)) return name;
  throw new CliError(
    "SKILL_UNKNOWN",
    `skillhost has no bundled skill "${name}".${didYouMean(name, known)} The bundled skills are ${known.join(", ")}.`,
    1,
  );
}

/** A skill to begin with. */
interface Template {
  readonly files: ScaffoldFiles;
  /** The npm packages that its tools import, besides skillhost. */
  readonly packages: readonly string[];
}

/**
 * An example or bundled skill under another name.
 * @throws CliError `TEMPLATE_UNKNOWN`
 */
export function readTemplate(from: string, name: string, schema: string | undefined): Template {
  const folders = new Map([bundledSkills, examples].flatMap((root) => skillsIn(root).map((each) => [each, join(root, each)] as const)));
  const folder = folders.get(from);
  if (folder === undefined) {
    const known = [...folders.keys()].sort();
    const message = `There is no template "${visibleLine(from)}".${didYouMean(from, known)} The templates are ${known.join(", ")}.`;
    throw new CliError("TEMPLATE_UNKNOWN", message, 2);
  }
  const { "SKILL.md": document, "skill.json": manifest, ...rest } = filesOf(folder);
  const files = {
    ...(document !== undefined && { "SKILL.md": document.replace(/^name: .*$/m, `name: ${name}`) }),
    ...(manifest !== undefined && { "skill.json": renameManifest(manifest, name, schema) }),
    ...rest,
  };
  return { files, packages: packagesOf(rest) };
}

function renameManifest(text: string, name: string, schema: string | undefined): string {
  const { $schema: _schema, name: _name, ...rest } = JSON.parse(text) as Record<string, unknown>;
  return `${JSON.stringify({ ...(schema && { $schema: schema }), name, ...rest }, null, 2)}\n`;
}

function packagesOf(files: ScaffoldFiles): readonly string[] {
  const sources = Object.values(files).join("\n");
  const names = [...sources.matchAll(/^import .* from "((?:@[^"/]+\/)?[^"./:][^"/:]*)(?:\/[^"]*)?";$/gm)].map(([, name]) => name!);
  return [...new Set(names)].filter((name) => name !== "skillhost").sort();
}

function skillsIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((each) => isSkillFolder(join(folder, each)));
}

function filesOf(folder: string): ScaffoldFiles {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !/(^|[\\/])node_modules[\\/]/.test(path));
  return Object.fromEntries(paths.sort().map((path) => [path.replaceAll(sep, "/"), readFileSync(join(folder, path), "utf8")]));
}
