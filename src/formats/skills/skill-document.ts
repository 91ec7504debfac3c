import type { Diagnostic, Severity } from "../../base/diagnostic.ts";
import { shorten } from "../../base/text.ts";
import { hiddenTextCode } from "../text/decode-text.ts";
import { type FrontMatter, type FrontMatterState, parseFrontMatter } from "./front-matter.ts";
import {
  type ArgumentField,
  argumentHintField,
  argumentsField,
  booleanField,
  type FieldWarning,
  mapField,
  textField,
  toolListField,
} from "./front-matter-fields.ts";

/** A parsed SKILL.md: the fields of the Agent Skills specification and common extensions. */
export interface SkillDocument {
  /** As written, or the directory's name. */
  readonly name: string;
  readonly description: string;
  /** True if the description was derived from the body's first paragraph or heading, which models understand less well. */
  readonly descriptionInferred: boolean;
  /** The Markdown after the front matter, with `\n` line ends and without expansion. */
  readonly body: string;
  readonly license?: string;
  readonly compatibility?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** `allowed-tools`, patterns such as `Bash(git:*)` kept whole. */
  readonly allowedTools?: readonly string[];
  readonly whenToUse?: string;
  readonly argumentHint?: string;
  readonly arguments?: readonly ArgumentField[];
  readonly disableModelInvocation: boolean;
  readonly userInvocable: boolean;
  /** All other keys. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** All keys as read, to distinguish declared from inferred values. Without a prototype. */
  readonly frontMatter: Readonly<Record<string, unknown>>;
  readonly frontMatterState: FrontMatterState;
}

export interface SkillDocumentPlace {
  readonly file: string;
  readonly directoryName: string;
}

const knownKeys = new Set([
  "name",
  "description",
  "license",
  "compatibility",
  "metadata",
  "allowed-tools",
  "when_to_use",
  "argument-hint",
  "arguments",
  "disable-model-invocation",
  "user-invocable",
]);

// The specification's limit for a description, which many clients enforce.
const maxDescriptionLength = 1024;

/**
 * Reads a SKILL.md. Every text yields a document: missing fields are inferred, invalid ones are omitted, and diagnostics (at
 * most warnings) report this. `lintSkillDocument` checks conformance to the specification.
 */
export function parseSkillDocument(text: string, at: SkillDocumentPlace): { document: SkillDocument; diagnostics: readonly Diagnostic[] } {
  const frontMatter = parseFrontMatter(text);
  const diagnostics = frontMatter.problems.map((problem): Diagnostic => ({ ...problem, file: at.file }));
  const add = (severity: Severity, code: string, message: string, key?: string): void => {
    const start = key === undefined ? undefined : frontMatter.positions.get(key);
    diagnostics.push({ severity, code, message, file: at.file, ...(start && { range: { start } }) });
  };
  if (frontMatter.state === "absent" && diagnostics.every(({ code }) => code === hiddenTextCode))
    add("warning", "FRONT_MATTER_MISSING", missingFrontMatter(at));
  const document = assembleDocument(frontMatter, at, add);
  if (frontMatter.positions.has("name")) adviseName(document.name, at, add);
  if (document.description.length > maxDescriptionLength) {
    const message = `The description has ${document.description.length} characters; the specification allows ${maxDescriptionLength}, and other hosts reject or truncate it. Shorten it.`;
    add("warning", "SKILL_DESCRIPTION_TOO_LONG", message, "description");
  }
  return { document, diagnostics };
}

type Add = (severity: Severity, code: string, message: string, key?: string) => void;

function assembleDocument(frontMatter: FrontMatter, at: SkillDocumentPlace, add: Add): SkillDocument {
  const { data } = frontMatter;
  const warn: FieldWarning = (key, message) => add("warning", "SKILL_FIELD_TYPE", message, key);
  const body = trimBody(frontMatter.body);
  const described = describe(textField(data, "description", warn), body, at, add);
  const name = textField(data, "name", warn);
  if (name === undefined && frontMatter.state !== "absent") add("warning", "SKILL_NAME_MISSING", missingName(at));
  return {
    name: name ?? at.directoryName,
    ...described,
    body,
    ...definedOnly({
      license: textField(data, "license", warn),
      compatibility: textField(data, "compatibility", warn),
      metadata: mapField(data, "metadata", warn),
      allowedTools: toolListField(data, "allowed-tools", warn),
      whenToUse: textField(data, "when_to_use", warn),
      argumentHint: argumentHintField(data, "argument-hint", warn),
      arguments: argumentsField(data, "arguments", warn),
    }),
    disableModelInvocation: booleanField(data, "disable-model-invocation", warn) ?? false,
    userInvocable: booleanField(data, "user-invocable", warn) ?? true,
    extra: extraKeys(data),
    frontMatter: data,
    frontMatterState: frontMatter.state,
  };
}

function describe(
  given: string | undefined,
  body: string,
  at: SkillDocumentPlace,
  add: Add,
): { description: string; descriptionInferred: boolean } {
  if (given !== undefined) return { description: given, descriptionInferred: false };
  const description = inferDescription(body);
  const found = description === "" ? "and the body has no text to use instead" : "so the first paragraph is used instead";
  const message = `The skill "${at.directoryName}" has no description, ${found}. Add \`description:\` to the front matter, saying what the skill does and when to use it.`;
  add("warning", description === "" ? "SKILL_DESCRIPTION_MISSING" : "SKILL_DESCRIPTION_INFERRED", message);
  return { description, descriptionInferred: true };
}

function adviseName(name: string, at: SkillDocumentPlace, add: Add): void {
  for (const { code, message } of nameFaults(name, at.directoryName)) add("warning", code, message, "name");
}

function missingFrontMatter(at: SkillDocumentPlace): string {
  return `This file has no front matter. Begin it with a --- line, \`name: ${at.directoryName}\`, \`description: …\` and another --- line.`;
}

function missingName(at: SkillDocumentPlace): string {
  return `The front matter has no name; the directory's name is used. Add \`name: ${at.directoryName}\`.`;
}

function extraKeys(data: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const extra: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(data)) if (!knownKeys.has(key)) extra[key] = data[key];
  return extra;
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function definedOnly<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

// The first line keeps its indentation, because it may be code.
function trimBody(body: string): string {
  const first = body.search(/[^ \t\n]/);
  return first === -1 ? "" : body.slice(body.lastIndexOf("\n", first) + 1).trimEnd();
}

// A description is at the beginning of a body, if it has one. Every line of a text of megabytes would be looked at otherwise.
const maxInspectedBody = 20_000;

/**
 * A description derived from the body's beginning: the first paragraph in one line, else the first heading, of at most 1,024
 * characters. Empty if it has neither.
 * @internal Exported for tests.
 */
export function inferDescription(body: string): string {
  let heading = "";
  for (const block of blocks(body.slice(0, maxInspectedBody))) {
    const headingText = /^#{1,6}[ \t]+([^\n]+)/.exec(block)?.[1];
    if (heading === "" && headingText !== undefined) heading = shorten(headingText.trim(), maxDescriptionLength - 1);
    if (isProse(block)) return shorten(block.replaceAll("\n", " "), maxDescriptionLength - 1);
  }
  return heading;
}

// Blocks are separated by blank lines. Fences are not tracked: text in a fence with blank lines still describes the skill
// better than its title.
function* blocks(body: string): Generator<string> {
  let start = 0;
  for (let at = 0; at < body.length; ) {
    const end = body.indexOf("\n", at);
    const next = end === -1 ? body.length : end + 1;
    if (body.slice(at, next).trim() === "") {
      yield* block(body, start, at);
      start = next;
    }
    at = next;
  }
  yield* block(body, start, body.length);
}

function* block(body: string, start: number, end: number): Generator<string> {
  const text = body.slice(start, end).trim();
  if (text !== "") yield text;
}

function isProse(block: string): boolean {
  if (/^(?:#|<|```|~~~|\||!\[|\[!\[)/.test(block)) return false;
  const firstEnd = block.indexOf("\n");
  if (firstEnd === -1) return !isThematicBreak(block);
  const secondEnd = block.indexOf("\n", firstEnd + 1);
  const second = block.slice(firstEnd + 1, secondEnd === -1 ? undefined : secondEnd);
  return !isThematicBreak(block.slice(0, firstEnd)) && !isSetextUnderline(second);
}

// Character by character, because a regular expression with a repeated group stores each repetition, and a line can have
// millions.
function isThematicBreak(line: string): boolean {
  const mark = line[0]!;
  if (!"-*_".includes(mark)) return false;
  let marks = 0;
  for (const char of line) {
    if (char === mark) marks++;
    else if (char !== " " && char !== "\t") return false;
  }
  return marks >= 3;
}

function isSetextUnderline(line: string): boolean {
  return /^(?:=+|-+)[ \t]*$/.test(line);
}

/** A rule of the Agent Skills specification that a skill's name violates. */
interface NameFault {
  readonly code: string;
  readonly message: string;
}

const maxNameLength = 64;

/**
 * The violations of the Agent Skills specification in a skill's name, as the reference validator checks them: letters of any
 * script, compared after NFKC normalisation, lengths in code points.
 */
export function nameFaults(written: string, directoryName: string): readonly NameFault[] {
  const name = written.trim().normalize("NFKC");
  const length = [...name].length;
  const shown = JSON.stringify(name.slice(0, 80));
  const faults: (NameFault | false)[] = [
    length > maxNameLength &&
      fault("SKILL_NAME_TOO_LONG", `The name has ${length} characters; at most ${maxNameLength} are allowed. Shorten it.`),
    name !== name.toLowerCase() && fault("SKILL_NAME_NOT_LOWERCASE", `The name ${shown} must be lowercase.${nearest(name)}`),
    /^-|-$/.test(name) && fault("SKILL_NAME_HYPHEN_EDGE", `The name ${shown} begins or ends with a hyphen. Remove it.`),
    name.includes("--") && fault("SKILL_NAME_DOUBLE_HYPHEN", `The name ${shown} has two hyphens in a row. Leave one.`),
    !/^[\p{L}\p{N}-]*$/u.test(name) &&
      fault("SKILL_NAME_CHARACTERS", `The name ${shown} must contain only letters, digits and hyphens.${nearest(name)}`),
    name !== directoryName.normalize("NFKC") &&
      fault(
        "SKILL_NAME_MISMATCH",
        `The name ${shown} must equal the name of its directory, ${JSON.stringify(directoryName)}. Rename one of them.`,
      ),
  ];
  return faults.filter((found) => found !== false);
}

function fault(code: string, message: string): NameFault {
  return { code, message };
}

function nearest(name: string): string {
  const slug = name
    .slice(0, maxNameLength)
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part !== "")
    .join("-");
  return slug === "" ? "" : ` For example "${slug}".`;
}
