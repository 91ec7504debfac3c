import { join } from "node:path";
import type { BundleDialect, ComponentKind } from "../../formats/plugins/plugin-dialects.ts";
import type { BundleFiles, Sources } from "./bundle.ts";

type Layout = Readonly<Partial<Record<ComponentKind, readonly string[]>>>;

/** Where the client of each dialect looks for components. Kinds that the client does not know are absent. */
const layouts: Readonly<Record<BundleDialect, Layout>> = {
  "agent-plugins": {},
  claude: { agents: ["agents"], commands: ["commands"], skills: ["skills"], hooks: ["hooks/hooks.json"], mcpServers: [".mcp.json"] },
  codex: { skills: ["skills"], hooks: ["hooks/hooks.json"], mcpServers: [".mcp.json"] },
  copilot: {
    agents: ["agents"],
    commands: ["commands"],
    skills: ["skills"],
    hooks: ["hooks.json", "hooks/hooks.json"],
    mcpServers: [".mcp.json", ".github/mcp.json"],
  },
  cursor: {
    agents: ["agents"],
    commands: ["commands"],
    skills: ["skills"],
    rules: ["rules"],
    mcpServers: ["mcp.json", ".mcp.json"],
  },
  gemini: {
    agents: ["agents"],
    commands: ["commands"],
    skills: ["skills"],
    hooks: ["hooks/hooks.json"],
    context: ["GEMINI.md"],
  },
  openclaw: { skills: ["skills"] },
};

/** For these kinds, Claude Code adds the paths of a manifest to the usual ones. All other clients use only the named paths then. */
const addedByClaude: ReadonlySet<ComponentKind> = new Set(["commands", "skills", "hooks", "mcpServers"]);

/** The usual places of a kind of component, relative to the bundle. Empty when the manifest replaces them. */
export function usualPlaces({ dialect, given, replacesSkills }: Sources, kind: ComponentKind): readonly string[] {
  const isAdded = dialect === "claude" && addedByClaude.has(kind) && !(kind === "skills" && replacesSkills);
  return given[kind] === undefined || isAdded ? (layouts[dialect][kind] ?? []) : [];
}

/** The absolute paths of the files and folders with a kind of component, usual ones first. Missing named ones are reported. */
export function componentPaths(
  files: BundleFiles,
  sources: Sources,
  kind: "agents" | "commands" | "context" | "rules" | "skills",
): readonly string[] {
  if (layouts[sources.dialect][kind] === undefined) return [];
  const type = kind === "context" ? "file" : "folder";
  const usual = usualPlaces(sources, kind).filter((path) => files.has(path, type));
  const named = (sources.given[kind] ?? []).flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  return [...new Set([...usual.map((path) => join(files.root, path)), ...named])];
}
