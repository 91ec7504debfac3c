import { homedir } from "node:os";
import { join } from "node:path";
import type { CommandContext } from "../command-context.ts";

/** Who uses an entry: the users of one project, or this user in every project. */
export type ClientScope = "project" | "user";

/** The folders in which a client looks for its files. */
export interface ClientPlaces {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The root of the project. */
  readonly project: string;
}

export function clientPlaces({ consent, io }: Pick<CommandContext, "consent" | "io">): ClientPlaces {
  return { platform: process.platform, home: homedir(), env: io.env, project: consent.folder };
}

/** A program that starts MCP servers, and where it reads which ones. */
export interface McpClient {
  readonly name: string;
  readonly title: string;
  readonly format: "json" | "toml";
  /** The key of the map of servers. */
  readonly key: string;
  /** The file for a project. Undefined: the client has none. */
  project?(places: ClientPlaces): string;
  user(places: ClientPlaces): string;
  /** Fields of every entry. */
  readonly fields?: Readonly<Record<string, string>>;
  /** An entry may say in which folder its program starts. Others start it in the project, or in a folder of their own. */
  readonly takesCwd: boolean;
  /** How the client is made to call the tools without asking. Undefined: only in its own window. */
  readonly approval?:
    | { readonly kind: "entry"; readonly field: string }
    | { readonly kind: "rules"; file(places: ClientPlaces, scope: ClientScope): string };
  /** What makes the client read the file again. */
  readonly next: string;
}

/**
 * The clients and their files, as each client documents them: code.claude.com/docs (mcp, settings), modelcontextprotocol.io/docs (Claude
 * Desktop), code.visualstudio.com/docs (mcp-configuration), cursor.com/docs (mcp), developers.openai.com/codex (config-reference),
 * geminicli.com/docs (configuration), docs.windsurf.com (mcp), zed.dev/docs (ai/mcp).
 */
export const mcpClients: readonly McpClient[] = [
  {
    name: "claude-code",
    title: "Claude Code",
    format: "json",
    key: "mcpServers",
    project: ({ project }) => join(project, ".mcp.json"),
    user: ({ home, env }) => join(env["CLAUDE_CONFIG_DIR"] || home, ".claude.json"),
    fields: { type: "stdio" },
    takesCwd: false,
    approval: {
      kind: "rules",
      // The local settings of a project are this user's alone.
      file: ({ project, home, env }, scope) =>
        scope === "project"
          ? join(project, ".claude", "settings.local.json")
          : join(env["CLAUDE_CONFIG_DIR"] || join(home, ".claude"), "settings.json"),
    },
    next: "Restart Claude Code, and approve the server with /mcp.",
  },
  {
    name: "claude-desktop",
    title: "Claude Desktop",
    format: "json",
    key: "mcpServers",
    user: (places) => join(applicationData(places), "Claude", "claude_desktop_config.json"),
    takesCwd: false,
    next: "Restart Claude Desktop.",
  },
  {
    name: "vscode",
    title: "VS Code",
    format: "json",
    key: "servers",
    project: ({ project }) => join(project, ".vscode", "mcp.json"),
    user: (places) => join(applicationData(places), "Code", "User", "mcp.json"),
    fields: { type: "stdio" },
    takesCwd: true,
    next: 'Run "MCP: List Servers" in VS Code, and start the server.',
  },
  {
    name: "cursor",
    title: "Cursor",
    format: "json",
    key: "mcpServers",
    project: ({ project }) => join(project, ".cursor", "mcp.json"),
    user: ({ home }) => join(home, ".cursor", "mcp.json"),
    takesCwd: false,
    next: "Enable the server in Cursor's settings under MCP.",
  },
  {
    name: "codex",
    title: "Codex",
    format: "toml",
    key: "mcp_servers",
    project: ({ project }) => join(project, ".codex", "config.toml"),
    user: ({ home, env }) => join(env["CODEX_HOME"] || join(home, ".codex"), "config.toml"),
    takesCwd: true,
    next: "Restart Codex. It reads the file of a project only if you trust the project there.",
  },
  {
    name: "gemini",
    title: "Gemini CLI",
    format: "json",
    key: "mcpServers",
    project: ({ project }) => join(project, ".gemini", "settings.json"),
    user: ({ home }) => join(home, ".gemini", "settings.json"),
    takesCwd: true,
    approval: { kind: "entry", field: "trust" },
    next: "Restart Gemini CLI; /mcp lists the server.",
  },
  {
    name: "windsurf",
    title: "Windsurf",
    format: "json",
    key: "mcpServers",
    user: ({ home }) => join(home, ".codeium", "windsurf", "mcp_config.json"),
    takesCwd: false,
    next: "Refresh the servers in Windsurf's Cascade panel.",
  },
  {
    name: "zed",
    title: "Zed",
    format: "json",
    key: "context_servers",
    user: ({ platform, home, env }) =>
      join(
        platform === "win32" ? join(roaming(home, env), "Zed") : join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "zed"),
        "settings.json",
      ),
    fields: { source: "custom" },
    takesCwd: false,
    next: "Zed starts the server at once; its settings under MCP show it.",
  },
];

function applicationData({ platform, home, env }: ClientPlaces): string {
  if (platform === "win32") return roaming(home, env);
  if (platform === "darwin") return join(home, "Library", "Application Support");
  return env["XDG_CONFIG_HOME"] || join(home, ".config");
}

function roaming(home: string, env: ClientPlaces["env"]): string {
  return env["APPDATA"] || join(home, "AppData", "Roaming");
}
