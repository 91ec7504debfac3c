import type { McpDialect } from "../mcp/mcp-dialects.ts";

/** Whose manifest a bundle has. `claude` is also what a folder without one follows. */
export type BundleDialect = "agent-plugins" | "claude" | "copilot" | "codex" | "gemini" | "cursor" | "openclaw";

/** What a bundle can bring. `rules`: Cursor's; `context`: the files that Gemini puts before a conversation. */
export type ComponentKind = "skills" | "agents" | "commands" | "hooks" | "mcpServers" | "rules" | "context";

export type MetadataType = "text" | "texts" | "author" | "repository";

/** What a dialect says about its manifest. */
export interface ManifestRules {
  /** Keys whose value names where a kind of component lies, or holds it. */
  readonly components: Readonly<Record<string, ComponentKind>>;
  readonly metadata: Readonly<Record<string, MetadataType>>;
  /** Known keys that have no effect here and mean nothing but more about the plugin. */
  readonly ignored: readonly string[];
  /** Known keys for something that is not supported here. */
  readonly unsupported: readonly string[];
  /** Keys that have to be there; `name` is taken from the folder otherwise. */
  readonly required: readonly string[];
  readonly name: RegExp;
  /** What a name must be, in words. */
  readonly nameWords: string;
  /** A known key of the wrong type refuses the whole bundle, as its own client does. */
  readonly isStrict: boolean;
  /** How paths begin: without `./` they are refused, or taken with a warning, or it does not matter. */
  readonly dotSlash: "required" | "advised" | "free";
  /** Whose rules its MCP servers follow. */
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

/** Where manifests lie in a bundle, in the order in which they are looked for. */
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

/** The version that an address of the Agent Plugins specification's schemas names; undefined: it is none. */
export function agentPluginsVersion(schema: unknown, what: "plugin" | "mcp"): string | undefined {
  const match = typeof schema === "string" ? schemaAddress.exec(schema) : null;
  return match?.[2] === what ? match[1] : undefined;
}

/** The versions of the Agent Plugins specification that are understood: a later 1.x is not known to be compatible. */
export const agentPluginsVersions: readonly string[] = ["1.0.0"];

/** The one address that version 1.0.0 has for a schema. */
export function agentPluginsSchema(what: "plugin" | "mcp"): string {
  return `https://agent-plugins.org/schemas/1.0.0/${what}.schema.json`;
}
