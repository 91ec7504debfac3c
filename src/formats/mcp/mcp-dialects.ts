import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import type { McpServerSpec } from "./mcp-server-spec.ts";

/**
 * The rules of a configuration of MCP servers. `session`: options of a session, where all values are literal. `skillhost`: the
 * configuration file of skillhost. `skill`: a skill's manifest. `agent`: the front matter of an agent. The others are named
 * after their client; `claude` is the default for unmarked files.
 */
export type McpDialect =
  | "session"
  | "skillhost"
  | "skill"
  | "agent"
  | "claude"
  | "copilot"
  | "vscode"
  | "cursor"
  | "gemini"
  | "codex"
  | "openclaw"
  | "agent-plugins";

/** A path that the reader of a file knows. `folder`: that of the skill or plugin; `data`: the folder in which a plugin may write. */
export type ConfigPlace = "workspace" | "home" | "folder" | "data" | "separator";

/** The parts of a server's entry in which variables are expanded. */
export type FilledField = "command" | "args" | "env" | "cwd" | "url" | "headers";

/** The syntax of an environment variable. `actions` is `${{ secrets.NAME }}`. */
type EnvironmentForm = "braces" | "prefix" | "bare" | "actions";

/** The variables that a dialect defines. All other text is literal. */
export interface DialectRules {
  readonly fills: readonly FilledField[];
  readonly environment: readonly EnvironmentForm[];
  /** `${NAME:-default}` */
  readonly defaults: boolean;
  readonly places: Readonly<Record<string, ConfigPlace>>;
  /** The prefix of a value that the user is asked for. */
  readonly asks: Readonly<Record<string, "input" | "setting">>;
  /** Programs start in the folder of the skill or plugin, unless `cwd` says otherwise. */
  readonly startsInFolder: boolean;
}

const everywhere: readonly FilledField[] = ["command", "args", "env", "cwd", "url", "headers"];
const nothing: DialectRules = { fills: [], environment: [], defaults: false, places: {}, asks: {}, startsInFolder: false };

const editorPlaces: DialectRules["places"] = {
  workspaceFolder: "workspace",
  workspaceRoot: "workspace",
  userHome: "home",
  "/": "separator",
  pathSeparator: "separator",
};
const pluginPlaces: DialectRules["places"] = {
  CLAUDE_PLUGIN_ROOT: "folder",
  CLAUDE_PLUGIN_DATA: "data",
  PLUGIN_ROOT: "folder",
  PLUGIN_DATA: "data",
};

const rules: Readonly<Record<McpDialect, DialectRules>> = {
  session: nothing,
  skillhost: {
    ...nothing,
    fills: everywhere,
    environment: ["braces", "prefix"],
    defaults: true,
    places: { workspaceFolder: "workspace", userHome: "home" },
  },
  skill: {
    ...nothing,
    fills: everywhere,
    environment: ["braces", "prefix"],
    defaults: true,
    places: { workspaceFolder: "workspace", userHome: "home", baseDir: "folder", CLAUDE_SKILL_DIR: "folder" },
    startsInFolder: true,
  },
  agent: { ...nothing, fills: everywhere, environment: ["braces", "bare", "actions"], defaults: true, places: pluginPlaces },
  claude: {
    ...nothing,
    fills: everywhere,
    environment: ["braces"],
    defaults: true,
    places: { ...pluginPlaces, CLAUDE_PROJECT_DIR: "workspace" },
    // Inputs of VS Code that were copied into another file have no value either, so the server cannot be started.
    asks: { "user_config.": "setting", "input:": "input" },
  },
  copilot: {
    ...nothing,
    fills: everywhere,
    environment: ["braces", "bare"],
    defaults: true,
    places: pluginPlaces,
    asks: { "input:": "input" },
  },
  vscode: { ...nothing, fills: everywhere, environment: ["prefix"], places: editorPlaces, asks: { "input:": "input" } },
  cursor: { ...nothing, fills: everywhere, environment: ["prefix"], places: editorPlaces, asks: { "input:": "input" } },
  gemini: {
    ...nothing,
    fills: everywhere,
    environment: ["braces", "bare"],
    defaults: true,
    places: { extensionPath: "folder", workspacePath: "workspace", "/": "separator", pathSeparator: "separator" },
  },
  codex: { ...nothing, startsInFolder: true },
  openclaw: { ...nothing, fills: everywhere, environment: ["braces"] },
  "agent-plugins": {
    ...nothing,
    fills: ["args", "env", "cwd"],
    places: { PLUGIN_ROOT: "folder", PLUGIN_DATA: "data" },
    startsInFolder: true,
  },
};

export function rulesOf(dialect: McpDialect): DialectRules {
  return rules[dialect];
}

const folders: Readonly<Record<string, McpDialect>> = {
  ".vscode": "vscode",
  ".cursor": "cursor",
  ".cursor-plugin": "cursor",
  ".gemini": "gemini",
  ".codex": "codex",
  ".codex-plugin": "codex",
  ".copilot": "copilot",
  ".github": "copilot",
};
const names: Readonly<Record<string, McpDialect>> = {
  "skillhost.json": "skillhost",
  "skill.json": "skill",
  "gemini-extension.json": "gemini",
  "openclaw.plugin.json": "openclaw",
};

/** The dialect of a file, by its own declaration, its wrapper, its name and its folder. */
export function detectDialect(file: string, value: unknown): McpDialect {
  const path = file.replaceAll("\\", "/").split("/");
  const name = (path.pop() ?? "").toLowerCase();
  const own = (key: string): unknown => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined);
  const schema = own("$schema");
  if (typeof schema === "string" && /^https:\/\/(?:[\w.-]+\.)?agent-?plugins\.org\//.test(schema)) return "agent-plugins";
  if (Object.hasOwn(names, name)) return names[name]!;
  if (own("mcp_servers") !== undefined) return "codex";
  const folder = path.findLast((part) => Object.hasOwn(folders, part));
  if (folder !== undefined) return folders[folder]!;
  return isRecord(own("servers")) || Array.isArray(own("inputs")) ? "vscode" : "claude";
}

/**
 * Warns about probable mistakes in the servers of a session: its options are literal, so `${NAME}` and variable names are sent
 * unchanged; a server with an empty list of tools is not started. Shows no values, only names of variables of the host.
 */
export function adviseServers(
  specs: readonly McpServerSpec[],
  hostEnvironment: Readonly<Record<string, string | undefined>>,
): readonly Diagnostic[] {
  return specs.filter(({ isDisabled }) => !isDisabled).flatMap((spec) => adviseServer(spec, hostEnvironment));
}

function adviseServer(spec: McpServerSpec, hostEnvironment: Readonly<Record<string, string | undefined>>): readonly Diagnostic[] {
  const found: Diagnostic[] = [];
  const warn = (code: string, message: string): void => {
    found.push({ severity: "warning", code, message: `MCP server ${JSON.stringify(spec.name)}: ${message}`, source: spec.name });
  };
  if (spec.tools?.length === 0)
    warn("ADVICE_MCP_TOOLS_NONE", '"tools" is an empty array, so the server is not started. Use ["*"] for all tools, or list some.');
  for (const [place, value] of literalTexts(spec)) {
    if (/\$\{[^}]*\}/.test(value) || /(?:^| )\$[A-Z_][A-Z0-9_]*$/.test(value))
      warn(
        "ADVICE_MCP_LITERAL_VARIABLE",
        `${place} contains a variable, but variables are not expanded here, so it is sent unchanged. Use the value.`,
      );
    else if (/^[A-Za-z_]\w*$/.test(value) && place.startsWith('"env"') && Object.hasOwn(hostEnvironment, value))
      warn(
        "ADVICE_MCP_ENV_NAME",
        `${place} is the name of the variable ${value}, not its value. Use the value, such as process.env.${value}.`,
      );
  }
  return found;
}

function literalTexts(spec: McpServerSpec): readonly (readonly [place: string, value: string])[] {
  const of = (key: string, map: Readonly<Record<string, string>>): (readonly [string, string])[] =>
    Object.entries(map).map(([name, value]) => [`"${key}" → ${JSON.stringify(name)}`, value]);
  if (spec.type !== "stdio") return [['"url"', spec.url], ...of("headers", spec.headers)];
  const args = spec.args.map((value, index) => [`"args" → element ${index + 1}`, value] as const);
  const cwd = spec.cwd === undefined ? [] : [['"cwd"', spec.cwd] as const];
  return [['"command"', spec.command], ...args, ...of("env", spec.env), ...cwd];
}
