import { join } from "node:path";
import { readForeignPermissions } from "../../formats/skills/foreign-permissions.ts";
import { maxDocumentBytes } from "../../formats/text/limits.ts";
import { type Reading, readText, type SkillText } from "./read-skill.ts";
import { existsAt, pathInSkill } from "./skill-path.ts";

/** Where Codex reads what a skill needs, relative to its folder. */
const codexSidecar = "agents/openai.yaml";

/** What a skill declares for other hosts. Counts for a skill whose manifest declares nothing. */
export function readForeignDeclaration(
  folder: string,
  { document, documentName = "SKILL.md" }: SkillText,
  how: Pick<Reading, "seen" | "guard" | "view">,
): ReturnType<typeof readForeignPermissions> & Pick<Reading, "files"> {
  const reading: Reading = { folder, files: new Set(), diagnostics: [], lost: { manifest: false, document: false, prompts: [] }, ...how };
  const file = join(folder, codexSidecar);
  const confined = existsAt(file, how.view) ? pathInSkill(folder, codexSidecar, file, how.view) : undefined;
  if (confined?.ok === false) reading.diagnostics.push(confined.diagnostic);
  const text = confined?.ok === true ? readText(confined.path, maxDocumentBytes, reading)?.text : undefined;
  const { permissions, diagnostics } = readForeignPermissions({
    document: join(folder, documentName),
    allowedTools: document?.allowedTools ?? [],
    sidecar: text === undefined ? undefined : { file, text },
  });
  return { ...(permissions && { permissions }), diagnostics: [...reading.diagnostics, ...diagnostics], files: reading.files };
}
