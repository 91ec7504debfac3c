import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { parseAgentFile } from "../../formats/agents/agent-file.ts";
import { parseMcpConfig } from "../../formats/mcp/mcp-config.ts";
import type { VariableLookup } from "../../formats/mcp/mcp-dialects.ts";
import type { LocalServerSpec, McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { type ParsedServer, toServerConfig } from "../../formats/mcp/parse-server-spec.ts";
import { parseAgentPluginsMcp } from "../../formats/plugins/agent-plugins-mcp.ts";
import { type ParsedCommand, type PromptPlaces, parseMarkdownCommand, parseTomlCommand } from "../../formats/plugins/command-file.ts";
import { type HookCommand, parseHookConfig } from "../../formats/plugins/hook-config.ts";
import { type BundleDialect, type ComponentKind, manifestRulesOf } from "../../formats/plugins/plugin-dialects.ts";
import { parseFrontMatter } from "../../formats/skills/front-matter.ts";
import { booleanField } from "../../formats/skills/front-matter-fields.ts";
import { lintSkillDocument } from "../../formats/skills/lint-skill-document.ts";
import type { JsonPath } from "../../formats/text/json-document.ts";
import { maxDocumentBytes, maxJsonBytes } from "../../formats/text/limits.ts";
import { confinePath, isInside } from "../../io/confine-path.ts";
import { readSkill } from "../../skills/load/read-skill.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import type { PluginAgent, PluginCommand } from "../plugin-api.ts";
import { type BundleContext, type BundleData, type BundleFiles, isLinkOut, kindOf, type Sources } from "./bundle.ts";
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

interface ServerPlaces {
  readonly variables: VariableLookup;
  readonly data: BundleData;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Reads the MCP servers of a bundle, by name, in the form of session options. Of several with the same name the last is used. */
export function loadServers(files: BundleFiles, sources: Sources, places: ServerPlaces): ReadonlyMap<string, object> {
  const servers = new Map<string, object>();
  const isStandard = sources.dialect === "agent-plugins";
  for (const server of isStandard ? standardServers(files, places) : dialectServers(files, sources, places)) {
    const checked = server.state === "ready" ? confine(files, server, isStandard, places) : server;
    if (checked?.state === "unconfigured") servers.set(server.name, checked.server);
    if (checked?.state === "ready") servers.set(server.name, toServerConfig(withEnvironment(checked.spec, sources, files, places)));
  }
  return servers;
}

function standardServers(files: BundleFiles, { variables }: ServerPlaces): readonly ParsedServer[] {
  const file = files.find("mcp.json");
  const text = file === undefined ? undefined : files.read(file, maxJsonBytes);
  if (file === undefined || text === undefined) return [];
  const { servers, diagnostics } = parseAgentPluginsMcp(text, { file, variables, folder: files.root });
  diagnostics.forEach((found) => void files.report(found));
  return servers;
}

function dialectServers(files: BundleFiles, sources: Sources, { variables }: ServerPlaces): readonly ParsedServer[] {
  const { dialect, given } = sources;
  const read = (file: string, text: string, at?: JsonPath): readonly ParsedServer[] => {
    const options = { file, dialect: manifestRulesOf(dialect).servers, variables, folder: files.root };
    const { servers, diagnostics } = parseMcpConfig(text, { ...options, ...(at && { at }) });
    diagnostics.forEach((found) => void files.report(found));
    return servers;
  };
  const readFile = (file: string): readonly ParsedServer[] => {
    const text = files.read(file, maxJsonBytes);
    return text === undefined ? [] : read(file, text);
  };
  const usual = usualPlaces(sources, "mcpServers")
    .filter((path) => files.has(path, "file"))
    .slice(0, 1);
  const named = (given.mcpServers ?? []).flatMap((source) => {
    if (source.kind === "inline") {
      // Some manifests nest the servers in one more object, as a file of their own does.
      const wrapper = ["mcpServers", "servers"].find((key) => Object.hasOwn(source.value, key));
      return read(source.file, source.text, wrapper === undefined ? source.at : [...source.at, wrapper]);
    }
    const file = files.find(source.path, source);
    return file === undefined || usual.some((path) => join(files.root, path) === file) ? [] : readFile(file);
  });
  return [...usual.flatMap((path) => readFile(join(files.root, path))), ...named];
}

type ReadyServer = Extract<ParsedServer, { state: "ready" }>;

/** Refuses a server whose own program or folder lies outside the bundle, also through a link. */
function confine(files: BundleFiles, server: ReadyServer, isStandard: boolean, places: ServerPlaces): ReadyServer | undefined {
  const { spec, name } = server;
  if (spec.type !== "stdio") return server;
  const problem = commandFault(files, spec) ?? (isStandard ? folderFault(files, spec, places) : undefined);
  if (problem !== undefined) {
    const message = `MCP server ${JSON.stringify(name)}: ${problem} The server is ignored.`;
    files.report({ severity: "error", code: "BUNDLE_PATH", message, file: files.root });
    return undefined;
  }
  const command = /^\.\.?[\\/]/.test(spec.command) ? resolve(files.root, spec.command) : spec.command;
  return { ...server, spec: { ...spec, command } };
}

function commandFault(files: BundleFiles, { command }: LocalServerSpec): string | undefined {
  const isOwn = /^\.\.?[\\/]/.test(command) || isInside(files.root, command);
  if (!isOwn) return undefined;
  const confined = confinePath(files.root, relative(files.root, resolve(files.root, command)).split(sep).join("/"));
  return confined.ok ? undefined : `the command points out of the plugin. ${confined.message}`;
}

function folderFault(files: BundleFiles, { cwd }: LocalServerSpec, { data }: ServerPlaces): string | undefined {
  if (cwd === undefined) return undefined;
  const root = [files.root, data.path].find((folder) => isInside(folder, cwd));
  const confined = root === undefined ? undefined : confinePath(root, relative(root, cwd).split(sep).join("/") || ".");
  return confined?.ok ? undefined : "its working directory points out of the plugin.";
}

/** Adds the environment variables with which the dialect's client describes the plugin to its programs. */
function withEnvironment(spec: McpServerSpec, { dialect, variables }: Sources, files: BundleFiles, places: ServerPlaces): McpServerSpec {
  if (spec.type !== "stdio" || spec.isDisabled) return spec;
  const requested = variables.flatMap((name) => {
    const value = places.environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const env = { ...Object.fromEntries(requested), ...spec.env, ...placesOf(dialect, files.root, places.data) };
  return { ...spec, env };
}

function placesOf(dialect: Sources["dialect"], root: string, data: BundleData): Readonly<Record<string, string>> {
  if (dialect === "agent-plugins" || dialect === "codex") return { PLUGIN_ROOT: root, PLUGIN_DATA: data.ensure() };
  if (dialect === "claude") return { CLAUDE_PLUGIN_ROOT: root, CLAUDE_PLUGIN_DATA: data.ensure() };
  if (dialect === "copilot") return { PLUGIN_ROOT: root, CLAUDE_PLUGIN_ROOT: root };
  return {};
}

interface SkillFolders {
  readonly skillDirectories: readonly string[];
  /** The names of the skills, usually those of their folders. */
  readonly skills: readonly string[];
}

/**
 * Finds a bundle's skills. A folder of skills is used as a whole, so that skills added later are found too, unless something in
 * it must not be used: then its other skills are used one by one.
 */
export function loadSkillFolders(files: BundleFiles, sources: Sources): SkillFolders {
  if (sources.dialect === "agent-plugins") return conformingSkills(files);
  // Some manifests name the file of a skill instead of its folder.
  const paths = componentPaths(files, sources, "skills").map((path) =>
    basename(path).toLowerCase() === "skill.md" ? dirname(path) : path,
  );
  const all = [...new Set(paths)];
  const root = all.length === 0 && files.has("SKILL.md", "file") ? [files.root] : [];
  const { skillDirectories, skills } = collect([...all, ...root].map((folder) => skillsIn(files, folder)));
  return { skillDirectories, skills: skills.map((skill) => nameOf(skill, files, sources.name)) };
}

interface FoundSkills {
  readonly directory: string;
  readonly skills: readonly string[];
  /** Whether everything in the directory may be used. */
  readonly isWhole: boolean;
}

function skillsIn(files: BundleFiles, folder: string): FoundSkills {
  if (isSkillFolder(folder)) return { directory: folder, skills: [folder], isWhole: true };
  const before = files.diagnostics.length;
  const folders = files.list(folder).filter(({ kind }) => kind === "folder");
  const skills = folders.map(({ path }) => path).filter(isSkillFolder);
  return { directory: folder, skills, isWhole: files.diagnostics.length === before };
}

function collect(found: readonly FoundSkills[]): SkillFolders {
  return {
    skillDirectories: found.flatMap(({ directory, skills, isWhole }) => (isWhole ? [directory] : skills)),
    skills: [...new Set(found.flatMap(({ skills }) => skills))],
  };
}

/** A skill has the name of its folder, unless that is the bundle itself or its folder of skills. */
function nameOf(folder: string, files: BundleFiles, bundleName: string): string {
  if (folder !== files.root && folder !== join(files.root, "skills")) return basename(folder);
  const text = readSkill(folder, () => {});
  const isNamed = text?.manifest !== undefined || text?.document?.isNamed === true;
  return isNamed ? text.name : bundleName;
}

/** The Agent Plugins specification allows only the immediate children of `skills/` that conform to Agent Skills. */
function conformingSkills(files: BundleFiles): SkillFolders {
  const folder = files.find("skills");
  if (folder === undefined) return { skillDirectories: [], skills: [] };
  if (!files.has("skills", "folder")) {
    files.report({
      severity: "error",
      code: "BUNDLE_COMPONENT",
      message: "This must be a folder of skills. It is ignored.",
      file: folder,
    });
    return { skillDirectories: [], skills: [] };
  }
  const { skills, ...found } = skillsIn(files, folder);
  const conforming = skills.filter((skill) => conforms(files, skill));
  const all = collect([{ ...found, skills: conforming, isWhole: found.isWhole && conforming.length === skills.length }]);
  return { ...all, skills: all.skills.map((skill) => basename(skill)) };
}

function conforms(files: BundleFiles, skill: string): boolean {
  const file = join(skill, "SKILL.md");
  const text = files.has(files.nameOf(file), "file") ? files.read(file, maxDocumentBytes) : undefined;
  if (text === undefined) {
    const message = "A skill of this plugin needs a SKILL.md inside the plugin. It is ignored.";
    files.report({ severity: "error", code: "BUNDLE_SKILL", message, file });
    return false;
  }
  const faults = lintSkillDocument(text, { file, directoryName: basename(skill) }).filter(({ severity }) => severity === "error");
  const [first] = faults;
  // The skill store watches skills that are used. A skill that is not used is watched here, since an edit may make it usable.
  if (first === undefined) return files.seen.delete(file) || true;
  const message = `This skill does not conform to the Agent Skills specification, so it is ignored: ${first.message}`;
  files.report({ ...first, code: "BUNDLE_SKILL", message });
  return false;
}

type Layout = Readonly<Partial<Record<ComponentKind, readonly string[]>>>;

/** Where the client of each dialect looks for components. Kinds that the client does not know are absent. */
const layouts: Readonly<Record<BundleDialect, Layout>> = {
  "agent-plugins": {},
  claude: { agents: ["agents"], commands: ["commands"], skills: ["skills"], hooks: ["hooks/hooks.json"], mcpServers: [".mcp.json"] },
  codex: { skills: ["skills"], hooks: ["hooks/hooks.json"], mcpServers: [".mcp.json"] },
  copilot: {
    agents: ["agents"],
    commands: ["commands"],
    skills: ["skills"],
    hooks: ["hooks.json", "hooks/hooks.json"],
    mcpServers: [".mcp.json", ".github/mcp.json"],
  },
  cursor: {
    agents: ["agents"],
    commands: ["commands"],
    skills: ["skills"],
    rules: ["rules"],
    mcpServers: ["mcp.json", ".mcp.json"],
  },
  gemini: {
    agents: ["agents"],
    commands: ["commands"],
    skills: ["skills"],
    hooks: ["hooks/hooks.json"],
    context: ["GEMINI.md"],
  },
  openclaw: { skills: ["skills"] },
};

/** For these kinds, Claude Code adds the paths of a manifest to the usual ones. All other clients use only the named paths then. */
const addedByClaude: ReadonlySet<ComponentKind> = new Set(["commands", "skills", "hooks", "mcpServers"]);

/** The usual places of a kind of component, relative to the bundle. Empty when the manifest replaces them. */
function usualPlaces({ dialect, given, replacesSkills }: Sources, kind: ComponentKind): readonly string[] {
  const isAdded = dialect === "claude" && addedByClaude.has(kind) && !(kind === "skills" && replacesSkills);
  return given[kind] === undefined || isAdded ? (layouts[dialect][kind] ?? []) : [];
}

/** The absolute paths of the files and folders with a kind of component, usual ones first. Missing named ones are reported. */
function componentPaths(
  files: BundleFiles,
  sources: Sources,
  kind: "agents" | "commands" | "context" | "rules" | "skills",
): readonly string[] {
  if (layouts[sources.dialect][kind] === undefined) return [];
  const type = kind === "context" ? "file" : "folder";
  const usual = usualPlaces(sources, kind).filter((path) => files.has(path, type));
  const named = (sources.given[kind] ?? []).flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  return [...new Set([...usual.map((path) => join(files.root, path)), ...named])];
}
