import { isJsonObject } from "../text/json-fields.ts";

/**
 * Whose rules a configuration of MCP servers follows. `session`: options of a session, where everything is literal.
 * `skillhost`: our own configuration file. `skill`: a skill's manifest. `agent`: the front matter of an agent. The others
 * are named for the client whose files they are; `claude` is also what unmarked files follow.
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

/** Something that whoever reads a file knows the place of. `folder`: that of the skill or plugin; `data`: where a plugin may write. */
export type Place = "workspace" | "home" | "folder" | "data" | "separator";

/** The parts of a server's entry that variables can be filled into. */
export type FilledField = "command" | "args" | "env" | "cwd" | "url" | "headers";

/** How an environment variable is written. `actions` is `${{ secrets.NAME }}`. */
export type EnvironmentForm = "braces" | "prefix" | "bare" | "actions";

/** What a dialect defines about variables. What it does not define stays as it is written. */
export interface DialectRules {
  readonly fills: readonly FilledField[];
  readonly environment: readonly EnvironmentForm[];
  /** `${NAME:-default}` */
  readonly defaults: boolean;
  readonly places: Readonly<Record<string, Place>>;
  /** What stands before the name of something that a person is asked for. */
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
    // The inputs of VS Code, copied into other files, are still nothing that a server could be started with.
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

/** Whose file this is, by what it says of itself, its wrapper, its name and its folder. */
export function detectDialect(file: string, value: unknown): McpDialect {
  const path = file.replaceAll("\\", "/").split("/");
  const name = (path.pop() ?? "").toLowerCase();
  const own = (key: string): unknown => (isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined);
  const schema = own("$schema");
  if (typeof schema === "string" && /^https:\/\/(?:[\w.-]+\.)?agent-?plugins\.org\//.test(schema)) return "agent-plugins";
  if (Object.hasOwn(names, name)) return names[name]!;
  if (own("mcp_servers") !== undefined) return "codex";
  const folder = path.findLast((part) => Object.hasOwn(folders, part));
  if (folder !== undefined) return folders[folder]!;
  return isJsonObject(own("servers")) || Array.isArray(own("inputs")) ? "vscode" : "claude";
}
