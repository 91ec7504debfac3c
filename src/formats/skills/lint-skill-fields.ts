import type { LintAdd, StrictField } from "../text/strict-yaml.ts";
import type { SkillDocumentPlace } from "./skill-document.ts";
import { nameFaults } from "./skill-name.ts";

const allowedFields = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
const maxDescriptionLength = 1024;
const maxCompatibilityLength = 500;

/** Checks the fields of strict front matter one by one. Lengths are in code points, as the reference validator counts. */
export function lintSkillFields(fields: readonly StrictField[], at: SkillDocumentPlace, add: LintAdd): void {
  const byKey = new Map(fields.map((field) => [field.key, field]));
  lintUnexpected(fields, add);
  lintName(byKey.get("name"), at, add);
  lintDescription(byKey.get("description"), add);
  lintCompatibility(byKey.get("compatibility"), add);
  lintLicense(byKey.get("license"), add);
  lintMetadata(byKey.get("metadata"), add);
  lintAllowedTools(byKey.get("allowed-tools"), add);
}

function lintUnexpected(fields: readonly StrictField[], add: LintAdd): void {
  const unexpected = fields.filter(({ key }) => !allowedFields.includes(key));
  if (unexpected.length === 0) return;
  const names = [...new Set(unexpected.map(({ key }) => JSON.stringify(key.slice(0, 60))))].sort().slice(0, 20).join(", ");
  const message = `The specification has no fields ${names}. Allowed are ${allowedFields.join(", ")}; put your own under metadata.`;
  add("error", "SKILL_FIELDS_UNEXPECTED", message, unexpected[0]!.offset);
}

function lintName(field: StrictField | undefined, at: SkillDocumentPlace, add: LintAdd): void {
  const advice = `Write \`name: ${at.directoryName}\`.`;
  if (field === undefined) {
    add("error", "SKILL_NAME_MISSING", `The front matter has no name. ${advice}`, 0);
  } else if (!isFilled(field.value)) {
    add("error", "SKILL_NAME_EMPTY", `The name must be text. ${advice}`, field.offset);
  } else {
    for (const { code, message } of nameFaults(field.value, at.directoryName)) add("error", code, message, field.offset);
    if (!/^[\p{L}\p{N}-]+$/u.test(field.value) || /^\p{ASCII}+$/u.test(field.value)) return;
    const message = "The specification names only a-z and 0-9 for names; other letters may not work in every host.";
    add("warning", "SKILL_NAME_NOT_ASCII", message, field.offset);
  }
}

function lintDescription(field: StrictField | undefined, add: LintAdd): void {
  const advice = "Write `description: …`, saying what the skill does and when to use it.";
  if (field === undefined) add("error", "SKILL_DESCRIPTION_MISSING", `The front matter has no description. ${advice}`, 0);
  else if (!isFilled(field.value)) add("error", "SKILL_DESCRIPTION_EMPTY", `The description must be text. ${advice}`, field.offset);
  else lintDescriptionText(field.value, field.offset, add);
}

function lintDescriptionText(text: string, offset: number, add: LintAdd): void {
  const length = [...text].length;
  if (length > maxDescriptionLength) {
    const message = `The description has ${length} characters; at most ${maxDescriptionLength} are allowed. Shorten it.`;
    add("error", "SKILL_DESCRIPTION_TOO_LONG", message, offset);
  }
  // Direction controls and tag characters: text that people do not see and a model reads.
  if (/[\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/u.test(text)) {
    add("warning", "SKILL_HIDDEN_CHARACTERS", "The description has characters that people cannot see. Remove them.", offset);
  }
}

function lintCompatibility(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined) return;
  const { value, offset } = field;
  if (typeof value !== "string") {
    add("error", "SKILL_COMPATIBILITY_TYPE", "`compatibility` must be text. Write it in one line.", offset);
  } else if (value.trim() === "") {
    add("warning", "SKILL_COMPATIBILITY_EMPTY", "`compatibility` is empty. Remove it if the skill runs anywhere.", offset);
  } else if ([...value].length > maxCompatibilityLength) {
    const message = `\`compatibility\` has ${[...value].length} characters; at most ${maxCompatibilityLength} are allowed. Shorten it.`;
    add("error", "SKILL_COMPATIBILITY_TOO_LONG", message, offset);
  }
}

function lintLicense(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined || typeof field.value === "string") return;
  add("warning", "SKILL_LICENSE_TYPE", "`license` must be text: the licence's name, or that of a file with it.", field.offset);
}

function lintMetadata(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined || (field.value instanceof Map && ![...field.value.values()].includes(undefined))) return;
  const message = "`metadata` must be a mapping of keys to text. Flatten it, or write nested data as text.";
  add("warning", "SKILL_METADATA_TYPE", message, field.offset);
}

function lintAllowedTools(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined || (typeof field.value === "string" && !hasOuterComma(field.value))) return;
  const message =
    "`allowed-tools` must be text with spaces between the tools, such as `Read Bash(git:*)`. Not every host reads lists and commas.";
  add("warning", "SKILL_ALLOWED_TOOLS_FORM", message, field.offset);
}

function hasOuterComma(tools: string): boolean {
  return tools.replace(/\([^()]*\)/g, "").includes(",");
}

function isFilled(value: StrictField["value"]): value is string {
  return typeof value === "string" && value.trim() !== "";
}
