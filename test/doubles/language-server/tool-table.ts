import { faultOf, registerParams, withoutNulls } from "./wire-schemas.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

export interface ListedTool {
  readonly type: "client" | "shared";
  readonly name: string;
  readonly id: string;
  readonly nameForModel: string;
  readonly description: string;
  readonly status: "enabled" | "disabled";
  readonly [field: string]: unknown;
}

/** The error of a failed request, for JSON-RPC. */
export class Refusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The server's own tools. The wrapped ones stay shared when an editor registers them: the server calls them through its wrapper. */
const own = ["list_dir", "read_file", "file_search", "grep_search", "validate_cves"];
const wrapped = new Set(["create_file", "insert_edit_into_file", "replace_string_in_file", "apply_patch"]);

/** The tools of the server and the registered tools. */
export class ToolTable {
  readonly #registered = new Map<string, ListedTool>();
  readonly #disabled = new Set<string>();

  register(params: unknown): readonly ListedTool[] {
    const given = withoutNulls(params);
    const fault = faultOf(registerParams, given);
    // One invalid tool fails the whole request.
    if (fault !== undefined) throw new Refusal(-32602, fault);
    for (const tool of given.tools) this.#registered.set(tool.name, listed(tool, wrapped.has(tool.name) ? "shared" : "client"));
    return this.list();
  }

  unregister({ toolIds = [] }: Json): readonly ListedTool[] {
    for (const id of toolIds) {
      const tool = [...this.#registered.values()].find((each) => each.id === id);
      if (tool !== undefined) this.#registered.delete(tool.name);
    }
    return this.list();
  }

  setStatus({ tools = [] }: Json): readonly ListedTool[] {
    for (const { name, status } of tools) {
      if (this.#find(name) === undefined) continue;
      if (status === "disabled") this.#disabled.add(name);
      else this.#disabled.delete(name);
    }
    return this.list();
  }

  /** The enabled tools, in the server's order. */
  list(): readonly ListedTool[] {
    const shared = own.filter((name) => !this.#registered.has(name)).map((name) => ownTool(name));
    return [...this.#registered.values(), ...shared].filter(({ name }) => !this.#disabled.has(name));
  }

  isRegistered(name: string): boolean {
    return this.#registered.has(name);
  }

  byModelName(name: string): ListedTool | undefined {
    return this.list().find(({ nameForModel }) => nameForModel === name);
  }

  #find(name: string): ListedTool | undefined {
    return this.#registered.get(name) ?? (own.includes(name) ? ownTool(name) : undefined);
  }
}

function ownTool(name: string): ListedTool {
  const tool = { name, description: `The server's own ${name}.`, inputSchema: { type: "object", properties: {}, required: [] } };
  return { ...listed(tool, "shared"), id: `copilot.${name}` };
}

function listed({ name, description, inputSchema, confirmationMessages }: Json, type: "client" | "shared"): ListedTool {
  return {
    type,
    toolProvider: { id: "copilot-editor", displayName: "Editor", description: "Editor tool provider", isFirstPartyTool: true },
    name,
    displayName: name,
    description,
    displayDescription: description,
    ...(inputSchema !== undefined && { inputSchema }),
    ...(confirmationMessages !== undefined && { confirmationMessages }),
    id: `copilot-editor.${name}`,
    nameForModel: name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64),
    status: "enabled",
    configurationKey: name,
  };
}
