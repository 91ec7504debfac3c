import { type Diagnostic, HostError, type Logger, type Session } from "skillhost";
import type { Rpc } from "./rpc.ts";
import { selectTools } from "./select-tools.ts";
import { type RegisteredTool, readRegistered, type ToolRegistration } from "./wire.ts";

export interface RegistrarParts {
  readonly session: Session;
  readonly rpc: Rpc;
  /** Whether schemas are repaired. */
  readonly repair: boolean;
  readonly log: Logger;
}

export type ToolStatus = "enabled" | "disabled";

/**
 * Synchronizes the session's tools with the server. The server accepts a list as a whole or not at all, so tools that it
 * would reject are left out. If it rejects a list anyway, each tool is sent separately.
 */
export class Registrar {
  readonly #parts: RegistrarParts;
  readonly #sent = new Map<string, string>();
  readonly #statuses: Map<string, ToolStatus>;
  #listed: readonly RegisteredTool[] = [];
  #diagnostics: readonly Diagnostic[] = [];
  #work: Promise<void> = Promise.resolve();
  #hasListed = false;

  /** `statuses`: the tools that were enabled and disabled on an earlier server. */
  constructor(parts: RegistrarParts, statuses: Map<string, ToolStatus>) {
    this.#parts = parts;
    this.#statuses = statuses;
  }

  /** The tools of the server's last answer: its own and ours. */
  get listed(): readonly RegisteredTool[] {
    return this.#listed;
  }

  /** Problems of the current tools, and changes to their schemas. */
  get diagnostics(): readonly Diagnostic[] {
    return this.#diagnostics;
  }

  /** Sends the changes. Rejects when the server has ended. */
  sync(): Promise<void> {
    return this.#enqueue(() => this.#sync());
  }

  setStatuses(statuses: Readonly<Record<string, ToolStatus>>): Promise<void> {
    for (const [name, status] of Object.entries(statuses)) this.#statuses.set(name, status);
    return this.#enqueue(() => this.#sendStatuses(Object.keys(statuses)));
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const next = this.#work.then(work);
    this.#work = next.catch(() => {});
    return next;
  }

  async #sync(): Promise<void> {
    const { session, repair, log } = this.#parts;
    if (!session.isOpen) return;
    const { registrations, diagnostics } = selectTools(session.catalog.executables.values(), repair);
    const gone = [...this.#sent.keys()].filter((name) => !registrations.has(name));
    const changed = [...registrations.values()].filter((tool) => this.#sent.get(tool.name) !== JSON.stringify(tool));
    if (gone.length > 0) await this.#unregister(gone);
    // The first time even without changes: the answer lists the server's own tools.
    const refused = changed.length > 0 || !this.#hasListed ? await this.#register(changed) : [];
    this.#hasListed = true;
    const before = new Set(this.#diagnostics.map(({ message }) => message));
    this.#diagnostics = Object.freeze([...diagnostics, ...refused]);
    for (const { severity, code, message } of this.#diagnostics)
      if (severity !== "info" && !before.has(message)) log.warning(message, { code });
    const disabled = changed.filter(({ name }) => this.#statuses.get(name) === "disabled").map(({ name }) => name);
    if (disabled.length > 0) await this.#sendStatuses(disabled);
  }

  async #unregister(names: readonly string[]): Promise<void> {
    // A bare name would be ignored.
    const toolIds = names.map((name) => this.#listed.find((tool) => tool.name === name && isOurs(tool))?.id ?? `copilot-editor.${name}`);
    this.#listed = readRegistered(await this.#parts.rpc.request("conversation/unregisterTools", { toolIds }));
    for (const name of names) this.#sent.delete(name);
  }

  async #register(tools: readonly ToolRegistration[]): Promise<readonly Diagnostic[]> {
    try {
      this.#listed = readRegistered(await this.#parts.rpc.request("conversation/registerTools", { tools }));
      for (const tool of tools) this.#sent.set(tool.name, JSON.stringify(tool));
      return [];
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const [first, ...others] = tools;
      if (first !== undefined && others.length === 0) return [this.#refused(first.name, error)];
    }
    const problems: Diagnostic[] = [];
    for (const tool of tools) problems.push(...(await this.#register([tool])));
    return problems;
  }

  #refused(name: string, { message }: HostError): Diagnostic {
    // The server may have tools of before that the session no longer has.
    this.#sent.delete(name);
    return { severity: "error", code: "LANGUAGE_SERVER_TOOL_REFUSED", source: name, message: `Tool "${name}" is not offered: ${message}` };
  }

  async #sendStatuses(names: readonly string[]): Promise<void> {
    const tools = names.map((name) => ({ name, status: this.#statuses.get(name) ?? "enabled" }));
    this.#listed = readRegistered(await this.#parts.rpc.request("conversation/updateToolsStatus", { chatModeKind: "Agent", tools }));
  }
}

function isOurs({ id }: RegisteredTool): boolean {
  return id.startsWith("copilot-editor.");
}

function isRefusal(error: unknown): error is HostError {
  return error instanceof HostError && error.code === "LANGUAGE_SERVER_REFUSED";
}
