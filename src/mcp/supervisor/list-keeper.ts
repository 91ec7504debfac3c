import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import type { McpConnection, ServerList } from "../connection/connection.ts";
import type { Clock } from "./clock.ts";
import { fetchList } from "./fetch-list.ts";
import { ListLane } from "./list-lane.ts";
import { type ListName, listNames, type ServerLists } from "./server-lists.ts";

export interface ListKeeperParts {
  readonly name: string;
  readonly clock: Clock;
  /** What is there until the server answers. */
  readonly previous: ServerLists | undefined;
  publish(lists: ServerLists): void;
  /** A fetch failed. */
  failed(error: Error): void;
  /** What the server sent could not be used, through a fault of the host's. */
  onError(error: Error): void;
}

/** Lists that are asked for together are told together, unless one takes so much longer than the others. */
const graceMs = 1_000;

const listsOf: Readonly<Record<ServerList, readonly ListName[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  // The files of skills are resources, and skills have no announcement of their own.
  resources: ["resources", "resourceTemplates", "skills"],
};

/**
 * Keeps what one connection offers up to date. The first lists are told when the tools are there, whatever another list
 * takes; a list that cannot be had keeps what it was.
 */
export class ListKeeper implements Disposable {
  readonly #connection: McpConnection;
  readonly #parts: ListKeeperParts;
  readonly #lanes: ReadonlyMap<ListName, ListLane>;
  readonly #faults = new Map<ListName, Diagnostic>();
  readonly #over = new AbortController();
  readonly #announcements: Disposable;
  #grace: Disposable | undefined;
  #lists: ServerLists | undefined;

  constructor(connection: McpConnection, parts: ListKeeperParts) {
    this.#connection = connection;
    this.#parts = parts;
    this.#lanes = new Map(listNames.map((list) => [list, this.#lane(list)]));
    this.#announcements = connection.onListChanged((changed) => {
      for (const list of listsOf[changed]) this.#lanes.get(list)?.announce();
    });
    for (const lane of this.#lanes.values()) lane.fetch();
  }

  [Symbol.dispose](): void {
    this.#over.abort();
    this.#announcements[Symbol.dispose]();
    this.#grace?.[Symbol.dispose]();
    for (const lane of this.#lanes.values()) lane[Symbol.dispose]();
  }

  #lane(list: ListName): ListLane {
    return new ListLane(this.#parts.previous?.[list] ?? Object.freeze([]), {
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
    if (![...this.#lanes.values()].some((lane) => lane.isFetching)) this.#publish();
    else this.#grace ??= this.#parts.clock.after(graceMs, () => this.#publishLate(list));
  }

  #publishLate(list: ListName): void {
    try {
      this.#publish();
    } catch (error) {
      this.#unusable(list, toError(error));
    }
  }

  /** Whatever a server sends, it takes nobody with it: it is said of this server, and the others go on. */
  #unusable(list: ListName, error: Error): void {
    this.#faults.set(list, describe(list, error, this.#parts.name));
    this.#parts.onError(error);
  }

  #publish(): void {
    this.#grace?.[Symbol.dispose]();
    this.#grace = undefined;
    if (!this.#lanes.get("tools")?.hasAnswered) return;
    const next = this.#assemble();
    if (this.#lists !== undefined && isSame(this.#lists, next)) return;
    this.#lists = next;
    this.#parts.publish(next);
  }

  #assemble(): ServerLists {
    const { capabilities, serverInfo, instructions } = this.#connection;
    const items = Object.fromEntries([...this.#lanes].map(([list, lane]) => [list, lane.items])) as Pick<ServerLists, ListName>;
    const diagnostics = [...this.#faults.values()];
    return Object.freeze({ from: "server", capabilities, serverInfo, instructions, ...items, diagnostics });
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
      ? `${what} could not be listed, so what they were before is kept: ${errorMessage(error).slice(0, 500)}`
      : `${what} are too many. ${errorMessage(error)}`;
  return { severity: "warning", code, message, source: server };
}
