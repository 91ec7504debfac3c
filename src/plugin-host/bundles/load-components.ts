import { basename, join, relative, sep } from "node:path";
import { parseAgentFile } from "../../formats/agents/agent-file.ts";
import type { VariableLookup } from "../../formats/mcp/mcp-dialects.ts";
import { type ParsedCommand, type PromptPlaces, parseMarkdownCommand, parseTomlCommand } from "../../formats/plugins/command-file.ts";
import { type HookCommand, parseHookConfig } from "../../formats/plugins/hook-config.ts";
import { parseFrontMatter } from "../../formats/skills/front-matter.ts";
import { booleanField } from "../../formats/skills/front-matter-fields.ts";
import type { JsonPath } from "../../formats/text/json-document.ts";
import { maxDocumentBytes, maxJsonBytes } from "../../formats/text/limits.ts";
import type { PluginAgent, PluginCommand } from "../plugin-api.ts";
import { type BundleContext, type BundleFiles, isLinkOut, kindOf, type Sources } from "./bundle.ts";
import { componentPaths, usualPlaces } from "./component-paths.ts";
import { createMatcher } from "./hooks/run-hook.ts";

/** Reads the agents of a bundle. Of several with the same name the first is used, as in the Copilot runtime. */
export function loadAgents(files: BundleFiles, sources: Sources, variables: VariableLookup): readonly PluginAgent[] {
  const places = componentPaths(files, sources, "agents");
  const found = places.flatMap((place) => (kindOf(place) === "file" ? [place] : files.walk(place, /\.md$/i, 2)));
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
  // Without disallowedTools the agent would have more tools than its file allows.
  const message = `Agent "${agent.name}" is ignored: disallowedTools is not supported for a plugin's agent. List its tools in "tools" instead.`;
  files.report({ severity: "warning", code: "AGENT_LEFT_OUT", message, file });
  return undefined;
}

/**
 * Reads the commands of a bundle. They have the names that their own clients use: `/plugin:name` for Claude Code and Copilot,
 * `/name` for Cursor, and `/folder:name` for Gemini.
 */
export function loadCommands(files: BundleFiles, sources: Sources, places: PromptPlaces): readonly PluginCommand[] {
  const { dialect, name } = sources;
  const isToml = dialect === "gemini";
  const byName = new Map<string, PluginCommand>();
  const found = componentPaths(files, sources, "commands").flatMap((place) => {
    if (kindOf(place) === "file") return [{ file: place, path: basename(place) }];
    const inFolder = files.walk(place, isToml ? /\.toml$/i : /\.md$/i, 3);
    return inFolder.map((file) => ({ file, path: relative(place, file).split(sep).join("/") }));
  });
  for (const { file, path } of found) {
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

function toCommand(name: string, command: NonNullable<ParsedCommand["command"]>): PluginCommand {
  const { description } = command;
  return Object.freeze({
    name,
    ...(description !== undefined && { description }),
    handler: ({ arguments: argumentsText }: { readonly arguments: string }) => command.expand(argumentsText),
  });
}

const maxContextBytes = 262_144;

/** Reads the text that a bundle adds to every conversation: Gemini's context files, and Cursor's rules that always apply. */
export function loadContext(files: BundleFiles, sources: Sources): readonly BundleContext[] {
  const context = componentPaths(files, sources, "context").flatMap((file) => {
    const text = files.read(file, maxContextBytes);
    return text === undefined || text.trim() === "" ? [] : [{ path: files.nameOf(file), text }];
  });
  return [...context, ...loadRules(files, sources)];
}

function loadRules(files: BundleFiles, sources: Sources): readonly BundleContext[] {
  const places = componentPaths(files, sources, "rules");
  const found = places.flatMap((place) => (kindOf(place) === "file" ? [place] : files.walk(place, /\.(?:mdc|md)$/i, 2)));
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

/**
 * Reads the hooks of a bundle. With `off` they are reported and left out. Undefined: some cannot be read. The bundle must not be
 * used then, since these hooks may be meant to block calls.
 */
export function loadHooks(files: BundleFiles, sources: Sources, mode: "run" | "off"): readonly HookCommand[] | undefined {
  const hooks = readHooks(files, sources);
  if (mode === "run" || hooks === undefined || hooks.length === 0) return mode === "run" ? hooks : (hooks ?? []);
  const message = `The ${hooks.length} hooks of this plugin are disabled: the plugin is not named in the configuration or in an option.`;
  files.report({ severity: "info", code: "BUNDLE_HOOKS_OFF", message, file: sources.manifestFile });
  return [];
}

/** Undefined: some hooks cannot be read. */
function readHooks(files: BundleFiles, sources: Sources): readonly HookCommand[] | undefined {
  const { dialect, given } = sources;
  let isWhole = true;
  const unreadable = (): readonly HookCommand[] => {
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
    return text === undefined ? unreadable() : read(file, text);
  };
  const usual = usualPlaces(sources, "hooks")
    .filter((path) => files.has(path, "file") || isLinkOut(files, path))
    .slice(0, 1);
  const ofUsual = usual.flatMap((path) => (isLinkOut(files, path) ? unreadable() : readFile(join(files.root, path))));
  const named = given.hooks?.flatMap((source) => {
    if (source.kind === "inline") return read(source.file, source.text, source.at);
    const file = files.find(source.path, source);
    if (file === undefined) return unreadable();
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
