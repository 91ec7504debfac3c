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
type ConfigPlace = "workspace" | "home" | "folder" | "data" | "separator";

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

/** The target of a placeholder. The user is asked for `input` and `setting`. */
type VariableReference =
  | { readonly kind: "environment" | "input" | "setting"; readonly name: string }
  | { readonly kind: "place"; readonly name: ConfigPlace };

/** The value of a placeholder, or undefined when it has none. */
export type VariableLookup = (reference: VariableReference) => string | undefined;

interface VariableValues {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly places?: Readonly<Partial<Record<ConfigPlace, string>>>;
  readonly inputs?: Readonly<Record<string, string>>;
  readonly settings?: Readonly<Record<string, string>>;
}

/** A lookup in the known values. */
export function createVariableLookup({ environment = {}, places = {}, inputs = {}, settings = {} }: VariableValues): VariableLookup {
  const tables = { environment, place: places, input: inputs, setting: settings };
  return ({ kind, name }) => {
    const table: Readonly<Record<string, string | undefined>> = tables[kind];
    return Object.hasOwn(table, name) ? table[name] : undefined;
  };
}

interface UnresolvedVariable {
  readonly reference: VariableReference;
  /** The placeholder as written. */
  readonly placeholder: string;
}

/** A text after one expansion of its variables. Inserted values are not expanded again. */
interface Expanded {
  readonly text: string;
  /** Variables without a value; their placeholders stay in the text. */
  readonly unresolved: readonly UnresolvedVariable[];
  /** Placeholders that this dialect does not define; they stay in the text too. */
  readonly undefinedForms: readonly string[];
}

/** Linux does not pass longer values to a program, and they are not valid URLs or headers either. */
export const maxValueLength: number = 131_072;

const placeholder = /\$\{\{\s*([^{}]{1,200}?)\s*\}\}|\$\{([^}]{1,400})\}|\$([A-Za-z_]\w{0,200})/g;

/** Expands the variables that a dialect defines. Never throws; `unresolved` and `undefinedForms` contain no values. */
export function expandVariables(text: string, rules: DialectRules, lookup: VariableLookup): Expanded {
  if (!text.includes("$")) return { text, unresolved: [], undefinedForms: [] };
  const unresolved: UnresolvedVariable[] = [];
  const undefinedForms: string[] = [];
  let length = 0;
  const filled = text.replace(placeholder, (whole, action: string | undefined, inner: string | undefined, bare: string | undefined) => {
    // A text that consists of placeholders with long values could expand to gigabytes.
    if (length > maxValueLength) return whole;
    const found = classify(rules, action, inner, bare);
    if (found === undefined) {
      if (bare === undefined || isWholeReference(text, whole)) undefinedForms.push(whole);
      return whole;
    }
    const value = lookUp(found, lookup);
    if (value === undefined) unresolved.push({ reference: found.reference, placeholder: whole });
    length += value?.length ?? 0;
    return value ?? whole;
  });
  return { text: filled, unresolved, undefinedForms };
}

interface Classified {
  readonly reference: VariableReference;
  /** An environment variable with the name of an unknown place may provide it. */
  readonly instead?: VariableReference;
  readonly fallback?: string;
}

function classify(
  rules: DialectRules,
  action: string | undefined,
  inner: string | undefined,
  bare: string | undefined,
): Classified | undefined {
  if (inner !== undefined) {
    const environment = environmentOf(rules, inner);
    if (Object.hasOwn(rules.places, inner)) {
      const reference: VariableReference = { kind: "place", name: rules.places[inner]! };
      return environment === undefined ? { reference } : { reference, instead: environment.reference };
    }
    for (const [prefix, kind] of Object.entries(rules.asks))
      if (inner.startsWith(prefix) && inner.length > prefix.length) return { reference: { kind, name: inner.slice(prefix.length) } };
    return environment;
  }
  const name = bare ?? /^(?:secrets|vars|env)\.([A-Za-z_]\w*)$/.exec(action ?? "")?.[1];
  const isDefined = rules.environment.includes(bare === undefined ? "actions" : "bare");
  return isDefined && name !== undefined ? { reference: { kind: "environment", name } } : undefined;
}

function environmentOf(rules: DialectRules, inner: string): Classified | undefined {
  const match = /^(env:)?([A-Za-z_]\w*)(?::-([\s\S]*))?$/.exec(inner);
  if (match === null) return undefined;
  const [, prefix, name, fallback] = match;
  if (!rules.environment.includes(prefix === undefined ? "braces" : "prefix")) return undefined;
  if (fallback !== undefined && !rules.defaults) return undefined;
  return { reference: { kind: "environment", name: name! }, ...(fallback !== undefined && { fallback }) };
}

function lookUp({ reference, instead, fallback }: Classified, lookup: VariableLookup): string | undefined {
  return lookup(reference) ?? (instead === undefined ? undefined : lookup(instead)) ?? fallback;
}

// A dollar sign before a word is usually literal; `$WORD` alone, or after a scheme such as Bearer, is probably meant as a
// variable.
function isWholeReference(text: string, whole: string): boolean {
  return /^\$[A-Z_][A-Z0-9_]*$/.test(whole) && (text === whole || text.endsWith(` ${whole}`));
}
