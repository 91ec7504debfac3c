import { basename, join, relative, sep } from "node:path";
import { parseAgentFile } from "../../formats/agents/agent-file.ts";
import type { VariableLookup } from "../../formats/mcp/expand-variables.ts";
import { type ParsedCommand, type PromptPlaces, parseMarkdownCommand, parseTomlCommand } from "../../formats/plugins/command-file.ts";
import { type HookCommand, parseHookConfig } from "../../formats/plugins/hook-config.ts";
import { parseFrontMatter } from "../../formats/skills/front-matter.ts";
import { booleanField } from "../../formats/skills/front-matter-fields.ts";
import type { JsonPath } from "../../formats/text/json-document.ts";
import { maxDocumentBytes, maxJsonBytes } from "../../formats/text/limits.ts";
import type { PluginAgent, PluginCommand } from "../plugin-api.ts";
import { type BundleContext, type BundleFiles, isLinkOut, kindOf, type Sources } from "./bundle.ts";
import { createMatcher } from "./hooks/run-hook.ts";

const dialectsWithAgents: ReadonlySet<string> = new Set(["claude", "copilot", "cursor", "gemini"]);

/** Reads the agents of a bundle. Of one name the first counts, as the Copilot runtime has it. */
export function loadAgents(files: BundleFiles, { dialect, given }: Sources, variables: VariableLookup): readonly PluginAgent[] {
  if (!dialectsWithAgents.has(dialect)) return [];
  const usual = files.has("agents", "folder") ? [join(files.root, "agents")] : [];
  const places = given.agents?.flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  const found = (places ?? usual).flatMap((place) => (kindOf(place) === "file" ? [place] : files.walk(place, /\.md$/i, 2)));
  const byName = new Map<string, PluginAgent>();
  for (const file of new Set(found)) {
    const agent = loadAgent(files, file, variables);
    if (agent === undefined) continue;
    if (!byName.has(agent.name)) byName.set(agent.name, agent);
    else files.report({ severity: "warning", code: "BUNDLE_AGENT", message: `Another agent named "${agent.name}" is used instead.`, file });
  }
  return [...byName.values()];
}

function loadAgent(files: BundleFiles, file: string, variables: VariableLookup): PluginAgent | undefined {
  const text = files.read(file, maxDocumentBytes);
  if (text === undefined) return undefined;
  const { agent, excludedTools, diagnostics } = parseAgentFile(text, file, { variables });
  diagnostics.forEach((found) => void files.report(found));
  if (agent === undefined || excludedTools.length === 0) return agent;
  // More than its file allows is worse than nothing.
  const message = `Agent "${agent.name}" is ignored: disallowedTools is not supported for a plugin's agent. List its tools in "tools" instead.`;
  files.report({ severity: "warning", code: "AGENT_LEFT_OUT", message, file });
  return undefined;
}

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
      const message = `"${called.slice(0, 100)}" is not a valid command name, because it contains white space. Rename the file.`;
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

const maxContextBytes = 262_144;

/** Reads what a bundle puts before every conversation: Gemini's context files, and Cursor's rules that always apply. */
export function loadContext(files: BundleFiles, sources: Sources): readonly BundleContext[] {
  if (sources.dialect === "gemini") return contextFiles(files, sources);
  return sources.dialect === "cursor" ? rules(files, sources) : [];
}

function contextFiles(files: BundleFiles, { given }: Sources): readonly BundleContext[] {
  const usual = files.has("GEMINI.md", "file") ? [join(files.root, "GEMINI.md")] : [];
  const named = given.context?.flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  return (named ?? usual).flatMap((file) => {
    const text = files.read(file, maxContextBytes);
    return text === undefined || text.trim() === "" ? [] : [{ path: files.nameOf(file), text }];
  });
}

function rules(files: BundleFiles, { given }: Sources): readonly BundleContext[] {
  const usual = files.has("rules", "folder") ? [join(files.root, "rules")] : [];
  const named = given.rules?.flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  const found = (named ?? usual).flatMap((place) => (kindOf(place) === "file" ? [place] : files.walk(place, /\.(?:mdc|md)$/i, 2)));
  return [...new Set(found)].flatMap((file) => {
    const text = files.read(file, maxContextBytes);
    if (text === undefined) return [];
    const { data, body } = parseFrontMatter(text);
    if (booleanField(data, "alwaysApply", () => {}) === true)
      return body.trim() === "" ? [] : [{ path: files.nameOf(file), text: body.trim() }];
    const message = `Rule ${basename(file)} is ignored: rules that apply only to some files or on request are not supported.`;
    files.report({ severity: "info", code: "BUNDLE_RULE", message, file });
    return [];
  });
}

const usualFiles: Readonly<Record<string, readonly string[]>> = {
  claude: ["hooks/hooks.json"],
  copilot: ["hooks.json", "hooks/hooks.json"],
  codex: ["hooks/hooks.json"],
  gemini: ["hooks/hooks.json"],
};

/**
 * Reads the hooks of a bundle. With `off` they are told and left out. Undefined: they cannot be read as they are written, so
 * the bundle must not be used, since they may be what keeps calls from being made.
 */
export function loadHooks(files: BundleFiles, sources: Sources, mode: "run" | "off"): readonly HookCommand[] | undefined {
  const hooks = readAll(files, sources);
  if (mode === "run" || hooks === undefined || hooks.length === 0) return mode === "run" ? hooks : (hooks ?? []);
  const message = `The ${hooks.length} hooks of this plugin are disabled: the plugin is not named in the configuration or in an option.`;
  files.report({ severity: "info", code: "BUNDLE_HOOKS_OFF", message, file: sources.manifestFile });
  return [];
}

/** Undefined: some of them cannot be read. */
function readAll(files: BundleFiles, { dialect, given }: Sources): readonly HookCommand[] | undefined {
  let isWhole = true;
  const lost = (): readonly HookCommand[] => {
    isWhole = false;
    return [];
  };
  const read = (file: string, text: string, at?: JsonPath): readonly HookCommand[] => {
    const config = parseHookConfig(text, { file, dialect, at });
    config.diagnostics.forEach((found) => void files.report(found));
    isWhole &&= config.isWhole;
    return config.hooks.filter((hook) => isMatchable(files, hook, file));
  };
  const readFile = (file: string): readonly HookCommand[] => {
    const text = files.read(file, maxJsonBytes);
    return text === undefined ? lost() : read(file, text);
  };
  // Claude Code takes what the manifest names on top of the usual file; everybody else, instead of it.
  const places = dialect === "claude" || given.hooks === undefined ? (usualFiles[dialect] ?? []) : [];
  const usual = places.filter((path) => files.has(path, "file") || isLinkOut(files, path)).slice(0, 1);
  const ofUsual = usual.flatMap((path) => (isLinkOut(files, path) ? lost() : readFile(join(files.root, path))));
  const named = given.hooks?.flatMap((source) => {
    if (source.kind === "inline") return read(source.file, source.text, source.at);
    const file = files.find(source.path, source);
    if (file === undefined) return lost();
    return usual.some((path) => join(files.root, path) === file) ? [] : readFile(file);
  });
  return isWhole ? [...ofUsual, ...(named ?? [])] : undefined;
}

function isMatchable(files: BundleFiles, hook: HookCommand, file: string): boolean {
  if (createMatcher(hook) !== undefined) return true;
  const shown = JSON.stringify(hook.matcher?.slice(0, 200));
  const message = `The matcher ${shown} of ${hook.event} is not a supported regular expression (look-around and back-references are not supported). The hook is ignored.`;
  files.report({ severity: "error", code: "HOOK_MATCHER", message, file });
  return false;
}
