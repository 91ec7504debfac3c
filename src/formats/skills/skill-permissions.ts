import { createFieldReader, describe, type FieldReader, type JsonComplain } from "../text/json-fields.ts";

/** The declared access of a skill's tools, which users can approve. */
export interface SkillPermissions {
  /** Variables of the host's environment that its tools may read. */
  readonly env: readonly string[];
  /** Hosts that its HTTP tools may call: `api.example.org`, or `*.example.org` for its subdomains. Absent: the hosts in the tools' URLs. */
  readonly hosts?: readonly string[];
  /** Programs that its command tools may run, as written in the tools. Absent: the programs in the tools. */
  readonly programs?: readonly string[];
  /**
   * Files and folders outside of the skill that its code may read: absolute, relative to the skill's folder, or in `~` (the home folder) or
   * `{workingDirectory}` (that of the host). Only isolated code is limited to them.
   */
  readonly read?: readonly string[];
  /** Files and folders that its code may also change, written as in `read`. */
  readonly write?: readonly string[];
  /** Tools that its code may call with `callTool`, by the name that it calls: `fetch_page`, or `github/*` for all names that begin so. */
  readonly tools?: readonly string[];
  /** MCP servers whose tools its code may call as `server/tool`, by the name of the server. */
  readonly servers?: readonly string[];
}

const kinds = ["env", "hosts", "programs", "read", "write", "tools", "servers"] as const;
const code = "MANIFEST_PERMISSIONS";
const most = 100;

/**
 * Reads `permissions` of a manifest. An invalid value declares less than it might have meant, never more: a value that is not
 * an object declares nothing.
 */
export function readSkillPermissions(manifest: FieldReader, complain: JsonComplain): SkillPermissions | undefined {
  if (!manifest.has("permissions")) return undefined;
  const value = manifest.object("permissions");
  if (value === undefined) return { env: [], hosts: [], programs: [] };
  const fields = createFieldReader(value, complain, { code, path: ["permissions"] });
  for (const key of fields.others(kinds).slice(0, 10)) {
    const message = `The key ${JSON.stringify(key.slice(0, 60))} of "permissions" is unknown and has no effect. The keys are ${kinds.join(", ")}.`;
    complain("warning", code, message, ["permissions", key]);
  }
  const read = (kind: (typeof kinds)[number]): readonly string[] => {
    const items = (fields.list(kind) ?? []).flatMap((item, index): string[] => {
      const read = typeof item === "string" ? readers[kind](item) : undefined;
      if (read !== undefined && index < most) return [read];
      const problem = index < most ? `${described(item)} is not ${expected[kind]}` : `only the first ${most} entries are used`;
      complain("error", code, `In "${kind}" of "permissions": ${problem}. It is ignored.`, ["permissions", kind, index]);
      return [];
    });
    return [...new Set(items)];
  };
  return {
    env: read("env"),
    ...Object.fromEntries(kinds.slice(1).flatMap((kind) => (fields.has(kind) ? [[kind, read(kind)]] : []))),
  };
}

function described(item: unknown): string {
  return typeof item === "string" ? JSON.stringify(item.slice(0, 80)) : describe(item);
}

const pathForm = "a path, such as ../other-skill, /usr/share/dict, ~/.config/weather or {workingDirectory}/data";

const expected = {
  env: "the name of a variable, such as WEATHER_KEY",
  hosts: "a host, such as api.example.org or *.example.org",
  programs: 'the name of a program as in a tool\'s "command", such as git or ./run.sh',
  read: pathForm,
  write: pathForm,
  tools: "the name of a tool, such as fetch_page, or the beginning of names, such as github/*",
  servers: "the name of an MCP server, such as github",
};

const readers: Readonly<Record<(typeof kinds)[number], (item: string) => string | undefined>> = {
  env: (item) => (/^[A-Za-z_]\w{0,199}$/.test(item) ? item : undefined),
  hosts: readHost,
  programs: readWord,
  read: readWord,
  write: readWord,
  tools: (item) => (/^[^\s*\0]{1,200}\*?$/.test(item) ? item : undefined),
  servers: (item) => (item.trim() !== "" && /^[^*/\0]{1,200}$/.test(item) ? item : undefined),
};

function readWord(item: string): string | undefined {
  return item.trim() !== "" && item.length <= 1_000 && !item.includes("\0") ? item : undefined;
}

/** As in URLs: lower-case ASCII. */
function readHost(item: string): string | undefined {
  const wildcard = item.startsWith("*.") ? "*." : "";
  const name = item.slice(wildcard.length);
  if (name === "" || /[\s/?#@*%\\]/.test(name) || !URL.canParse(`http://${name}/`)) return undefined;
  const { hostname, port } = new URL(`http://${name}/`);
  return port === "" && !/:\d*$/.test(name.replace(/^\[.*\]/, "")) ? wildcard + hostname : undefined;
}

/** Whether a host of a URL is declared. */
export function isDeclaredHost(hosts: readonly string[], hostname: string): boolean {
  return hosts.some((host) => (host.startsWith("*.") ? hostname.endsWith(host.slice(1)) : hostname === host));
}

/** The tools that a skill's code may call, as in `tools`: those of a server begin with its name. */
export function callableTools({ tools = [], servers = [] }: Pick<SkillPermissions, "tools" | "servers">): readonly string[] {
  return [...tools, ...servers.map((server) => `${server}/*`)];
}

/** Whether a tool is declared, by the name with which it is called. */
export function isDeclaredTool(tools: readonly string[], name: string): boolean {
  return tools.some((tool) => (tool.endsWith("*") ? name.startsWith(tool.slice(0, -1)) : name === tool));
}
