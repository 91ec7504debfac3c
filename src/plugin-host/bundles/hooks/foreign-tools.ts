import type { BundleDialect } from "../../../formats/plugins/plugin-dialects.ts";

/** What another client calls a tool, and its arguments. */
interface ForeignTool {
  readonly name: string;
  /** Names that matchers may use instead. */
  readonly aliases: readonly string[];
  /** Our names of arguments, and theirs. */
  readonly fields: Readonly<Record<string, string>>;
}

type Row = readonly [name: string, fields?: Readonly<Record<string, string>>, aliases?: readonly string[]];

// The names that the Copilot runtime documents for hooks that were written for Claude Code.
const claude: Readonly<Record<string, Row>> = {
  bash: ["Bash"],
  powershell: ["Bash"],
  view: ["Read", { path: "file_path" }],
  create: ["Write", { path: "file_path", file_text: "content" }],
  edit: ["Edit", { path: "file_path", old_str: "old_string", new_str: "new_string" }, ["MultiEdit"]],
  grep: ["Grep"],
  glob: ["Glob"],
  web_fetch: ["WebFetch"],
  web_search: ["WebSearch"],
  ask_user: ["AskUserQuestion"],
  task: ["Task", {}, ["Agent"]],
  skill: ["Skill"],
};

const gemini: Readonly<Record<string, Row>> = {
  bash: ["run_shell_command"],
  powershell: ["run_shell_command"],
  view: ["read_file", { path: "file_path" }],
  create: ["write_file", { path: "file_path", file_text: "content" }],
  edit: ["replace", { path: "file_path", old_str: "old_string", new_str: "new_string" }],
  grep: ["grep_search", {}, ["search_file_content"]],
  glob: ["glob"],
  web_search: ["google_web_search"],
};

/** What a dialect calls one of our tools. Tools that it does not have keep their name. */
export function foreignTool(dialect: BundleDialect, tool: string): ForeignTool {
  const table = dialect === "gemini" ? gemini : claude;
  const [name, fields = {}, aliases = []] = Object.hasOwn(table, tool) ? table[tool]! : [tool];
  return { name, aliases, fields };
}

/** All that a matcher may call a tool: also `mcp__server__tool` for what may be `tool` of an MCP server named `server`. */
export function namesOfTool(dialect: BundleDialect, tool: string): readonly string[] {
  const { name, aliases } = foreignTool(dialect, tool);
  const splits = name === tool ? [...tool.matchAll(/-/g)].slice(0, 10) : [];
  return [...new Set([name, ...aliases, tool, ...splits.map(({ index }) => `mcp__${tool.slice(0, index)}__${tool.slice(index + 1)}`)])];
}

/** Arguments as the dialect's own tool would have them. */
export function toForeignArguments({ fields }: ForeignTool, args: unknown): unknown {
  return renamed(args, fields);
}

/** And back. */
export function fromForeignArguments({ fields }: ForeignTool, args: unknown): unknown {
  return renamed(args, Object.fromEntries(Object.entries(fields).map(([ours, theirs]) => [theirs, ours])));
}

function renamed(args: unknown, names: Readonly<Record<string, string>>): unknown {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return args;
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [Object.hasOwn(names, key) ? names[key] : key, value]));
}
