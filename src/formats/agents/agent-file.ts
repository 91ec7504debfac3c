import type { Diagnostic, Severity } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import type { VariableLookup } from "../mcp/mcp-dialects.ts";
import { parseServerSpec, toServerConfig } from "../mcp/parse-server-spec.ts";
import { type FrontMatter, parseFrontMatter } from "../skills/front-matter.ts";
import { booleanField, type FieldWarning, textField, toolListField } from "../skills/front-matter-fields.ts";
import { maxDocumentBytes } from "../text/limits.ts";

/** An agent file: the options of a session's custom agent, and the fields beyond them. */
interface AgentFile {
  /** The name that selects it: the front matter's name, or the file's name when the former is a title. */
  readonly name: string;
  readonly displayName?: string;
  readonly description?: string;
  readonly prompt: string;
  /** Tool names and patterns of a session. Absent: all. */
  readonly tools?: readonly string[];
  /** By name, with literal values, as a session accepts them. */
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  readonly skills?: readonly string[];
  readonly model?: string;
  readonly reasoningEffort?: string;
  /** False: it is not offered to the model. */
  readonly infer?: boolean;
}

export interface ParsedAgent {
  /** Absent: the file describes no agent. */
  readonly agent?: AgentFile;
  /** Patterns of tools that it must not have. A host that cannot exclude them should not use the agent. */
  readonly excludedTools: readonly string[];
  /** False: only other agents can start it. */
  readonly userInvocable: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

interface AgentFileOptions {
  /** Looks up the values of variables in its MCP servers. Absent: no variable has a value. */
  readonly variables?: VariableLookup | undefined;
}

/**
 * Reads an agent file of Claude Code, Copilot or VS Code: front matter followed by the prompt. Tool names are mapped to those
 * of a session. Anything that would give the agent more than its file grants is omitted, with a diagnostic. Never throws.
 */
export function parseAgentFile(text: string, file: string, { variables }: AgentFileOptions = {}): ParsedAgent {
  const diagnostics: Diagnostic[] = [];
  const nothing = { excludedTools: [], userInvocable: false, diagnostics };
  if (text.length > maxDocumentBytes) {
    const message = `This file has more than ${maxDocumentBytes} characters. Shorten it.`;
    diagnostics.push({ severity: "error", code: "FILE_TOO_LARGE", message, file });
    return nothing;
  }
  const frontMatter = parseFrontMatter(text);
  const report = createReport(file, frontMatter, diagnostics);
  diagnostics.push(...frontMatter.problems.map((problem): Diagnostic => ({ ...problem, file })));
  if (frontMatter.state === "absent" && isForReaders(file)) {
    report(
      "info",
      "AGENT_FRONT_MATTER_MISSING",
      "This file has no front matter and looks like documentation, so it does not define an agent.",
    );
    return nothing;
  }
  return readAgent(frontMatter, fileName(file), { report, variables, diagnostics, file });
}

/** Reports a fault at a key of the front matter. */
type AgentReport = (severity: Severity, code: string, message: string, key?: string) => void;

interface Reading {
  readonly report: AgentReport;
  readonly variables: VariableLookup | undefined;
  readonly diagnostics: readonly Diagnostic[];
  readonly file: string;
}

function createReport(file: string, { positions }: FrontMatter, diagnostics: Diagnostic[]): AgentReport {
  return (severity, code, message, key) => {
    const start = key === undefined ? undefined : positions.get(key);
    if (diagnostics.length < 100) diagnostics.push({ severity, code, message, file, ...(start && { range: { start } }) });
  };
}

function readAgent(frontMatter: FrontMatter, ownName: string, { report, variables, diagnostics, file }: Reading): ParsedAgent {
  const { data } = frontMatter;
  const warn: FieldWarning = (key, message) => report("warning", "AGENT_FIELD_TYPE", message, key);
  const { tools, excludedTools } = readAgentTools(data, report);
  const description = wordsField(data, "description", warn);
  const prompt = frontMatter.body.trim();
  if (description === undefined)
    report(
      "warning",
      "AGENT_DESCRIPTION_MISSING",
      "This agent has no description. A model chooses agents by description: add `description: …`.",
    );
  if (prompt === "") report("warning", "AGENT_PROMPT_EMPTY", "This agent has no prompt. Write it below the front matter.");
  const fields = {
    ...readName(wordsField(data, "name", warn), ownName),
    description,
    prompt,
    tools,
    mcpServers: readAgentServers(data, { report, variables, file }),
    skills: toolListField(data, "skills", warn),
    model: readModel(data, report, warn),
    reasoningEffort: wordsField(data, "effort", warn) ?? wordsField(data, "reasoning-effort", warn),
    infer: readInfer(data, warn),
  };
  reportUnused(data, report);
  const agent = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as unknown as AgentFile;
  const userInvocable = booleanField(data, "user-invocable", warn) ?? booleanField(data, "user-invokable", warn) ?? true;
  return { agent, excludedTools, userInvocable, diagnostics };
}

/** A YAML escape can contain NUL, which is never valid in a name. */
function wordsField(data: FrontMatter["data"], key: string, warn: FieldWarning): string | undefined {
  const text = textField(data, key, warn);
  if (!text?.includes("\0")) return text;
  warn(key, `\`${key}\` contains a NUL character and is ignored. Remove the character.`);
  return undefined;
}

// Claude Code treats every file as an agent; a README of the folder is not meant as one.
function isForReaders(file: string): boolean {
  return /^(?:readme|changelog|license)$/i.test(fileName(file));
}

function fileName(file: string): string {
  const name = file.split(/[\\/]/).at(-1) ?? file;
  return name.replace(/(?:\.agent|\.chatmode)?\.md$/i, "") || name;
}

// In Claude Code the name identifies the agent; in Copilot and VS Code it is a title, and the file name identifies it.
function readName(given: string | undefined, ownName: string): { name: string; displayName?: string | undefined } {
  if (given === undefined) return { name: ownName };
  return /^[\w.-]{1,64}$/.test(given) ? { name: given } : { name: ownName, displayName: given };
}

const tiers = new Set(["sonnet", "opus", "haiku"]);

function readModel(data: FrontMatter["data"], report: AgentReport, warn: FieldWarning): string | undefined {
  const given = data["model"];
  const list: readonly unknown[] | undefined = Array.isArray(given) ? given : undefined;
  if (list !== undefined && list.length > 1) report("info", "AGENT_MODEL", "Only the first of several models is used.", "model");
  // VS Code appends the vendor to the model's name.
  const model = wordsField(list === undefined ? data : { model: list[0] }, "model", warn)?.replace(/ \([\w -]+\)$/, "");
  if (model === undefined || model === "inherit") return undefined;
  if (!tiers.has(model.toLowerCase())) return model;
  report(
    "info",
    "AGENT_MODEL",
    `\`${model}\` is not the full name of a model, so the session's model is used. Use a model's full name to select it.`,
    "model",
  );
  return undefined;
}

function readInfer(data: FrontMatter["data"], warn: FieldWarning): boolean | undefined {
  const isDisabled = booleanField(data, "disable-model-invocation", warn);
  return isDisabled === undefined ? booleanField(data, "infer", warn) : !isDisabled;
}

const used = new Set([
  "name",
  "description",
  "tools",
  "disallowedTools",
  "model",
  "mcp-servers",
  "mcpServers",
  "skills",
  "effort",
  "reasoning-effort",
  "infer",
  "disable-model-invocation",
  "user-invocable",
  "user-invokable",
]);
/** Keys that restrict the agent in another client. */
const limits = new Set(["permissionMode", "maxTurns", "hooks", "agents", "isolation"]);

function reportUnused(data: FrontMatter["data"], report: AgentReport): void {
  const others = Object.keys(data).filter((key) => !used.has(key));
  for (const key of others.filter((other) => limits.has(other)))
    report("warning", "AGENT_KEY_UNSUPPORTED", `\`${key}\` has no effect here, so do not rely on it.`, key);
  const rest = others.filter((key) => !limits.has(key)).slice(0, 20);
  if (rest.length > 0)
    report(
      "info",
      "AGENT_KEYS_UNKNOWN",
      `These keys have no effect here: ${rest.map((key) => `\`${key.slice(0, 60)}\``).join(", ")}.`,
      rest[0],
    );
}

interface ServerReading {
  readonly report: AgentReport;
  readonly variables: VariableLookup | undefined;
  readonly file: string;
}

const maxServers = 100;

/** Reads an agent's own MCP servers, with variables expanded, as options of a session. */
function readAgentServers(data: Json, reading: ServerReading): Readonly<Record<string, unknown>> | undefined {
  const key = ["mcp-servers", "mcpServers"].find((candidate) => data[candidate] != null);
  if (key === undefined) return undefined;
  const servers: Record<string, unknown> = Object.create(null);
  for (const [name, value] of entriesOf(data[key], key, reading).slice(0, maxServers)) {
    const { server, diagnostics } = parseServerSpec(name, value, { dialect: "agent", variables: reading.variables });
    for (const { severity, code, message } of diagnostics) reading.report(severity === "error" ? "warning" : severity, code, message, key);
    if (server.state === "ready") servers[name] = toServerConfig(server.spec);
    else if (server.state === "unconfigured")
      reading.report("warning", "MCP_UNCONFIGURED", `MCP server ${JSON.stringify(name)} needs configuration. ${server.server.reason}`, key);
  }
  return servers;
}

/** A map by name, or a list of such maps and of names of configured servers. */
function entriesOf(value: unknown, key: string, { report }: ServerReading): readonly (readonly [string, unknown])[] {
  if (isRecord(value)) return Object.entries(value);
  if (!Array.isArray(value)) {
    report("warning", "AGENT_FIELD_TYPE", `\`${key}\` must be a mapping of names to servers, so it is ignored.`, key);
    return [];
  }
  return value.flatMap((item: unknown) => {
    if (isRecord(item)) return Object.entries(item);
    if (typeof item === "string")
      report("info", "AGENT_SERVER_NAMED", `Server ${JSON.stringify(item.slice(0, 100))} is available only if the session has it.`, key);
    return [];
  });
}

interface AgentTools {
  /** Undefined: all. */
  readonly tools: readonly string[] | undefined;
  readonly excludedTools: readonly string[];
}

// The aliases that GitHub documents for custom agents, which include the names of Claude Code in lower case.
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

/** Reads the tools that an agent has and must not have, as patterns of a session. */
function readAgentTools(data: Readonly<Record<string, unknown>>, report: AgentReport): AgentTools {
  const warn: FieldWarning = (key, message) => report("warning", "AGENT_FIELD_TYPE", message, key);
  const given = toolListField(data, "tools", warn);
  const denied = toolListField(data, "disallowedTools", warn) ?? [];
  const excluded = denied.map((tool) => tool.replace(/\(.*$/s, ""));
  return { tools: given && chosen(given, report), excludedTools: patternsOf(excluded, "disallowedTools", report) };
}

function chosen(given: readonly string[], report: AgentReport): readonly string[] | undefined {
  if (given.includes("*")) return undefined;
  // The tool without its restrictions would grant more than the file allows.
  const limited = given.filter((tool) => tool.includes("("));
  if (limited.length > 0) {
    const names = limited.slice(0, 10).map((tool) => `\`${tool.slice(0, 80)}\``);
    report(
      "warning",
      "AGENT_TOOL_LIMIT",
      `${names.join(", ")}: patterns for arguments are not supported here, so this entry is ignored. List only the tool's name, and restrict its arguments with permission rules.`,
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
  const patterns = [...new Set(names.flatMap(toolPatterns))];
  const strange = patterns.filter((name) => name.length > 200 || !pattern.test(name));
  if (strange.length === 0) return patterns;
  const shown = strange.slice(0, 10).map((name) => JSON.stringify(name.slice(0, 80)));
  report(
    "warning",
    "AGENT_TOOL_NAME",
    `${shown.join(", ")} is not a valid tool name and is ignored. Use a tool's name, \`server/tool\` or \`server/*\`.`,
    key,
  );
  return patterns.filter((name) => !strange.includes(name));
}

/** `Read` → view; `mcp__server__tool` → server/tool. A lower-case alias is kept too, because a skill's tool may have that name. */
export function toolPatterns(tool: string): readonly string[] {
  const remote = /^mcp__(.+?)(?:__(.+))?$/.exec(tool);
  if (remote !== null) return [`${remote[1]}/${remote[2] ?? "*"}`];
  const known = Object.hasOwn(aliases, tool.toLowerCase()) ? aliases[tool.toLowerCase()]! : [];
  // Only Claude Code has names that begin with a capital.
  return known.length > 0 && /^[A-Z]/.test(tool) ? known : [...known, tool];
}
