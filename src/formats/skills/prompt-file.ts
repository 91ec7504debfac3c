import type { Diagnostic } from "../../base/diagnostic.ts";
import { parseFrontMatter } from "./front-matter.ts";
import {
  type ArgumentField,
  argumentHintField,
  argumentsField,
  booleanField,
  type FieldWarning,
  textField,
} from "./front-matter-fields.ts";

/** A Markdown prompt with optional front matter. */
export interface PromptFile {
  readonly name?: string;
  readonly description?: string;
  readonly title?: string;
  readonly arguments?: readonly ArgumentField[];
  readonly argumentHint?: string;
  /** False: it is context for the model and not offered to users. */
  readonly userInvocable?: boolean;
  /** Without expansion. */
  readonly body: string;
}

/** Reads a prompt file. Every text is valid; unreadable front matter is reported. */
export function parsePromptFile(text: string, file: string): { prompt: PromptFile; diagnostics: readonly Diagnostic[] } {
  const { data, body, problems, positions } = parseFrontMatter(text);
  const diagnostics = problems.map((problem): Diagnostic => ({ ...problem, file }));
  const warn: FieldWarning = (key, message) => {
    const start = positions.get(key);
    diagnostics.push({ severity: "warning", code: "PROMPT_FIELD_TYPE", message, file, ...(start && { range: { start } }) });
  };
  const fields = {
    name: textField(data, "name", warn),
    title: textField(data, "title", warn),
    description: textField(data, "description", warn),
    arguments: argumentsField(data, "arguments", warn),
    argumentHint: argumentHintField(data, "argument-hint", warn),
    userInvocable: booleanField(data, "user-invocable", warn),
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { prompt: { ...Object.fromEntries(given), body }, diagnostics };
}
