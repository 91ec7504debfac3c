import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { exactJson } from "../../base/untrusted-text.ts";
import { WorkSlices } from "../../base/wait.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { Tool, ToolsFound } from "../../tools/tool.ts";
import { digestOf } from "../../trust/folder-digests.ts";
import type { PinSubject } from "../../trust/pins/seen-pins.ts";
import type { ServerLists, SupervisedServer } from "../supervisor/server-lease.ts";
import { DefinitionCache, pinOwner, serverIdentity } from "./held-definition.ts";
import { remoteTool } from "./remote-tool.ts";

/** Something that is offered if its pin allows it. */
export interface Pinned<T> {
  readonly subject: PinSubject;
  readonly value: T;
}

export interface PinnedFound<T> {
  readonly found: readonly Pinned<T>[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The names of a server's tools in its order, including duplicates. An entry without a usable name does not count. */
export function toolNamesOf(lists: ServerLists | undefined): readonly string[] {
  return lists === undefined ? [] : lists.tools.map(({ name }) => name).filter(isUsableName);
}

/** The tools of one server. Each stays the same object while its definition and its name are unchanged. */
export class ServerTools {
  readonly #server: SupervisedServer;
  readonly #made: DefinitionCache<MadeTool> = new DefinitionCache();

  constructor(server: SupervisedServer) {
    this.#server = server;
  }

  /**
   * The tools that the configuration selects. `names`: their names for models. Yields to the event loop between slices, so
   * only one list at a time.
   */
  async make(lists: ServerLists, spec: McpServerSpec, names: ReadonlyMap<string, string>): Promise<PinnedFound<Tool>> {
    const slices = new WorkSlices(toolsPerSlice);
    const isWanted = filterOf(spec);
    const generation = this.#server.status.id ?? spec.name;
    const identity = serverIdentity(this.#server.resolvedSpec ?? spec);
    const owner = pinOwner(this.#server);
    const found: Pinned<Tool>[] = [];
    const diagnostics: Diagnostic[] = [...nameless(lists, spec), ...unknownNames(lists, spec)];
    const taken = new Set<string>();
    for (const definition of lists.tools) {
      const { name } = definition;
      // The first of two tools with the same name counts.
      if (!isUsableName(name) || taken.has(name) || !isWanted(name)) continue;
      taken.add(name);
      const modelName = names.get(name) ?? name;
      const options = { server: this.#server, serverName: spec.name, identity, name: modelName, timeout: spec.timeout, generation };
      const facts = JSON.stringify([modelName, spec.timeout, generation, identity, owner]);
      const made = this.#made.getOrCreate(name, definition, facts, () => makeTool(definition, name, owner, options));
      for (const diagnostic of made.diagnostics) diagnostics.push(diagnostic);
      if (made.pinned !== undefined) found.push(made.pinned);
      await slices.spend(1);
    }
    this.#made.sweep();
    return { found, diagnostics };
  }
}

const toolsPerSlice = 20;

interface MadeTool {
  readonly pinned: Pinned<Tool> | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

function makeTool(definition: Json, name: string, owner: string, options: Parameters<typeof remoteTool>[1]): MadeTool {
  const { tools, diagnostics }: ToolsFound = remoteTool(definition, options);
  const tool = tools[0];
  if (tool === undefined) return { pinned: undefined, diagnostics };
  try {
    const digest = digestOf(definition);
    const subject: PinSubject = { kind: "mcp-tool", owner, name, digest, content: definition };
    return { pinned: { subject, value: tool }, diagnostics };
  } catch (error) {
    const message = `MCP server "${options.serverName}", tool ${shown(name)}: ${errorMessage(error)} The tool is ignored.`;
    return { pinned: undefined, diagnostics: [{ severity: "error", code: "MCP_TOOL_INVALID", source: options.serverName, message }] };
  }
}

// The specification allows 128 characters.
const longestName = 1000;

function isUsableName(name: unknown): name is string {
  return typeof name === "string" && name !== "" && name.length <= longestName;
}

function filterOf({ tools, excludedTools = [] }: McpServerSpec): (name: string) => boolean {
  const excluded = new Set(excludedTools);
  const wanted = tools === undefined || tools.includes("*") ? undefined : new Set(tools);
  return (name) => !excluded.has(name) && (wanted === undefined || wanted.has(name));
}

function nameless({ tools }: ServerLists, { name: source }: McpServerSpec): readonly Diagnostic[] {
  const count = tools.filter(({ name }) => !isUsableName(name)).length;
  if (count === 0) return [];
  const what = count === 1 ? "a tool" : `${count} tools`;
  const message = `MCP server "${source}" has ${what} without a name of 1 to ${longestName} characters; ignored.`;
  return [{ severity: "error", code: "MCP_TOOL_INVALID", source, message }];
}

const maxShown = 20;

/** Names that a configuration lists and the server does not have: a mistake in one of the two. */
function unknownNames(lists: ServerLists, { name: source, tools = [], excludedTools = [] }: McpServerSpec): readonly Diagnostic[] {
  // The cached list may be outdated.
  if (lists.from === "cache") return [];
  const known = new Set(toolNamesOf(lists));
  const unknown = new Set([...tools, ...excludedTools].filter((name) => name !== "*" && !known.has(name)));
  if (unknown.size === 0) return [];
  const has = known.size === 0 ? "It has no tools." : `Its tools are ${listed(known)}.`;
  const message = `MCP server "${source}" has no tool ${listed(unknown)}, but its configuration selects it. ${has} Fix the configuration.`;
  return [{ severity: "warning", code: "MCP_TOOL_UNKNOWN", source, message }];
}

function listed(names: ReadonlySet<string>): string {
  const first = [...names].slice(0, maxShown).map(shown);
  return names.size > maxShown ? `${first.join(", ")} and ${names.size - maxShown} more` : first.join(", ");
}

function shown(name: string): string {
  return exactJson(name.slice(0, 80));
}
