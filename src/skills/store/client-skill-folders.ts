/** The folders of a project in which other clients keep skills, relative to it. Later ones take precedence. */
export const clientSkillFolders: readonly string[] = [".github/skills", ".claude/skills", ".agents/skills"];
