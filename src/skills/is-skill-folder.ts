import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Whether a folder holds `SKILL.md` in any case, or `skill.json`. */
export function isSkillFolder(folder: string): boolean {
  return existsSync(join(folder, "skill.json")) || hasSkillDocument(folder);
}

/** Whether a folder holds `SKILL.md` in any case. */
export function hasSkillDocument(folder: string): boolean {
  return existsSync(join(folder, "SKILL.md")) || namesIn(folder).some((name) => name.toLowerCase() === "skill.md");
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Gone or unreadable since it was listed: it holds no skill now.
    return [];
  }
}
