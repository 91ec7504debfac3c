import type { Diagnostic } from "../../base/diagnostic.ts";
import { createTextReport } from "../skills/front-matter-fields.ts";
import { expandPrompt, parsePromptFile } from "../skills/prompt-file.ts";
import { maxDocumentBytes } from "../text/limits.ts";
import { parseTomlTexts } from "./toml-texts.ts";

/** A command as a file describes it: a prompt that takes the place of what the person wrote. */
export interface CommandFile {
  readonly description?: string;
  /** The prompt with the arguments filled in. Commands of a shell in it are never run. */
  expand(argumentsText: string): string;
}

export interface ParsedCommand {
  /** Absent: the file describes no command. */
  readonly command?: CommandFile;
  readonly diagnostics: readonly Diagnostic[];
}

/** What stands for a place in a prompt, such as `${CLAUDE_PLUGIN_ROOT}`, by its spelling. */
export type PromptPlaces = Readonly<Record<string, string>>;

/** Reads a command in Markdown, as Claude Code, Copilot and Cursor have them. Never throws. */
export function parseMarkdownCommand(text: string, file: string, places: PromptPlaces): ParsedCommand {
  const { prompt, diagnostics } = parsePromptFile(text.slice(0, maxDocumentBytes), file);
  const body = prompt.body.trim();
  if (body === "") return { diagnostics: [...diagnostics, empty(file)] };
  const argumentNames = prompt.arguments?.map(({ name }) => name) ?? [];
  const shell = /(?:^|\s)!`[^`\n]+`|^```!/m.test(body) ? [shellNeverRuns(file)] : [];
  return {
    command: {
      ...(prompt.description !== undefined && { description: prompt.description }),
      expand: (argumentsText) => fillPlaces(expandPrompt(body, { argumentsText, argumentNames }), places),
    },
    diagnostics: [...diagnostics, ...shell],
  };
}

/** Reads a command in TOML, as Gemini has them. Never throws. */
export function parseTomlCommand(text: string, file: string, places: PromptPlaces): ParsedCommand {
  const report = createTextReport(text, file);
  const { texts, faults } = parseTomlTexts(text);
  for (const { message, offset } of faults) report.add("error", "TOML_SYNTAX", message, offset);
  const prompt = texts.get("prompt")?.trim() ?? "";
  if (prompt === "") return { diagnostics: faults.length > 0 ? report.diagnostics : [...report.diagnostics, empty(file)] };
  const description = texts.get("description");
  const shell = /!\{/.test(prompt) ? [shellNeverRuns(file)] : [];
  return {
    command: {
      ...(description !== undefined && { description }),
      expand(argumentsText) {
        const filled = prompt.replaceAll("{{args}}", () => argumentsText);
        return fillPlaces(filled === prompt && argumentsText !== "" ? `${prompt}\n\n${argumentsText}` : filled, places);
      },
    },
    diagnostics: [...report.diagnostics, ...shell],
  };
}

function fillPlaces(text: string, places: PromptPlaces): string {
  return Object.entries(places).reduce((filled, [spelling, value]) => filled.replaceAll(spelling, () => value), text);
}

function empty(file: string): Diagnostic {
  return { severity: "error", code: "COMMAND_EMPTY", message: "This command has no prompt and is left out. Write one.", file };
}

function shellNeverRuns(file: string): Diagnostic {
  const message = "The shell commands in this prompt are not run; the model reads them as they are written.";
  return { severity: "info", code: "COMMAND_SHELL", message, file };
}
