import type { SkillEntry } from "../../tools/tool-source.ts";

/** Tokens at four characters each, as English has them on average: nobody's tokenizer is at hand. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / 4);
}

/**
 * The skills that a model may use, as the block that agents of the field know. Where they need more tokens than there
 * are, those go first whose prompts the model has already, then those of lowest precedence; how many is said.
 */
export function listSkills(skills: readonly SkillEntry[], maxTokens: number): string {
  const listed = skills.filter((skill) => skill.hiddenFromModel !== true);
  if (listed.length === 0) return "";
  const kept = chooseSkills(listed, maxTokens);
  const lines = listed.filter((skill) => kept.has(skill)).map(describeSkill);
  const left = listed.length - kept.size;
  const note = left === 0 ? [] : [`${left} more ${left === 1 ? "skill is" : "skills are"} there, for which this list has no room.`];
  return ["<available_skills>", ...lines, "</available_skills>", ...note].join("\n");
}

function chooseSkills(skills: readonly SkillEntry[], maxTokens: number): ReadonlySet<SkillEntry> {
  const byNeed = [...skills].reverse().sort((a, b) => Number(isInContext(a)) - Number(isInContext(b)));
  const kept = new Set<SkillEntry>();
  let left = maxTokens;
  for (const skill of byNeed) {
    left -= estimateTokens(describeSkill(skill).length);
    if (left < 0) break;
    kept.add(skill);
  }
  return kept;
}

function isInContext({ promptMode, prompts = [] }: SkillEntry): boolean {
  return promptMode === "eager" && prompts.length > 0;
}

// The Agent Skills specification allows descriptions of that length.
const longestDescription = 1024;

function describeSkill({ name, description }: SkillEntry): string {
  const text = description.length > longestDescription ? `${description.slice(0, longestDescription)}…` : description;
  return `<skill>\n<name>${escaped(name)}</name>\n<description>${escaped(text)}</description>\n<location>custom</location>\n</skill>`;
}

/** A description cannot end the list and go on as instructions. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
