import { join, relative, sep } from "node:path";
import { type ParsedCommand, type PromptPlaces, parseMarkdownCommand, parseTomlCommand } from "../../formats/plugins/command-file.ts";
import { maxDocumentBytes } from "../../formats/text/limits.ts";
import type { PluginCommand } from "../plugin-api.ts";
import { type BundleFiles, kindOf } from "./bundle-files.ts";
import type { Sources } from "./component-sources.ts";

const dialectsWithCommands: ReadonlySet<string> = new Set(["claude", "copilot", "cursor", "gemini"]);

/**
 * Reads the commands of a bundle. As their own clients call them: `/plugin:name` for Claude Code and Copilot, `/name` for
 * Cursor, and for Gemini `/folder:name`.
 */
export function loadCommands(files: BundleFiles, sources: Sources, places: PromptPlaces): readonly PluginCommand[] {
  const { dialect, name } = sources;
  if (!dialectsWithCommands.has(dialect)) return [];
  const isToml = dialect === "gemini";
  const byName = new Map<string, PluginCommand>();
  for (const { file, path } of commandFiles(files, sources, isToml ? /\.toml$/i : /\.md$/i)) {
    const own = path.replace(/\.(?:md|toml)$/i, "").replaceAll("/", ":");
    const called = dialect === "claude" || dialect === "copilot" ? `${name}:${own}` : own;
    if (!/^[^\s/]{1,200}$/.test(called)) {
      const message = `"${called.slice(0, 100)}" cannot be the name of a command, since it has white space. Rename the file.`;
      files.report({ severity: "error", code: "COMMAND_NAME", message, file });
      continue;
    }
    const text = files.read(file, maxDocumentBytes);
    const parsed = text === undefined ? undefined : (isToml ? parseTomlCommand : parseMarkdownCommand)(text, file, places);
    parsed?.diagnostics.forEach((found) => void files.report(found));
    if (parsed?.command !== undefined && !byName.has(called)) byName.set(called, toCommand(called, parsed.command));
  }
  return [...byName.values()];
}

function commandFiles(
  files: BundleFiles,
  { dialect, given }: Sources,
  fits: RegExp,
): readonly { readonly file: string; readonly path: string }[] {
  const usual = files.has("commands", "folder") ? [join(files.root, "commands")] : [];
  const named = given.commands?.flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  const all = dialect === "claude" || named === undefined ? [...usual, ...(named ?? [])] : named;
  return [...new Set(all)].flatMap((place) => {
    if (kindOf(place) === "file") return [{ file: place, path: place.split(sep).at(-1)! }];
    return files.walk(place, fits, 3).map((file) => ({ file, path: relative(place, file).split(sep).join("/") }));
  });
}

function toCommand(name: string, command: NonNullable<ParsedCommand["command"]>): PluginCommand {
  const { description } = command;
  return Object.freeze({
    name,
    ...(description !== undefined && { description }),
    handler: ({ arguments: argumentsText }: { readonly arguments: string }) => command.expand(argumentsText),
  });
}
