import type { Server, ServerContext } from "@modelcontextprotocol/server";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { Emitter } from "../../base/emitter.ts";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { ToolCatalog } from "../../session/catalog/tool-catalog.ts";
import type { Session } from "../../session/session.ts";
import type { ToolDefinition } from "../../tools/tool.ts";

/** The lists whose changes clients are told of. */
export type ServedList = "tools" | "prompts" | "resources";

/** The answer to `tools/list`; one object for as long as nothing changes. */
interface ToolList {
  readonly tools: readonly WireTool[];
}

/** What one session offers to MCP clients, in the words of the protocol, and the news of it. */
export class ServedSession implements AsyncDisposable {
  readonly session: Session;
  readonly #news: Emitter<{ changed: ServedList }>;
  readonly #log: Logger;
  readonly #isOwned: boolean;
  readonly #subscriptions: readonly Disposable[];
  #catalog: ToolCatalog | undefined;
  #toolList: ToolList = { tools: [] };
  #starting: Promise<void> | undefined;
  #isStarted = false;
  #told: readonly WireTool[];

  /** `isOwned`: the session ends with it. */
  constructor(session: Session, log: Logger, isOwned: boolean) {
    this.session = session;
    this.#log = log;
    this.#isOwned = isOwned;
    this.#news = new Emitter((error) => log.error("A list-change listener failed.", { error }));
    this.#told = this.toolList.tools;
    this.#subscriptions = [session.onChanged(() => this.#compareTools()), session.onOffersChanged((change) => this.#tellOffers(change))];
  }

  get toolList(): ToolList {
    const { catalog } = this.session;
    if (catalog !== this.#catalog) {
      this.#toolList = Object.freeze({ tools: Object.freeze(catalog.advertised.map(toWireTool)) });
      this.#catalog = catalog;
    }
    return this.#toolList;
  }

  /**
   * Settles when the session's own MCP servers were tried once: many clients ask for a list only once. Undefined: they
   * were. Never rejects.
   */
  get starting(): Promise<void> | undefined {
    if (this.#isStarted) return undefined;
    this.#starting ??= this.session
      .ready()
      .catch((error: unknown) => this.#log.warning("The session is not loaded yet.", { error: toError(error) }))
      .then(() => {
        this.#isStarted = true;
      });
    return this.#starting;
  }

  /** Gives a list, once the session's servers were tried. */
  whenStarted<T>(list: () => T): T | Promise<T> {
    const { starting } = this;
    return starting === undefined ? list() : starting.then(list);
  }

  /** Tells of every list that is another one now. */
  onChanged(listener: (list: ServedList) => void): Disposable {
    return this.#news.on("changed", listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
    this.#news.clear();
    if (this.#isOwned) await this.session.disconnect();
  }

  #compareTools(): void {
    try {
      const { tools } = this.toolList;
      if (areEqual(tools, this.#told)) return;
      this.#told = tools;
    } catch (error) {
      // The session keeps its tools from before, and so do the clients.
      this.#log.warning("The tools could not be compared with the previous ones.", { error: toError(error) });
      return;
    }
    this.#news.emit("changed", "tools");
  }

  #tellOffers({ prompts, resources, resourceTemplates }: { prompts: boolean; resources: boolean; resourceTemplates: boolean }): void {
    if (prompts) this.#news.emit("changed", "prompts");
    if (resources || resourceTemplates) this.#news.emit("changed", "resources");
  }
}

function areEqual(some: readonly WireTool[], others: readonly WireTool[]): boolean {
  return some.length === others.length && some.every((tool, index) => isEqual(tool, others[index]!));
}

function isEqual(tool: WireTool, other: WireTool): boolean {
  return tool === other || JSON.stringify(tool) === JSON.stringify(other);
}

const maxNamed = 20;

/** What the model of a client is told of the server. */
export function describeServed(session: Session): string {
  const names = session
    .listSkills()
    .filter(({ hiddenFromModel }) => hiddenFromModel !== true)
    .map(({ name }) => name);
  const named = names.slice(0, maxNamed).join(", ");
  const others = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : "";
  const skills = names.length === 0 ? "" : ` of these skills: ${named}${others}`;
  return `Tools, prompts and resources${skills}. They may change while you are connected.`;
}

/** The errors of a host, for the clients of its servers. */
export interface HostErrors {
  current(): readonly Diagnostic[];
  /** Hears of each that comes. */
  onError(listener: (diagnostic: Diagnostic) => void): Disposable;
}

export function errorsOf(host: Host): HostErrors {
  const isError = ({ severity }: Diagnostic): boolean => severity === "error";
  return {
    current: () => host.diagnostics.filter(isError),
    onError: (listener) =>
      host.on("diagnostic", (diagnostic) => {
        if (isError(diagnostic)) listener(diagnostic);
      }),
  };
}

const logger = "skillhost";

/**
 * Tells what is wrong with the skills behind the tools with an answer to a client's request, as `notifications/message` at
 * the level `error`. Clients of revision 2026-07-28 say with each request whether they want messages, so these get all
 * that is wrong now; those before are told each error once.
 */
export function createErrorReport(errors: HostErrors, isModern: boolean): (context: ServerContext) => void {
  const told = new Set<string>();
  return ({ mcpReq }) => {
    for (const diagnostic of errors.current()) {
      const key = JSON.stringify(diagnostic);
      if (!isModern && told.has(key)) continue;
      told.add(key);
      mcpReq.log("error", toData(diagnostic), logger).catch(() => {});
    }
  };
}

/** Tells a client up to revision 2025-11-25 of the errors that come while it is connected. */
export function sendNewErrors(server: Server, errors: HostErrors, log: Logger): Disposable {
  return errors.onError((diagnostic) => {
    if (server.transport === undefined || server.getNegotiatedProtocolVersion() === undefined) return;
    server
      .sendLoggingMessage({ level: "error", logger, data: toData(diagnostic) }, server.transport.sessionId)
      .catch((error) => log.debug("A diagnostic could not be sent to an MCP client.", { error: toError(error) }));
  });
}

function toData({ code, message, file, range, source }: Diagnostic): object {
  return {
    code,
    message,
    ...(file !== undefined && { file }),
    ...(range !== undefined && { line: range.start.line, column: range.start.column }),
    ...(source !== undefined && { source }),
  };
}

/** A tool as `tools/list` has it. */
interface WireTool {
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** Definitions are frozen and shared by catalogs, so each is converted once. */
const converted = new WeakMap<ToolDefinition, WireTool>();

function toWireTool(definition: ToolDefinition): WireTool {
  const known = converted.get(definition);
  if (known !== undefined) return known;
  const { name, title, description, parameters, outputSchema, annotations, metadata } = definition;
  const tool = Object.freeze({
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: asObjectSchema(parameters),
    ...(outputSchema !== undefined && { outputSchema }),
    ...(annotations !== undefined && { annotations }),
    ...(metadata !== undefined && { _meta: metadata }),
  });
  converted.set(definition, tool);
  return tool;
}

/** The protocol wants an object at the root, and says so in `type`; some libraries leave that to the reader. */
function asObjectSchema(parameters: ToolDefinition["parameters"] = {}): Readonly<Record<string, unknown>> {
  return parameters["type"] === "object" ? parameters : { ...parameters, type: "object" };
}
