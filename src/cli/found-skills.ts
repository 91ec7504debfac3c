import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { isReallyInside } from "../io/confine-path.ts";
import { clientSkillFolders } from "../skills/store/client-skill-folders.ts";
import { resolveRoot } from "../skills/store/skill-roots.ts";
import { skillhostHome } from "../trust/trust-policy.ts";
import { usageError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";

const auto = "auto";

/**
 * Replaces `--skills auto` by the skill directories that exist. They come from the project and not from the command line, so their code
 * needs the trust that the default directory needs: from here on they count as if the project's configuration had named them.
 */
export function withFoundSkills(context: CommandContext): CommandContext {
  const { skills, ...options } = context.options;
  if (skills === undefined || !skills.includes(auto)) return context;
  if (skills.some((entry) => entry !== auto))
    throw usageError(
      `--skills ${auto} finds the directories itself, so no others can be named. For a folder with that name write ./${auto}.`,
    );
  const { skillDirectories: own, ...config } = context.config;
  const found = findDirectories(context, own);
  return {
    ...context,
    options,
    config: { ...config, ...(found.length > 0 && { skillDirectories: found }), foundSkills: { own } },
  };
}

/** Undoes `withFoundSkills`, so that the directories can be looked for in another folder. */
export function withoutFoundSkills(context: CommandContext): CommandContext {
  const { foundSkills, skillDirectories: _, ...config } = context.config;
  if (foundSkills === undefined) return context;
  const { own } = foundSkills;
  return {
    ...context,
    options: { ...context.options, skills: [auto] },
    config: { ...config, ...(own !== undefined && { skillDirectories: own }) },
  };
}

/** In the order of their precedence: those of the user, of other clients, at last the project's own. Each folder once. */
function findDirectories({ io, out, consent }: CommandContext, own: readonly string[] | undefined): readonly string[] {
  const ofClients = [...new Set([consent.folder, io.cwd])].flatMap((base) =>
    clientSkillFolders.flatMap((path) => {
      const folder = join(base, path);
      if (!existsSync(folder)) return [];
      if (isReallyInside(base, folder)) return [folder];
      out.complain(`${out.path(folder)} is, or is below, a symbolic link that points out of the project, so it is not used.`);
      return [];
    }),
  );
  const ofProject = own?.map((entry) => resolveRoot(entry, io.cwd)) ?? [join(io.cwd, "skills")].filter((folder) => existsSync(folder));
  const ofUser = [join(skillhostHome(), "skills")].filter((folder) => existsSync(folder));
  // One of these folders is often a link to another.
  const byPlace = new Map<string, string>();
  for (const root of [...ofUser, ...ofClients, ...ofProject]) {
    const place = existsSync(root) ? realpathSync.native(root) : root;
    byPlace.delete(place);
    byPlace.set(place, root);
  }
  return [...byPlace.values()];
}
