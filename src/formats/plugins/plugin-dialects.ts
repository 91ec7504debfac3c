import type { McpDialect } from "../mcp/mcp-dialects.ts";

/** The dialect of a bundle's manifest. A folder without a manifest follows `claude`. */
export type BundleDialect = "agent-plugins" | "claude" | "copilot" | "codex" | "gemini" | "cursor" | "openclaw";

/** The components of a bundle. `rules`: those of Cursor; `context`: the files that Gemini adds to the start of a conversation. */
export type ComponentKind = "skills" | "agents" | "commands" | "hooks" | "mcpServers" | "rules" | "context";

export type MetadataType = "text" | "texts" | "author" | "repository";

/** The manifest rules of a dialect. */
export interface ManifestRules {
  /** Keys with the path of a kind of component, or the component itself. */
  readonly components: Readonly<Record<string, ComponentKind>>;
  readonly metadata: Readonly<Record<string, MetadataType>>;
  /** Known informational keys without effect here. */
  readonly ignored: readonly string[];
  /** Known keys of unsupported features. */
  readonly unsupported: readonly string[];
  /** Required keys; a `name` that is not required defaults to the folder's name. */
  readonly required: readonly string[];
  readonly name: RegExp;
  /** A description of a valid name. */
  readonly nameWords: string;
  /** Whether a known key of the wrong type refuses the whole bundle, as in its own client. */
  readonly isStrict: boolean;
  /** Whether a path without `./` is refused, accepted with a warning, or accepted. */
  readonly dotSlash: "required" | "advised" | "free";
  /** The dialect of its MCP servers. */
  readonly servers: McpDialect;
}

const metadata: ManifestRules["metadata"] = {
  version: "text",
  description: "text",
  author: "author",
  homepage: "text",
  repository: "repository",
  license: "text",
  keywords: "texts",
};

const kebab = /^[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*$/;
const kebabWords = "letters and digits with single hyphens between them, up to 64";
const anyName = /^[a-zA-Z0-9][\w.-]*$/;
const anyNameWords = 'letters, digits, ".", "_" and "-", up to 64, and begin with a letter or digit';

const rules: Readonly<Record<BundleDialect, ManifestRules>> = {
  "agent-plugins": {
    components: {},
    metadata: { ...metadata, repository: "text" },
    ignored: ["$schema", "extensions"],
    unsupported: [],
    required: ["$schema", "name"],
    name: /^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/,
    nameWords: 'lowercase letters, digits, "-" and ".", up to 64, with a letter or digit at both ends and no "--" or ".."',
    isStrict: true,
    dotSlash: "required",
    servers: "agent-plugins",
  },
  claude: {
    components: { skills: "skills", agents: "agents", commands: "commands", hooks: "hooks", mcpServers: "mcpServers" },
    metadata: { ...metadata, displayName: "text" },
    ignored: ["$schema", "metadata", "defaultEnabled", "category", "tags"],
    unsupported: [
      "outputStyles",
      "lspServers",
      "workflows",
      "channels",
      "experimental",
      "dependencies",
      "userConfig",
      "monitors",
      "themes",
    ],
    required: ["name"],
    name: kebab,
    nameWords: kebabWords,
    isStrict: true,
    dotSlash: "advised",
    servers: "claude",
  },
  copilot: {
    components: { skills: "skills", agents: "agents", commands: "commands", hooks: "hooks", mcpServers: "mcpServers" },
    metadata: { ...metadata, category: "text", tags: "texts" },
    ignored: ["$schema", "displayName", "metadata", "strict"],
    unsupported: ["lspServers", "extensions"],
    required: ["name"],
    name: kebab,
    nameWords: kebabWords,
    isStrict: false,
    dotSlash: "free",
    servers: "copilot",
  },
  codex: {
    components: { skills: "skills", hooks: "hooks", mcpServers: "mcpServers" },
    metadata,
    ignored: ["$schema", "interface"],
    unsupported: ["apps"],
    required: [],
    name: anyName,
    nameWords: anyNameWords,
    isStrict: false,
    dotSlash: "required",
    servers: "codex",
  },
  gemini: {
    components: { mcpServers: "mcpServers", contextFileName: "context" },
    metadata,
    ignored: ["$schema", "settings", "migratedTo"],
    unsupported: ["excludeTools", "plan", "themes"],
    required: ["name", "version"],
    name: anyName,
    nameWords: anyNameWords,
    isStrict: false,
    dotSlash: "free",
    servers: "gemini",
  },
  cursor: {
    components: { skills: "skills", agents: "agents", commands: "commands", rules: "rules", mcpServers: "mcpServers" },
    metadata: { ...metadata, displayName: "text", category: "text", tags: "texts" },
    ignored: ["$schema", "logo", "publisher", "metadata"],
    unsupported: ["hooks"],
    required: ["name"],
    name: anyName,
    nameWords: anyNameWords,
    isStrict: false,
    dotSlash: "free",
    servers: "cursor",
  },
  openclaw: {
    components: { skills: "skills", mcp: "mcpServers", mcpServers: "mcpServers" },
    metadata: { ...metadata, id: "text" },
    ignored: ["$schema", "uiHints", "enabledByDefault"],
    unsupported: ["configSchema", "channels", "providers", "contracts", "requiresPlugins"],
    required: [],
    name: anyName,
    nameWords: anyNameWords,
    isStrict: false,
    dotSlash: "free",
    servers: "openclaw",
  },
};

export function manifestRulesOf(dialect: BundleDialect): ManifestRules {
  return rules[dialect];
}

/** The paths of manifests in a bundle, in the order of the search. */
export const manifestPlaces: readonly { readonly path: string; readonly dialect: BundleDialect }[] = [
  { path: ".plugin/plugin.json", dialect: "copilot" },
  { path: "plugin.json", dialect: "copilot" },
  { path: ".github/plugin/plugin.json", dialect: "copilot" },
  { path: ".github/plugin.json", dialect: "copilot" },
  { path: ".claude-plugin/plugin.json", dialect: "claude" },
  { path: ".codex-plugin/plugin.json", dialect: "codex" },
  { path: "gemini-extension.json", dialect: "gemini" },
  { path: ".cursor-plugin/plugin.json", dialect: "cursor" },
  { path: "openclaw.plugin.json", dialect: "openclaw" },
];

const schemaAddress = /^https:\/\/(?:www\.)?agent-plugins\.org\/schemas\/([\w.-]{1,40})\/(plugin|mcp)\.schema\.json$/;

/** The version in a schema URL of the Agent Plugins specification; undefined for any other URL. */
export function agentPluginsVersion(schema: unknown, what: "plugin" | "mcp"): string | undefined {
  const match = typeof schema === "string" ? schemaAddress.exec(schema) : null;
  return match?.[2] === what ? match[1] : undefined;
}

/** The supported versions of the Agent Plugins specification: a later 1.x may be incompatible. */
export const agentPluginsVersions: readonly string[] = ["1.0.0"];

/** The schema URL of version 1.0.0. */
export function agentPluginsSchema(what: "plugin" | "mcp"): string {
  return `https://agent-plugins.org/schemas/1.0.0/${what}.schema.json`;
}
