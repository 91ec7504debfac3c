import type { Diagnostic, Severity } from "../../base/diagnostic.ts";
import { maxFrontMatterLength } from "../text/limits.ts";
import { lintStrictYaml } from "../text/strict-yaml.ts";
import { findFrontMatterBlock } from "./front-matter-block.ts";
import { lintSkillFields } from "./lint-skill-fields.ts";
import type { SkillDocumentPlace } from "./skill-document.ts";
import { createTextReport } from "./text-report.ts";

const maxBodyLines = 500;

/**
 * Checks a SKILL.md against the Agent Skills specification as strictly as its reference validator does; its errors are
 * that validator's, each under a code of its own. Warnings and infos are what the specification says beyond it. A
 * document that cannot be read by the strict rules has only the errors that say why.
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
      "The reference validator takes --- inside the front matter for its end. Write it otherwise.",
      start + dashes,
    );
  const fields = lintStrictYaml(yaml, (severity, code, message, offset) => add(severity, code, message, start + offset));
  if (fields !== undefined) lintSkillFields(fields, at, (severity, code, message, offset) => add(severity, code, message, start + offset));
  lintBody(source.slice(bodyStart), bodyStart, add);
  return report.diagnostics;
}

/**
 * The load diagnostics of a document together with its lint: a warning that the lint repeats as an error is left out.
 */
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
  if (body.trim() === "")
    add("warning", "SKILL_BODY_EMPTY", "The body is empty, so a model learns nothing from the skill. Write its instructions.", bodyStart);
  if (lines > maxBodyLines) {
    const message = `The body has ${lines} lines; the specification recommends less than ${maxBodyLines}. Move detail into files of references/.`;
    add("info", "SKILL_BODY_LONG", message, bodyStart);
  }
}
