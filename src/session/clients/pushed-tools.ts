import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { createTool } from "../../tools/create/create-tool.ts";
import type { ToolLike } from "../../tools/define/define-tool.ts";
import { checkToolName, type Tool, type ToolOrigin } from "../../tools/tool.ts";

/** Names of tools: what a push changed. */
export interface ToolsDiff {
  readonly added: readonly string[];
  /** Another contract under the same name. */
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** The same contract; also when its handler or a field outside the contract is another. */
  readonly unchanged: readonly string[];
}

export interface PushedTools {
  readonly tools: readonly Tool[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Who pushes. */
export interface Pusher {
  readonly id: string;
  /** What messages call it. */
  readonly name: string;
}

/**
 * Makes tools of a pushed list. A schema that is not that of an object leaves its tool out with a diagnostic.
 * @throws HostError for the whole list: `TOOL_INVALID` when an entry is not a tool, `TOOL_NAME_ILLEGAL` with the nearest
 * legal name, `TOOL_NAME_TAKEN` when two entries share a name and differ.
 */
export function readPushedTools(list: readonly ToolLike[], pusher: Pusher): PushedTools {
  if (!Array.isArray(list)) throw new HostError("TOOL_INVALID", `${pusher.name}: the tools must be a list.`);
  const tools = new Map<string, Tool>();
  const diagnostics: Diagnostic[] = [];
  list.forEach((entry: unknown, index) => {
    const name = nameOf(entry, index, pusher);
    const tool = readTool(entry as ToolLike, name, pusher, diagnostics);
    const twin = tools.get(name);
    if (tool === undefined || (twin !== undefined && twin.revision === tool.revision)) return;
    if (twin !== undefined)
      throw new HostError("TOOL_NAME_TAKEN", `${pusher.name} registers two different tools named "${name}". Rename one of them.`);
    tools.set(name, tool);
  });
  return { tools: [...tools.values()], diagnostics };
}

/** Keeps the object of every tool that did not change, so that comparing by identity shows that it did not. */
export function keepUnchanged(
  before: readonly Tool[],
  pushed: readonly Tool[],
): { readonly tools: readonly Tool[]; readonly diff: ToolsDiff } {
  const old = new Map(before.map((tool) => [tool.definition.name, tool]));
  const added: string[] = [];
  const changed: string[] = [];
  const unchanged: string[] = [];
  const tools = pushed.map((tool) => {
    const { name } = tool.definition;
    const known = old.get(name);
    old.delete(name);
    if (known === undefined) {
      added.push(name);
      return tool;
    }
    const isSame = known.revision === tool.revision;
    (isSame || known.signature === tool.signature ? unchanged : changed).push(name);
    return isSame ? known : tool;
  });
  return { tools, diff: { added, changed, removed: [...old.keys()], unchanged } };
}

function nameOf(entry: unknown, index: number, pusher: Pusher): string {
  const where = `tools[${index}] of ${pusher.name}`;
  const name = readName(entry, where);
  const check = checkToolName(name);
  if (!check.ok) throw new HostError("TOOL_NAME_ILLEGAL", `${where}: ${check.message}`);
  return name as string;
}

function readName(entry: unknown, where: string): unknown {
  if (typeof entry !== "object" || entry === null)
    throw new HostError("TOOL_INVALID", `${where} is not a tool: it must be an object with a name.`);
  try {
    const { name, handler, permission } = entry as Record<string, unknown>;
    for (const [key, value] of [["handler", handler] as const, ["permission", permission] as const]) {
      if (value != null && typeof value !== "function") throw new HostError("TOOL_INVALID", `${where}: ${key} must be a function.`);
    }
    return name;
  } catch (cause) {
    if (cause instanceof HostError) throw cause;
    throw new HostError("TOOL_INVALID", `${where} cannot be read.`, { cause });
  }
}

function readTool(entry: ToolLike, name: string, pusher: Pusher, diagnostics: Diagnostic[]): Tool | undefined {
  const origin: ToolOrigin = { kind: "external", source: pusher.name, nativeName: name, owner: pusher.id };
  try {
    const onDiagnostic = (diagnostic: Diagnostic): void => void diagnostics.push(diagnostic);
    // Only the type of a pushed schema is checked: thousands may come at once, and most are never called.
    const tool = createTool(entry, origin, { onDiagnostic, checkSchemas: false });
    const type = tool.definition.parameters?.["type"];
    if (tool.definition.parameters === undefined || type === "object") return tool;
    diagnostics.push(leftOut(name, pusher, 'parameters must have "type": "object".'));
  } catch (error) {
    diagnostics.push(leftOut(name, pusher, errorMessage(error)));
  }
  return undefined;
}

function leftOut(name: string, pusher: Pusher, why: string): Diagnostic {
  return { severity: "error", code: "TOOL_SCHEMA_INVALID", message: `Tool "${name}" was not registered: ${why}`, source: pusher.name };
}
