import { join } from "node:path";
import { parseAgentFile } from "../../formats/agents/agent-file.ts";
import type { VariableLookup } from "../../formats/mcp/expand-variables.ts";
import { maxDocumentBytes } from "../../formats/text/limits.ts";
import type { PluginAgent } from "../plugin-api.ts";
import { type BundleFiles, kindOf } from "./bundle-files.ts";
import type { Sources } from "./component-sources.ts";

const dialectsWithAgents: ReadonlySet<string> = new Set(["claude", "copilot", "cursor", "gemini"]);

/** Reads the agents of a bundle. Of one name the first counts, as the Copilot runtime has it. */
export function loadAgents(files: BundleFiles, { dialect, given }: Sources, variables: VariableLookup): readonly PluginAgent[] {
  if (!dialectsWithAgents.has(dialect)) return [];
  const usual = files.has("agents", "folder") ? [join(files.root, "agents")] : [];
  const places = given.agents?.flatMap((source) => (source.kind === "path" ? (files.find(source.path, source) ?? []) : []));
  const found = (places ?? usual).flatMap((place) => (kindOf(place) === "file" ? [place] : files.walk(place, /\.md$/i, 2)));
  const byName = new Map<string, PluginAgent>();
  for (const file of new Set(found)) {
    const agent = loadAgent(files, file, variables);
    if (agent === undefined) continue;
    if (!byName.has(agent.name)) byName.set(agent.name, agent);
    else files.report({ severity: "warning", code: "BUNDLE_AGENT", message: `Another agent is named "${agent.name}" and counts.`, file });
  }
  return [...byName.values()];
}

function loadAgent(files: BundleFiles, file: string, variables: VariableLookup): PluginAgent | undefined {
  const text = files.read(file, maxDocumentBytes);
  if (text === undefined) return undefined;
  const { agent, excludedTools, diagnostics } = parseAgentFile(text, file, { variables });
  diagnostics.forEach((found) => void files.report(found));
  if (agent === undefined || excludedTools.length === 0) return agent;
  // More than its file allows is worse than nothing.
  const message = `The agent "${agent.name}" is left out: tools are kept from it (disallowedTools), which a plugin's agent cannot be held to here. Name the tools that it may have instead.`;
  files.report({ severity: "warning", code: "AGENT_LEFT_OUT", message, file });
  return undefined;
}
