import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { lintSkillDocument } from "../formats/skills/lint-skill-document.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { documentInSkill } from "../skills/load/skill-path.ts";

/**
 * Checks a skill's folder against the Agent Skills specification, like the reference validator: it must contain a conforming
 * SKILL.md or skill.md.
 */
export function lintSkillFolder(folder: string): readonly Diagnostic[] {
  const names = readdirSync(folder).filter((name) => name.toLowerCase() === "skill.md");
  const name = ["SKILL.md", "skill.md"].find((accepted) => names.includes(accepted));
  if (name === undefined) return [missing(folder, names[0])];
  const file = join(folder, name);
  // Reading the skill reports it.
  if (!documentInSkill(folder, name).ok) return [];
  const read = readTextFile(file, maxDocumentBytes);
  return read.ok ? lintSkillDocument(decodeText(read.bytes, file).text, { file, directoryName: basename(folder) }) : [read.diagnostic];
}

function missing(folder: string, other: string | undefined): Diagnostic {
  const code = "SKILL_DOCUMENT_MISSING";
  const what = "Hosts that follow the Agent Skills specification find no skill here";
  if (other !== undefined)
    return { severity: "error", code, file: join(folder, other), message: `${what}: ${other} is not SKILL.md. Rename it to SKILL.md.` };
  const advice = `Add a SKILL.md that begins with ---, \`name: ${basename(folder)}\`, \`description: …\` and ---.`;
  // A folder with a skill.json is a skill in skillhost, so this is not an error.
  return { severity: "info", code, file: folder, message: `${what}: the folder has no SKILL.md. ${advice}` };
}
