import { type Alias, isAlias, isCollection, isMap, isNode, isScalar, type Node, type Pair, visit, type YAMLMap } from "yaml";
import type { Diagnostic, Severity } from "../../base/diagnostic.ts";
import { maxFrontMatterLength } from "../text/limits.ts";
import { parseYaml } from "../text/parse-yaml.ts";
import { findFrontMatterBlock } from "./front-matter.ts";
import { nameFaults, type SkillDocumentPlace } from "./skill-document.ts";
import { createTextReport } from "./text-report.ts";

const maxBodyLines = 500;

/**
 * Checks a SKILL.md against the Agent Skills specification as strictly as the reference validator. Errors correspond to those
 * of the validator, each with its own code. Warnings and infos cover further recommendations of the specification. A document
 * that the strict rules cannot read has only the errors that explain this.
 */
export function lintSkillDocument(text: string, at: SkillDocumentPlace): readonly Diagnostic[] {
  const source = text.replace(/\r\n?/g, "\n");
  const report = createTextReport(source, at.file);
  const add = (severity: Severity, code: string, message: string, offset?: number): void => report.add(severity, code, message, offset);
  const place = findPlace(source);
  if ("code" in place) {
    add("error", place.code, place.message, 0);
    return report.diagnostics;
  }
  const { start, end, bodyStart } = place;
  const yaml = source.slice(start, end);
  const dashes = yaml.indexOf("---");
  if (dashes !== -1)
    add(
      "warning",
      "SKILL_DASHES_IN_FRONT_MATTER",
      "The reference validator treats --- inside the front matter as its end. Rephrase the value without it.",
      start + dashes,
    );
  const fields = lintStrictYaml(yaml, (severity, code, message, offset) => add(severity, code, message, start + offset));
  if (fields !== undefined) lintSkillFields(fields, at, (severity, code, message, offset) => add(severity, code, message, start + offset));
  lintBody(source.slice(bodyStart), bodyStart, add);
  return report.diagnostics;
}

/** The load diagnostics of a document combined with its lint. A warning that the lint reports as an error is omitted. */
export function withLint(diagnostics: readonly Diagnostic[], lint: readonly Diagnostic[]): readonly Diagnostic[] {
  const repeated = new Set(lint.map(({ code, file }) => `${code}\0${file}`));
  return [...diagnostics.filter(({ code, file }) => !repeated.has(`${code}\0${file}`)), ...lint];
}

type Place =
  | { readonly start: number; readonly end: number; readonly bodyStart: number }
  | { readonly code: string; readonly message: string };

function findPlace(source: string): Place {
  const block = source.startsWith("---") ? findFrontMatterBlock(source) : undefined;
  if (block === undefined && !source.startsWith("---")) {
    const mark = source.startsWith("\uFEFF") ? " Save the file without a byte order mark." : "";
    return { code: "FRONT_MATTER_MISSING", message: `A SKILL.md must begin with front matter: --- must be its first line.${mark}` };
  }
  if (block?.kind !== "closed")
    return { code: "FRONT_MATTER_UNCLOSED", message: "The front matter has no closing --- line. Add one after its last key." };
  if (block.end - block.start <= maxFrontMatterLength) return block;
  return {
    code: "FRONT_MATTER_TOO_LARGE",
    message: `The front matter has more than ${maxFrontMatterLength} characters. Move long text into the body.`,
  };
}

function lintBody(body: string, bodyStart: number, add: (severity: Severity, code: string, message: string, offset: number) => void): void {
  const lines = body.trimEnd().split("\n").length;
  if (body.trim() === "") add("warning", "SKILL_BODY_EMPTY", "The body is empty. Write the skill's instructions for the model.", bodyStart);
  if (lines > maxBodyLines) {
    const message = `The body has ${lines} lines; the specification recommends fewer than ${maxBodyLines}. Move details into files in references/.`;
    add("info", "SKILL_BODY_LONG", message, bodyStart);
  }
}

const allowedFields = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
const maxDescriptionLength = 1024;
const maxCompatibilityLength = 500;

/** Checks the fields of strict front matter one by one. Lengths are in code points, as the reference validator counts. */
function lintSkillFields(fields: readonly StrictField[], at: SkillDocumentPlace, add: LintAdd): void {
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
  const message = `${names}: not a field of the specification. Allowed are ${allowedFields.join(", ")}; put your own fields under metadata.`;
  add("error", "SKILL_FIELDS_UNEXPECTED", message, unexpected[0]!.offset);
}

function lintName(field: StrictField | undefined, at: SkillDocumentPlace, add: LintAdd): void {
  const advice = `Write \`name: ${at.directoryName}\`.`;
  if (field === undefined) {
    add("error", "SKILL_NAME_MISSING", `The front matter has no name. ${advice}`, 0);
  } else if (!isFilled(field.value)) {
    add("error", "SKILL_NAME_EMPTY", `The name must be a string. ${advice}`, field.offset);
  } else {
    for (const { code, message } of nameFaults(field.value, at.directoryName)) add("error", code, message, field.offset);
    if (!/^[\p{L}\p{N}-]+$/u.test(field.value) || /^\p{ASCII}+$/u.test(field.value)) return;
    const message = "The specification allows only a-z, 0-9 and hyphens in names; other letters may not work in every host.";
    add("warning", "SKILL_NAME_NOT_ASCII", message, field.offset);
  }
}

function lintDescription(field: StrictField | undefined, add: LintAdd): void {
  const advice = "Write `description: …`, saying what the skill does and when to use it.";
  if (field === undefined) add("error", "SKILL_DESCRIPTION_MISSING", `The front matter has no description. ${advice}`, 0);
  else if (!isFilled(field.value)) add("error", "SKILL_DESCRIPTION_EMPTY", `The description must be a string. ${advice}`, field.offset);
  else {
    const text = field.value;
    const offset = field.offset;
    const length = [...text].length;
    if (length > maxDescriptionLength) {
      const message = `The description has ${length} characters; at most ${maxDescriptionLength} are allowed. Shorten it.`;
      add("error", "SKILL_DESCRIPTION_TOO_LONG", message, offset);
    }
    // Direction controls and tag characters: invisible to people, but read by models.
    if (/[\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/u.test(text)) {
      add("warning", "SKILL_HIDDEN_CHARACTERS", "The description contains invisible characters. Remove them.", offset);
    }
  }
}

function lintCompatibility(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined) return;
  const { value, offset } = field;
  if (typeof value !== "string") {
    add("error", "SKILL_COMPATIBILITY_TYPE", "`compatibility` must be a string. Write it in one line.", offset);
  } else if (value.trim() === "") {
    add("warning", "SKILL_COMPATIBILITY_EMPTY", "`compatibility` is empty. Remove it if the skill runs anywhere.", offset);
  } else if ([...value].length > maxCompatibilityLength) {
    const message = `\`compatibility\` has ${[...value].length} characters; at most ${maxCompatibilityLength} are allowed. Shorten it.`;
    add("error", "SKILL_COMPATIBILITY_TOO_LONG", message, offset);
  }
}

function lintLicense(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined || typeof field.value === "string") return;
  add("warning", "SKILL_LICENSE_TYPE", "`license` must be a string: the name of the licence or of a file that contains it.", field.offset);
}

function lintMetadata(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined || (field.value instanceof Map && ![...field.value.values()].includes(undefined))) return;
  const message = "`metadata` must be a mapping of keys to strings. Flatten it, or write nested data as a string.";
  add("warning", "SKILL_METADATA_TYPE", message, field.offset);
}

function lintAllowedTools(field: StrictField | undefined, add: LintAdd): void {
  if (field === undefined || (typeof field.value === "string" && !hasOuterComma(field.value))) return;
  const message =
    "`allowed-tools` must be a string with spaces between the tools, such as `Read Bash(git:*)`. Not every host supports lists and commas.";
  add("warning", "SKILL_ALLOWED_TOOLS_FORM", message, field.offset);
}

function hasOuterComma(tools: string): boolean {
  return tools.replace(/\([^()]*\)/g, "").includes(",");
}

function isFilled(value: StrictField["value"]): value is string {
  return typeof value === "string" && value.trim() !== "";
}

type LintAdd = (severity: Severity, code: string, message: string, offset: number) => void;

/** A top-level entry of strict front matter. `value` is text for every scalar. */
interface StrictField {
  readonly key: string;
  readonly offset: number;
  readonly value: string | readonly StrictValue[] | ReadonlyMap<string, StrictValue>;
}

/** The text of a scalar; absent for a list or mapping. */
type StrictValue = string | undefined;

/**
 * Reads YAML by the rules of StrictYAML, which the Agent Skills reference validator uses: no flow collections, anchors,
 * aliases, tags or duplicate keys, and every scalar is text. Undefined if it is not a mapping.
 */
function lintStrictYaml(source: string, add: LintAdd): readonly StrictField[] | undefined {
  const document = parseYaml(source, "failsafe");
  if ("message" in document) {
    const message = `The front matter is not YAML: ${document.message}. Put quotes around text that holds ": " or begins with a sign.`;
    add("error", "SKILL_YAML_INVALID", message, document.offset);
    return undefined;
  }
  visit(document, { Node: (_key, node) => lintNode(node, add) });
  if (isMap(document.contents))
    return (document.contents as YAMLMap<Node, Node | null>).items.map(({ key, value }: Pair<Node, Node | null>) => ({
      key: scalarText(key),
      offset: offsetOf(key),
      value: toFieldValue(value),
    }));
  add("error", "FRONT_MATTER_NOT_MAP", "The front matter must be a list of `key: value` lines.", 0);
  return undefined;
}

function lintNode(node: Alias | Node, add: LintAdd): void {
  const offset = offsetOf(node);
  const found = (code: string, message: string): void => add("error", code, message, offset);
  if (isAlias(node)) {
    found("SKILL_YAML_ALIAS", "Aliases are not allowed in front matter. Put quotes around text that begins with *.");
    return;
  }
  if (node.anchor !== undefined)
    found("SKILL_YAML_ANCHOR", "Anchors are not allowed in front matter. Put quotes around text that begins with &.");
  if (hasTag(node)) found("SKILL_YAML_TAG", "Tags are not allowed in front matter. Put quotes around text that begins with !.");
  if (isMap(node)) {
    const map = node as YAMLMap<Node, Node | null>;
    const seen = new Set<string>();
    for (const { key } of map.items) {
      const name = scalarText(key);
      if (seen.has(name)) add("error", "FRONT_MATTER_DUPLICATE_KEY", `The key "${name}" occurs twice. Remove one of them.`, offsetOf(key));
      seen.add(name);
    }
  }
  if (!isCollection(node) || !node.flow) return;
  if (isMap(node))
    found("SKILL_YAML_FLOW_MAP", "Mappings in { } are not allowed in front matter. Write one indented `key: value` line for each entry.");
  else
    found(
      "SKILL_YAML_FLOW_LIST",
      "Lists in [ ] are not allowed in front matter. Write one `- item` line for each item, or put quotes around text.",
    );
}

// A collection always has a tag, a scalar only if it is written.
function hasTag(node: Node): boolean {
  const { tag } = node as { tag?: string };
  return tag !== undefined && !(isCollection(node) && /^tag:yaml\.org,2002:(?:map|seq)$/.test(tag));
}

function toFieldValue(node: Node | null): StrictField["value"] {
  if (isMap(node)) return new Map((node as YAMLMap<Node, Node | null>).items.map(({ key, value }) => [scalarText(key), toEntry(value)]));
  return isCollection(node) ? node.items.map((item) => toEntry(item as Node | null)) : scalarText(node);
}

function toEntry(node: Node | null): StrictValue {
  return isCollection(node) ? undefined : scalarText(node);
}

function scalarText(node: Node | null): string {
  return isScalar(node) ? String(node.value ?? "") : "";
}

function offsetOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}
