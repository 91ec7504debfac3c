import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { SessionEvents } from "../history/events.ts";
import { noTodos, type SqlDatabase, type SqlOutcome, type SqlTodos } from "./sql-database.ts";

interface SessionDatabaseParts {
  readonly events: SessionEvents;
  readonly log: Logger;
  /** Where it is: a path, or the database of the session's client. */
  readonly place: string | SqlDatabase;
}

/** The database that a session's model keeps its todos and other facts in. Nothing of it is loaded before it is used. */
export class SessionDatabase {
  readonly #parts: SessionDatabaseParts;
  #opened: Promise<SqlDatabase> | undefined;

  constructor(parts: SessionDatabaseParts) {
    this.#parts = parts;
  }

  /** Runs a query of a model, and announces todos that it changed. @throws HostError `SESSION_DATABASE`; the signal's reason. */
  async run(
    sql: string,
    { signal, agentId }: { readonly signal: AbortSignal; readonly agentId?: string | undefined },
  ): Promise<SqlOutcome> {
    const outcome = await (await this.#open()).run(sql, signal);
    if (outcome.changesTodos) this.#parts.events.append("session.todos_changed", {}, agentId);
    return outcome;
  }

  /** Empty when there is no database, and when it cannot be read, which is logged. */
  async readTodos(): Promise<SqlTodos> {
    try {
      return await (await this.#open()).readTodos();
    } catch (error) {
      this.#parts.log.warning("The todos of a session could not be read.", { error: toError(error) });
      return noTodos;
    }
  }

  async close(): Promise<void> {
    await (await this.#opened)?.close();
  }

  #open(): Promise<SqlDatabase> {
    this.#opened ??= openAt(this.#parts.place);
    return this.#opened;
  }
}

async function openAt(place: string | SqlDatabase): Promise<SqlDatabase> {
  return typeof place === "string" ? new (await import("./local-database.ts")).LocalDatabase(place) : place;
}
