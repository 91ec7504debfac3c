import { basename, extname } from "node:path";
import type { Diagnostic, Position } from "../base/diagnostic.ts";
import { checkToolName } from "../tools/tool.ts";

/** The statically known definition of a tool. Undefined: unknown. */
export interface KnownDefinition {
  readonly name: string;
  readonly description: string | undefined;
  readonly overridesBuiltInTool: boolean | undefined;
  readonly file: string;
  /** False: the file defines several tools, so its name is not that of a tool. */
  readonly isAloneInFile: boolean;
  readonly position: (field: "name" | "description") => Position | undefined;
}

/** Advice about a tool's name and description. */
export function adviseDefinition(tool: KnownDefinition): readonly Diagnostic[] {
  return [...adviseDescription(tool), ...adviseFileName(tool), ...adviseBuiltinName(tool)];
}

function adviseDescription(tool: KnownDefinition): Diagnostic[] {
  const { name, description } = tool;
  // Creating the tool reports a missing description, with its own code.
  if (description === undefined || description.trim() === "" || isInformative(description, name)) return [];
  const message = `The description of "${name}" is too vague for a model to choose the tool: ${JSON.stringify(description.slice(0, 80))}. Say what the tool does, what it returns and when to use it.`;
  return [advice("ADVICE_DESCRIPTION_VAGUE", message, tool, "description")];
}

const emptyWords = new Set(
  (
    "a an and any are as at be by can do does done for from get gets given handle handles handler has help helper helps in into is it its of on or " +
    "perform performs process processes provide provides run runs some something stuff that the thing things this to tool tools use used useful uses " +
    "using util utility various via when which with work works you your execute executes function functions misc data input output"
  ).split(" "),
);

/** At least three words that are not part of the tool's name. */
function isInformative(description: string, name: string): boolean {
  const known = new Set(wordsOf(name).map(stem));
  const informative = wordsOf(description).filter((word) => !emptyWords.has(word) && !known.has(stem(word)));
  // Scripts without spaces have few "words" with much meaning.
  return new Set(informative.map(stem)).size >= 3 || /[^\p{ASCII}]{8,}/u.test(description);
}

function wordsOf(text: string): readonly string[] {
  return text
    .slice(0, 2_000)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
}

function stem(word: string): string {
  return word.length > 4 ? word.replace(/(?:ing|es|s|ed|er)$/, "") : word.replace(/s$/, "");
}

function adviseFileName(tool: KnownDefinition): Diagnostic[] {
  const fileName = basename(tool.file, extname(tool.file));
  // An invalid name is an error of its own, which takes precedence.
  if (!checkToolName(tool.name).ok) return [];
  if (!tool.isAloneInFile || plain(fileName) === plain(tool.name) || /^(?:index|main|skill|tools?)$/.test(fileName)) return [];
  const message = `Tool "${tool.name}" is defined in ${basename(tool.file)}. Name the file after the tool, so that it is easy to find.`;
  return [{ ...advice("ADVICE_NAME_NOT_FILE", message, tool, "name"), severity: "info" }];
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[-_.\s]/g, "");
}

function adviseBuiltinName(tool: KnownDefinition): Diagnostic[] {
  if (!builtinToolNames.has(tool.name) || tool.overridesBuiltInTool === true) return [];
  const message = `"${tool.name}" is the name of a built-in tool, so this tool is not available where the built-in one is. Rename it, or set overridesBuiltInTool: true to replace the built-in tool.`;
  return [advice("ADVICE_BUILTIN_NAME", message, tool, "name")];
}

function advice(code: string, message: string, { file, position }: KnownDefinition, field: "name" | "description"): Diagnostic {
  const start = position(field);
  return { severity: "warning", code, message, file, ...(start && { range: { start } }) };
}

/** The built-in tools of Copilot hosts; a skill's tool with the same name competes with them. */
const builtinToolNames: ReadonlySet<string> = new Set([
  "ask_user",
  "bash",
  "create",
  "edit",
  "exit_plan_mode",
  "glob",
  "grep",
  "list_agents",
  "list_bash",
  "read_agent",
  "read_bash",
  "skill",
  "sql",
  "stop_bash",
  "task",
  "tool_search_tool_regex",
  "view",
  "web_fetch",
  "write_agent",
  "write_bash",
]);
