import { type FieldWarning, toolListField } from "../skills/front-matter-fields.ts";
import type { AgentReport } from "./agent-file.ts";

interface AgentTools {
  /** Undefined: all. */
  readonly tools: readonly string[] | undefined;
  readonly excludedTools: readonly string[];
}

// The aliases that GitHub documents for custom agents, which take in the names that Claude Code has, in lower case.
const aliases: Readonly<Record<string, readonly string[]>> = {
  execute: ["bash", "powershell"],
  shell: ["bash", "powershell"],
  bash: ["bash"],
  powershell: ["powershell"],
  read: ["view"],
  notebookread: ["view"],
  edit: ["edit", "create"],
  multiedit: ["edit"],
  write: ["create", "edit"],
  notebookedit: ["edit"],
  search: ["grep", "glob"],
  grep: ["grep"],
  glob: ["glob"],
  agent: ["task"],
  "custom-agent": ["task"],
  task: ["task"],
  web: ["web_fetch", "web_search"],
  webfetch: ["web_fetch"],
  websearch: ["web_search"],
};

/** Reads which tools an agent has, and which it must not have, into the patterns of a session. */
export function readAgentTools(data: Readonly<Record<string, unknown>>, report: AgentReport): AgentTools {
  const warn: FieldWarning = (key, message) => report("warning", "AGENT_FIELD_TYPE", message, key);
  const given = toolListField(data, "tools", warn);
  const denied = toolListField(data, "disallowedTools", warn) ?? [];
  const excluded = denied.map((tool) => tool.replace(/\(.*$/s, ""));
  return { tools: given && chosen(given, report), excludedTools: patternsOf(excluded, "disallowedTools", report) };
}

function chosen(given: readonly string[], report: AgentReport): readonly string[] | undefined {
  if (given.includes("*")) return undefined;
  // Every tool with its limits left out would be more than the file allows.
  const limited = given.filter((tool) => tool.includes("("));
  if (limited.length > 0) {
    const names = limited.slice(0, 10).map((tool) => `\`${tool.slice(0, 80)}\``);
    report(
      "warning",
      "AGENT_TOOL_LIMIT",
      `${names.join(", ")}: what a tool may be called with is not limited here, so it is left out. Name the tool alone, and limit it by permission rules.`,
      "tools",
    );
  }
  return patternsOf(
    given.filter((tool) => !tool.includes("(")),
    "tools",
    report,
  );
}

const pattern = /^(?:(?:builtin|mcp|plugin|custom|skill):(?:\*|[^*:/]+)|[^*:/][^*:]*(?<!\/)(?:\/\*)?)$/;

function patternsOf(names: readonly string[], key: string, report: AgentReport): readonly string[] {
  const patterns = [...new Set(names.flatMap(toPatterns))];
  const strange = patterns.filter((name) => name.length > 200 || !pattern.test(name));
  if (strange.length === 0) return patterns;
  const shown = strange.slice(0, 10).map((name) => JSON.stringify(name.slice(0, 80)));
  report(
    "warning",
    "AGENT_TOOL_NAME",
    `${shown.join(", ")} names no tool and is left out. Write a tool's name, \`server/tool\` or \`server/*\`.`,
    key,
  );
  return patterns.filter((name) => !strange.includes(name));
}

/** `Read` → view; `mcp__server__tool` → server/tool. A lower-case alias is kept too: a skill's tool may be called so. */
function toPatterns(tool: string): readonly string[] {
  const remote = /^mcp__(.+?)(?:__(.+))?$/.exec(tool);
  if (remote !== null) return [`${remote[1]}/${remote[2] ?? "*"}`];
  const known = Object.hasOwn(aliases, tool.toLowerCase()) ? aliases[tool.toLowerCase()]! : [];
  // What begins with a capital is a name of Claude Code, and nobody else's.
  return known.length > 0 && /^[A-Z]/.test(tool) ? known : [...known, tool];
}
