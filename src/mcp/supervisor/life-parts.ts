import type { Logger } from "../../base/logger.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { Clock } from "./clock.ts";
import type { IdentityMemory } from "./identity-memory.ts";
import type { ServerConnector } from "./server-connector.ts";
import type { ServerLists } from "./server-lists.ts";
import type { StartSlots } from "./start-slots.ts";

export interface LifeParts {
  readonly id: string;
  /** Resolved. */
  readonly spec: McpServerSpec;
  readonly workingDirectory: string;
  readonly connect: ServerConnector;
  readonly clock: Clock;
  readonly log: Logger;
  readonly slots: StartSlots;
  readonly memory: IdentityMemory;
  /** The end of an earlier connection to the same server: it may hold what the next one needs. */
  readonly predecessor: Promise<unknown>;
}

/** What a life needs to know of those it is lived for. */
export interface LifeOwner {
  readonly name: string;
  /** Milliseconds for connecting. */
  readonly timeout: number;
  /** False: nobody needs the server, so it is not started anew. */
  readonly isWanted: boolean;
  /** The state is another, or a connection is there. */
  changed(): void;
  published(lists: ServerLists): void;
}
