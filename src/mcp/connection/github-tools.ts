import { fieldsReader, mustBe, readFlag } from "../../base/read-fields.ts";
import type { McpServerSpec, RemoteServerSpec } from "../../formats/mcp/mcp-server-spec.ts";

/** Which of its tools the GitHub MCP server offers. */
export interface GithubMcpToolConfig {
  /** Every set of tools, and those that change something. Default: false, those that only read. */
  readonly enableAllTools?: boolean | undefined;
  /** Sets of tools beside the default ones, such as `actions`. */
  readonly additionalToolsets?: readonly string[] | undefined;
  /** Single tools beside those of the sets, such as `get_me`. */
  readonly additionalTools?: readonly string[] | undefined;
  /** What GitHub still tries out. */
  readonly enableInsidersMode?: boolean | undefined;
  /** Calls are carried out, instead of filling in a form of the server's first. */
  readonly disableFormDeferral?: boolean | undefined;
}

/** Reads the option. Names become parts of headers, so they are held to what names of the server are made of. */
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

/** The headers that GitHub's server chooses its tools by (github-mcp-server, "Remote server"), and what each becomes. */
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
 * A server as a session with this option wants it: GitHub's gets the headers, on top of what its configuration says by
 * the same ones; any other is given back as it is. Without `enableAllTools` only tools that read are asked for, unless
 * the configuration's own `X-MCP-Readonly` says otherwise.
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

/** Under the name that everybody gives it, wherever it runs; or by its address, which companies have one of their own of. */
function isGithubServer(spec: McpServerSpec): spec is RemoteServerSpec {
  if (spec.type === "stdio") return false;
  if (spec.name === "github" || spec.name === "github-mcp-server") return true;
  return URL.canParse(spec.url) && /^api\.(?:[\w-]+\.)?githubcopilot\.com$/.test(new URL(spec.url).hostname);
}

function joined(before: string, more: readonly string[]): string {
  const known = before.split(",").map((word) => word.trim());
  return [...new Set([...known, ...more])].filter((word) => word !== "").join(",");
}
