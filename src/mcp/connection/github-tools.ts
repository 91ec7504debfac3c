import { fieldsReader, mustBe, readFlag } from "../../base/read-fields.ts";
import type { McpServerSpec, RemoteServerSpec } from "../../formats/mcp/mcp-server-spec.ts";

/** Which of its tools the GitHub MCP server offers. */
export interface GithubMcpToolConfig {
  /** All toolsets, including tools that write. Default: false, only tools that read. */
  readonly enableAllTools?: boolean | undefined;
  /** Toolsets beside the default ones, such as `actions`. */
  readonly additionalToolsets?: readonly string[] | undefined;
  /** Single tools beside those of the toolsets, such as `get_me`. */
  readonly additionalTools?: readonly string[] | undefined;
  /** Features that GitHub is still testing. */
  readonly enableInsidersMode?: boolean | undefined;
  /** Carries out calls at once, instead of filling in a form of the server first. */
  readonly disableFormDeferral?: boolean | undefined;
}

/** Reads the option. Names become parts of headers, so only characters of the server's names are allowed. */
export const readGithubMcpToolConfig: (value: unknown, path: string) => GithubMcpToolConfig = fieldsReader<GithubMcpToolConfig>({
  enableAllTools: readFlag,
  additionalToolsets: readNames,
  additionalTools: readNames,
  enableInsidersMode: readFlag,
  disableFormDeferral: readFlag,
});

function readNames(value: unknown, path: string): readonly string[] {
  if (!Array.isArray(value) || !value.every((name) => typeof name === "string" && /^[\w-]{1,100}$/.test(name)))
    return mustBe(path, "an array of names that consist of letters, digits, _ and -");
  return Object.freeze([...value] as string[]);
}

type HeaderChange = (before: string | undefined) => string;

/** The headers by which GitHub's server selects its tools (github-mcp-server, "Remote server"), and their new values. */
function headerChanges(config: GithubMcpToolConfig): ReadonlyMap<string, HeaderChange> {
  const { enableAllTools = false, additionalToolsets = [], additionalTools = [], enableInsidersMode, disableFormDeferral } = config;
  const changes = new Map<string, HeaderChange>();
  if (enableAllTools) changes.set("X-MCP-Toolsets", () => "all");
  else if (additionalToolsets.length > 0) changes.set("X-MCP-Toolsets", (before = "default") => joined(before, additionalToolsets));
  if (additionalTools.length > 0) changes.set("X-MCP-Tools", (before = "") => joined(before, additionalTools));
  if (!enableAllTools) changes.set("X-MCP-Readonly", (before = "true") => before);
  if (enableInsidersMode === true) changes.set("X-MCP-Insiders", () => "true");
  if (disableFormDeferral === true) changes.set("X-MCP-Features", (before = "") => joined(before, ["mcp_apps_disable_form_deferral"]));
  return changes;
}

/**
 * Adds the headers for this option to GitHub's server, combined with those of its configuration; returns any other server
 * unchanged. Without `enableAllTools` only tools that read are requested, unless the configuration sets `X-MCP-Readonly`.
 */
export function withGithubTools(spec: McpServerSpec, config: GithubMcpToolConfig | undefined): McpServerSpec {
  if (config === undefined || !isGithubServer(spec)) return spec;
  const headers = new Map(Object.entries(spec.headers).map(([name, value]) => [name.toLowerCase(), [name, value] as const]));
  for (const [name, change] of headerChanges(config)) {
    const [own, before] = headers.get(name.toLowerCase()) ?? [name, undefined];
    headers.set(name.toLowerCase(), [own, change(before)]);
  }
  return Object.freeze({ ...spec, headers: Object.freeze(Object.fromEntries(headers.values())) });
}

/** Recognized by its usual names, wherever it runs, or by its address; companies have addresses of their own. */
function isGithubServer(spec: McpServerSpec): spec is RemoteServerSpec {
  if (spec.type === "stdio") return false;
  if (spec.name === "github" || spec.name === "github-mcp-server") return true;
  return URL.canParse(spec.url) && /^api\.(?:[\w-]+\.)?githubcopilot\.com$/.test(new URL(spec.url).hostname);
}

function joined(before: string, more: readonly string[]): string {
  const known = before.split(",").map((word) => word.trim());
  return [...new Set([...known, ...more])].filter((word) => word !== "").join(",");
}
