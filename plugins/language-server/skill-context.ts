import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Session, SkillEntry } from "skillhost";

const maxListing = 8_000;

/**
 * What the server's agent is told of the session's skills when a conversation begins: texts that are context for every turn,
 * and of the others name, description and file, which it reads when it needs one. Undefined: there is nothing to tell.
 */
export function skillContext(session: Session): string | undefined {
  const skills = session.listSkills().filter(({ hiddenFromModel }) => hiddenFromModel !== true);
  const eager = skills.flatMap(({ name, promptMode, prompts = [] }) =>
    promptMode === "eager" ? prompts.map(({ text }) => `<skill name="${name}">\n${text.trim()}\n</skill>`) : [],
  );
  const listing = listed(skills.flatMap((skill) => lineFor(skill) ?? []));
  const parts = [...eager, ...(listing === "" ? [] : [listing])];
  return parts.length === 0 ? undefined : parts.join("\n\n");
}

function lineFor({ name, description, folder, hasInstructions }: SkillEntry): string | undefined {
  const file = folder === undefined ? undefined : join(folder, "SKILL.md");
  if (hasInstructions === false || file === undefined || !existsSync(file)) return undefined;
  return `- ${name}: ${description.replaceAll(/\s+/g, " ").trim()} (${file})`;
}

function listed(lines: readonly string[]): string {
  let [text, count] = ["", 0];
  for (const line of lines) {
    if (text.length + line.length > maxListing) break;
    text += `${line}\n`;
    count++;
  }
  if (count === 0) return "";
  const more = count < lines.length ? `and ${lines.length - count} more\n` : "";
  return `<available_skills>\nRead the file of a skill with read_file before you work on what it is about, and do as it says.\n${text}${more}</available_skills>`;
}
