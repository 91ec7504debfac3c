import { parse, TomlError } from "smol-toml";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { expandPrompt } from "../skills/expand-prompt.ts";
import { parsePromptFile } from "../skills/prompt-file.ts";
import { fileTooLarge, maxDocumentBytes, maxJsonBytes } from "../text/limits.ts";

/** A command file: a prompt that replaces the user's input. */
export interface CommandFile {
  readonly description?: string;
  /** The prompt with arguments inserted. Shell commands in it are never run. */
  expand(argumentsText: string): string;
}

export interface ParsedCommand {
  /** Absent: the file does not contain a command. */
  readonly command?: CommandFile;
  readonly diagnostics: readonly Diagnostic[];
}

/** The paths of placeholders in a prompt, such as `${CLAUDE_PLUGIN_ROOT}`. */
export type PromptPlaces = Readonly<Record<string, string>>;

/** Reads a Markdown command of Claude Code, Copilot or Cursor. Never throws. */
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

/** Reads a TOML command of Gemini. Never throws. */
export function parseTomlCommand(text: string, file: string, places: PromptPlaces): ParsedCommand {
  if (text.length > maxJsonBytes) return { diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const table = parseToml(text);
  if (table instanceof TomlError) return { diagnostics: [tomlFault(table, file)] };
  const prompt = typeof table["prompt"] === "string" ? table["prompt"].trim() : "";
  if (prompt === "") return { diagnostics: [empty(file)] };
  const { description } = table;
  return {
    command: {
      ...(typeof description === "string" && { description }),
      expand(argumentsText) {
        const filled = prompt.replaceAll("{{args}}", () => argumentsText);
        return fillPlaces(filled === prompt && argumentsText !== "" ? `${prompt}\n\n${argumentsText}` : filled, places);
      },
    },
    diagnostics: /!\{/.test(prompt) ? [shellNeverRuns(file)] : [],
  };
}

function parseToml(text: string): Readonly<Record<string, unknown>> | TomlError {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof TomlError) return error;
    throw error;
  }
}

function tomlFault({ message, line, column }: TomlError, file: string): Diagnostic {
  // The parser's message quotes the lines around the fault.
  const [what = ""] = message.replace(/^Invalid TOML document: /, "").split("\n", 1);
  return {
    severity: "error",
    code: "TOML_SYNTAX",
    message: `This file is not valid TOML: ${what}.`,
    file,
    range: { start: { line, column } },
  };
}

function fillPlaces(text: string, places: PromptPlaces): string {
  return Object.entries(places).reduce((filled, [spelling, value]) => filled.replaceAll(spelling, () => value), text);
}

function empty(file: string): Diagnostic {
  return { severity: "error", code: "COMMAND_EMPTY", message: "This command has no prompt and is ignored. Add one.", file };
}

function shellNeverRuns(file: string): Diagnostic {
  const message = "The shell commands in this prompt are not run; the model sees them as text.";
  return { severity: "info", code: "COMMAND_SHELL", message, file };
}
