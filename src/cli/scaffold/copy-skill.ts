import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../base/package-root.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import { resolveRoot } from "../../skills/store/skill-roots.ts";
import { skillhostHome } from "../../trust/trust-policy.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { didYouMean } from "../did-you-mean.ts";
import { skillDirectories } from "../open-host.ts";
import { assertOwnPlace, writeTrusted } from "./write-scaffold.ts";

const prefix = "skillhost:";
const templates = join(packageRoot, "skills");

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
  const root = user ? join(skillhostHome(), "skills") : resolveRoot(skillDirectories(context)[0]!, io.cwd);
  const chosen = names.map((name) => findTemplate(name.slice(prefix.length)));
  const folders = chosen.map((name) => join(root, name));
  const taken = folders.find(existsSync);
  if (taken !== undefined) throw new CliError("FILE_EXISTS", `${taken} already exists, so nothing was written. Move it away first.`, 1);
  const files: string[] = [];
  for (const [index, folder] of folders.entries()) {
    if (!user) assertOwnPlace(context, folder);
    files.push(...(await writeTrusted(context, folder, filesOf(join(templates, chosen[index]!)))));
  }
  if (out.isJson) out.envelope({ ok: true, data: { changed: true, folders, files }, diagnostics: [] });
  else for (const folder of folders) out.line(`Added ${out.path(folder)}.`);
  return 0;
}

function findTemplate(name: string): string {
  const known = readdirSync(templates).filter((each) => isSkillFolder(join(templates, each)));
  if (known.includes(name)) return name;
  throw new CliError(
    "SKILL_UNKNOWN",
    `skillhost has no bundled skill "${name}".${didYouMean(name, known)} The bundled skills are ${known.join(", ")}.`,
    1,
  );
}

function filesOf(folder: string): Readonly<Record<string, string>> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !/(^|[\\/])node_modules[\\/]/.test(path));
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}
