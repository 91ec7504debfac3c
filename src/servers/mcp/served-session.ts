import { ProtocolError, ProtocolErrorCode, type Server, type ServerContext } from "@modelcontextprotocol/server";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { Emitter } from "../../base/emitter.ts";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { ToolCatalog } from "../../session/catalog/tool-catalog.ts";
import type { Session } from "../../session/session.ts";
import type { ResourceDefinition } from "../../tools/resource.ts";
import type { ToolDefinition } from "../../tools/tool.ts";

/** The lists about whose changes clients are notified. */
export type ServedList = "tools" | "prompts" | "resources";

/** The answer to `tools/list`. The same object until something changes. */
interface ToolList {
  readonly tools: readonly WireTool[];
}

/** The lists of one session in the form of the protocol, and their changes. */
export class ServedSession implements AsyncDisposable {
  readonly session: Session;
  readonly #changes: Emitter<{ changed: ServedList }>;
  readonly #log: Logger;
  readonly #isOwned: boolean;
  readonly #subscriptions: readonly Disposable[];
  #catalog: ToolCatalog | undefined;
  #toolList: ToolList = { tools: [] };
  #starting: Promise<void> | undefined;
  #isStarted = false;
  #announced: readonly WireTool[];

  /** `isOwned`: the session ends with this object. */
  constructor(session: Session, log: Logger, isOwned: boolean) {
    this.session = session;
    this.#log = log;
    this.#isOwned = isOwned;
    this.#changes = new Emitter((error) => log.error("A list-change listener failed.", { error }));
    this.#announced = this.toolList.tools;
    this.#subscriptions = [
      session.onChanged(() => this.#compareTools()),
      session.onOffersChanged(({ prompts, resources, resourceTemplates }) => {
        if (prompts) this.#changes.emit("changed", "prompts");
        if (resources || resourceTemplates) this.#changes.emit("changed", "resources");
      }),
    ];
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
   * Settles when the session's own MCP servers have started or failed, since many clients request a list only once. Undefined:
   * they have. Never rejects.
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

  /** Returns a list, after the session's servers have started or failed. */
  whenStarted<T>(list: () => T): T | Promise<T> {
    const { starting } = this;
    return starting === undefined ? list() : starting.then(list);
  }

  /** Calls `listener` for every list that has changed. */
  onChanged(listener: (list: ServedList) => void): Disposable {
    return this.#changes.on("changed", listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
    this.#changes.clear();
    if (this.#isOwned) await this.session.disconnect();
  }

  #compareTools(): void {
    try {
      const { tools } = this.toolList;
      if (areEqual(tools, this.#announced)) return;
      this.#announced = tools;
    } catch (error) {
      // The session and its clients keep the previous tools.
      this.#log.warning("The tools could not be compared with the previous ones.", { error: toError(error) });
      return;
    }
    this.#changes.emit("changed", "tools");
  }
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

interface Addressed {
  readonly uri: string;
}

/** A page continues after the URI in its cursor, so that added or removed items repeat nothing. `all` is sorted by URI. */
export function cutPage<T extends Addressed>(all: readonly T[], cursor: string | undefined, size: number): Page<T> {
  const after = cursorUri(cursor);
  const start = after === undefined ? 0 : firstAfter(all, after);
  const items = all.slice(start, start + size);
  return { items, ...(start + size < all.length && nextCursor(items.at(-1))) };
}

/** @throws ProtocolError for a cursor that no page had. */
export function cursorUri(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const uri = Buffer.from(cursor, "base64url").toString("utf8");
  if (!/^[\w+.-]+:/.test(uri)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid cursor");
  return uri;
}

export function firstAfter(sorted: readonly Addressed[], uri: string): number {
  const index = sorted.findIndex((item) => item.uri > uri);
  return index === -1 ? sorted.length : index;
}

export function nextCursor(last: Addressed | undefined): { readonly nextCursor?: string } {
  return last === undefined ? {} : { nextCursor: Buffer.from(last.uri).toString("base64url") };
}

/** The number of resources in one page. Clients that ask for the first page only are common, so it is large. */
const resourcesPerPage = 1_000;

/** Lists of resources that need several pages, sorted. */
const sortedResources = new WeakMap<readonly ResourceDefinition[], readonly ResourceDefinition[]>();

/** One page of `resources/list`. A list of one page keeps its order; a longer one is sorted by URI. */
export function resourcePage(all: readonly ResourceDefinition[], cursor: string | undefined): Page<ResourceDefinition> {
  if (all.length <= resourcesPerPage && cursor === undefined) return { items: all };
  const sorted = sortedResources.get(all) ?? [...all].sort((a, b) => (a.uri < b.uri ? -1 : 1));
  sortedResources.set(all, sorted);
  return cutPage(sorted, cursor, resourcesPerPage);
}

function areEqual(some: readonly WireTool[], others: readonly WireTool[]): boolean {
  const isEqual = (tool: WireTool, other: WireTool): boolean => tool === other || JSON.stringify(tool) === JSON.stringify(other);
  return some.length === others.length && some.every((tool, index) => isEqual(tool, others[index]!));
}

const maxNamed = 20;

/** The default instructions for the client's model. */
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
  /** Calls `listener` with each new error. */
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
 * Sends the errors of skills during a client's request, as `notifications/message` at the level `error`. Clients of revision
 * 2026-07-28 say with each request whether they want messages, so they get all current errors; earlier clients get each error
 * once.
 */
export function createErrorReport(errors: HostErrors, isModern: boolean): (context: ServerContext) => void {
  const sent = new Set<string>();
  return ({ mcpReq }) => {
    for (const diagnostic of errors.current()) {
      const key = JSON.stringify(diagnostic);
      if (!isModern && sent.has(key)) continue;
      sent.add(key);
      mcpReq.log("error", toData(diagnostic), logger).catch(() => {});
    }
  };
}

/** Sends new errors to a connected client of revisions up to 2025-11-25. */
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

/** A tool in the form of `tools/list`. */
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

/** The protocol requires `type: "object"` at the root, which some libraries leave out. */
function asObjectSchema(parameters: ToolDefinition["parameters"] = {}): Readonly<Record<string, unknown>> {
  return parameters["type"] === "object" ? parameters : { ...parameters, type: "object" };
}
