import type { SupervisedServer } from "../mcp/supervisor/server-lease.ts";
import type { ServerLists } from "../mcp/supervisor/server-lists.ts";
import type { ServerNews, ServerStatus } from "../session/servers/session-servers.ts";
import { statusOf } from "./describe-server.ts";

type NamedList = Extract<ServerNews, { readonly kind: "list" }>["list"];

const partsOf: Readonly<Record<NamedList, readonly (keyof ServerLists)[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  resources: ["resources", "resourceTemplates"],
};

/** Finds out what is new about a session's servers, by their names. What is first known of one is no news. */
export class ServerNewsDesk {
  readonly #tell: (news: ServerNews) => void;
  readonly #statuses = new Map<string, ServerStatus>();
  readonly #lists = new Map<string, ServerLists>();

  constructor(tell: (news: ServerNews) => void) {
    this.#tell = tell;
  }

  /** These are the servers now. */
  follow(servers: readonly SupervisedServer[], stopped: ReadonlySet<string>): void {
    const names = new Set(servers.map(({ name }) => name));
    for (const name of [...this.#statuses.keys()].filter((known) => !names.has(known))) {
      this.#statuses.delete(name);
      this.#lists.delete(name);
    }
    for (const server of servers) this.tellStatus(server, stopped);
  }

  tellStatus(server: SupervisedServer, stopped: ReadonlySet<string>): void {
    const { name } = server;
    const status = statusOf(server, stopped);
    const before = this.#statuses.get(name);
    this.#statuses.set(name, status);
    if (before === undefined || before === status) return;
    this.#tell({ kind: "status", server: name, status, error: server.status.error?.message });
  }

  tellLists({ name, lists }: SupervisedServer): void {
    const before = this.#lists.get(name);
    if (lists === undefined) return;
    this.#lists.set(name, lists);
    if (before === undefined) return;
    for (const list of Object.keys(partsOf) as NamedList[]) {
      if (partsOf[list].some((part) => lists[part] !== before[part])) this.#tell({ kind: "list", server: name, list });
    }
  }
}
