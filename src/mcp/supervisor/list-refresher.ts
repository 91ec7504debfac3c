import { isDeepStrictEqual } from "node:util";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Clock } from "../../base/wait.ts";
import type { McpConnection, ServerList } from "../connection/connection.ts";
import { listPages } from "../connection/list-pages.ts";
import { type ListName, listNames, type ServerLists } from "./server-lease.ts";

export interface ListRefresherParts {
  readonly name: string;
  readonly clock: Clock;
  /** Stays in use until the server answers. */
  readonly previous: ServerLists | undefined;
  publish(lists: ServerLists): void;
  /** Called when a fetch failed. */
  failed(error: Error): void;
  /** Called when the host failed on what the server sent. */
  onError(error: Error): void;
}

/** Lists that are fetched together are published together, unless one takes longer than this. */
const graceMs = 1_000;

const listsOf: Readonly<Record<ServerList, readonly ListName[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  // Files of skills are resources, and the extension has no announcement for skills.
  resources: ["resources", "resourceTemplates", "skills"],
};

/**
 * Keeps the lists of one connection up to date. They are first published when the tools have arrived, however long other
 * lists take; a list that cannot be fetched keeps its previous content.
 */
export class ListRefresher implements Disposable {
  readonly #connection: McpConnection;
  readonly #parts: ListRefresherParts;
  readonly #fetches: ReadonlyMap<ListName, ListFetches>;
  readonly #faults = new Map<ListName, Diagnostic>();
  readonly #over = new AbortController();
  readonly #announcements: Disposable;
  #grace: Disposable | undefined;
  #lists: ServerLists | undefined;

  constructor(connection: McpConnection, parts: ListRefresherParts) {
    this.#connection = connection;
    this.#parts = parts;
    this.#fetches = new Map(listNames.map((list) => [list, this.#createFetches(list)]));
    this.#announcements = connection.onListChanged((changed) => {
      for (const list of listsOf[changed]) this.#fetches.get(list)?.announce();
    });
    for (const fetches of this.#fetches.values()) fetches.fetch();
  }

  [Symbol.dispose](): void {
    this.#over.abort();
    this.#announcements[Symbol.dispose]();
    this.#grace?.[Symbol.dispose]();
    for (const fetches of this.#fetches.values()) fetches[Symbol.dispose]();
  }

  #createFetches(list: ListName): ListFetches {
    return new ListFetches(this.#parts.previous?.[list] ?? Object.freeze([]), {
      clock: this.#parts.clock,
      fetch: () => fetchList(this.#connection, list, this.#over.signal),
      fetched: (error) => this.#fetched(list, error),
      onError: (error) => this.#unusable(list, error),
    });
  }

  #fetched(list: ListName, error: Error | undefined): void {
    if (error === undefined) this.#faults.delete(list);
    else this.#faults.set(list, describe(list, error, this.#parts.name));
    if (error !== undefined) this.#parts.failed(error);
    if (this.#over.signal.aborted) return;
    if (![...this.#fetches.values()].some((fetches) => fetches.isFetching)) this.#publish();
    else
      this.#grace ??= this.#parts.clock.after(graceMs, () => {
        try {
          this.#publish();
        } catch (error) {
          this.#unusable(list, toError(error));
        }
      });
  }

  /** A list that the host fails on affects only its own server. */
  #unusable(list: ListName, error: Error): void {
    this.#faults.set(list, describe(list, error, this.#parts.name));
    this.#parts.onError(error);
  }

  #publish(): void {
    this.#grace?.[Symbol.dispose]();
    this.#grace = undefined;
    if (!this.#fetches.get("tools")?.hasAnswered) return;
    const { capabilities, serverInfo, instructions } = this.#connection;
    const items = Object.fromEntries([...this.#fetches].map(([list, fetches]) => [list, fetches.items])) as Pick<ServerLists, ListName>;
    const diagnostics = [...this.#faults.values()];
    const next = Object.freeze({ from: "server", capabilities, serverInfo, instructions, ...items, diagnostics });
    if (this.#lists !== undefined && isSame(this.#lists, next)) return;
    this.#lists = next;
    this.#parts.publish(next);
  }
}

function isSame(one: ServerLists, other: ServerLists): boolean {
  const faults = (lists: ServerLists): string => lists.diagnostics.map(({ message }) => message).join("\n");
  return listNames.every((list) => one[list] === other[list]) && faults(one) === faults(other);
}

const shownNames: Readonly<Record<ListName, string>> = {
  tools: "tools",
  prompts: "prompts",
  resources: "resources",
  resourceTemplates: "resource templates",
  skills: "skills",
};

function describe(list: ListName, error: Error, server: string): Diagnostic {
  const code = error instanceof HostError && error.code === "MCP_LIST_TOO_LONG" ? error.code : "MCP_LIST_FAILED";
  const what = `The ${shownNames[list]} of MCP server "${server}"`;
  const message =
    code === "MCP_LIST_FAILED"
      ? `${what} could not be listed, so the previous ones stay in use: ${errorMessage(error).slice(0, 500)}`
      : `${what} exceed the limit. ${errorMessage(error)}`;
  return { severity: "warning", code, message, source: server };
}

interface ListFetchParts {
  readonly clock: Clock;
  fetch(): Promise<readonly Json[]>;
  /** Called after each fetch, with the error of one that failed. */
  fetched(error: Error | undefined): void;
  /** Called when publishing after a fetch failed. */
  onError(error: Error): void;
}

/** Announcements within this time cause one fetch. */
const coalesceMs = 50;
/** When announcements bring no change, the pause doubles up to this. */
const slowestMs = 5_000;
const retryMs: readonly number[] = [1_000, 4_000, 15_000];
/** More than any model or person can use. */
const maxItems = 10_000;

/**
 * One list of a server, kept up to date: one fetch at a time, and another if a change was announced in the meantime. A
 * fetch that fails leaves the list as it was and is retried a few times.
 */
class ListFetches implements Disposable {
  readonly #parts: ListFetchParts;
  #items: readonly Json[];
  #state: "idle" | "waiting" | "fetching" | "over" = "idle";
  #isStale = false;
  #timer: Disposable | undefined;
  #retries = 0;
  #pause = coalesceMs;
  #hasAnswered = false;

  constructor(items: readonly Json[], parts: ListFetchParts) {
    this.#items = items;
    this.#parts = parts;
  }

  /** The same array until its content changes. */
  get items(): readonly Json[] {
    return this.#items;
  }

  /** Whether the first fetch has ended, successfully or not. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  get isFetching(): boolean {
    return this.#state === "fetching";
  }

  /** Fetches at once, without the pause. */
  fetch(): void {
    this.#timer?.[Symbol.dispose]();
    this.#isStale = false;
    this.#state = "fetching";
    this.#run().catch((error: unknown) => this.#parts.onError(toError(error)));
  }

  /** The server announced a change. */
  announce(): void {
    this.#retries = 0;
    if (this.#state === "fetching") this.#isStale = true;
    else if (this.#state === "idle") this.#fetchIn(this.#pause);
  }

  [Symbol.dispose](): void {
    this.#state = "over";
    this.#timer?.[Symbol.dispose]();
  }

  #fetchIn(milliseconds: number): void {
    this.#state = "waiting";
    this.#timer = this.#parts.clock.after(milliseconds, () => this.fetch());
  }

  async #run(): Promise<void> {
    const error = await this.#attempt();
    if (this.#isOver()) return;
    this.#hasAnswered = true;
    this.#state = "idle";
    const retry = error === undefined || isFinal(error) ? undefined : retryMs[this.#retries];
    if (error === undefined) this.#retries = 0;
    if (this.#isStale) this.#fetchIn(this.#pause);
    else if (retry !== undefined) {
      this.#retries += 1;
      this.#fetchIn(retry);
    }
    this.#parts.fetched(error);
  }

  async #attempt(): Promise<Error | undefined> {
    try {
      const found = await this.#parts.fetch();
      if (!this.#isOver()) {
        const items = found.slice(0, maxItems);
        const isSame = isDeepStrictEqual(items, this.#items);
        // The announcement brought no change.
        this.#pause = isSame && this.#hasAnswered ? Math.min(this.#pause * 2, slowestMs) : coalesceMs;
        if (!isSame) this.#items = Object.freeze(items);
      }
      return found.length > maxItems
        ? new HostError("MCP_LIST_TOO_LONG", `Only the first ${maxItems} of ${found.length} are used.`)
        : undefined;
    } catch (error) {
      return toError(error);
    }
  }

  /** A method, since the compiler does not expect the state to change during an await. */
  #isOver(): boolean {
    return this.#state === "over";
  }
}

// Retrying gives the same result, or the connection has to be replaced or authorized first.
function isFinal(error: Error): boolean {
  return error instanceof HostError && ["MCP_LIST_TOO_LONG", "MCP_CLOSED", "MCP_NOT_RUN", "MCP_UNAUTHORIZED"].includes(error.code);
}

const skillsExtension = "io.modelcontextprotocol/skills";

/**
 * Returns one list of a server; empty if the server does not have it. Rejects like the connection's requests. @internal
 * Exported for tests.
 */
export function fetchList(connection: McpConnection, list: ListName, signal: AbortSignal): Promise<readonly Json[]> {
  switch (list) {
    case "tools":
      return connection.listTools({ signal });
    case "prompts":
      return connection.listPrompts({ signal });
    case "resources":
      return connection.listResources({ signal });
    case "resourceTemplates":
      return connection.listResourceTemplates({ signal });
    case "skills":
      return offersSkills(connection.capabilities) ? listSkills(connection, signal) : Promise.resolve([]);
  }
}

function offersSkills(capabilities: Json): boolean {
  const extensions = Object.hasOwn(capabilities, "extensions") ? capabilities["extensions"] : undefined;
  return typeof extensions === "object" && extensions !== null && Object.hasOwn(extensions, skillsExtension);
}

async function listSkills(connection: McpConnection, signal: AbortSignal): Promise<readonly Json[]> {
  const { items } = await listPages("skills", async (cursor) => {
    const page = await connection.request("skills/list", cursor === undefined ? {} : { cursor }, { signal });
    if (Array.isArray(page["skills"])) return page;
    throw new HostError("MCP_ANSWER", "The answer to skills/list has no skills array.");
  });
  return items;
}
