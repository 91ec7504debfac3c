import { errorMessage } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import {
  noTodos,
  type SqlDatabase,
  type SqlOutcome,
  type SqlTodo,
  type SqlTodos,
  type StatementOutcome,
  todoTables,
  wordOf,
} from "../../../session/database/sql-database.ts";
import { sqlLimits } from "../../../session/database/sql-limits.ts";
import type { ClientFiles } from "./client-files.ts";

/** The database of a session at its client, which runs one statement at a time. */
export class ClientDatabase implements SqlDatabase {
  readonly #files: ClientFiles;
  #created: Promise<unknown> | undefined;

  constructor(files: ClientFiles) {
    this.#files = files;
  }

  async run(sql: string, signal: AbortSignal): Promise<SqlOutcome> {
    const statements: StatementOutcome[] = [];
    let changesTodos = false;
    for (const statement of splitStatements(sql)) {
      signal.throwIfAborted();
      const word = wordOf(statement);
      if (refusedWords.has(word)) {
        const message = `Blocked SQL statement: "${word}" is not allowed for security reasons.`;
        return { statements, failure: { word, message, isRefused: true }, changesTodos, isRolledBack: false };
      }
      try {
        await this.#create();
        statements.push(toOutcome(word, await this.#files.query(statement, typeOf(word))));
      } catch (error) {
        return { statements, failure: { word, message: errorMessage(error) }, changesTodos, isRolledBack: false };
      }
      // The client does not say what a statement has changed.
      changesTodos ||= /\b(?:todos|todo_deps)\b/i.test(statement) && writes.test(statement);
    }
    return { statements, changesTodos, isRolledBack: false };
  }

  async readTodos(): Promise<SqlTodos> {
    if (!(await this.#files.hasDatabase())) return noTodos;
    const todos = "SELECT id, title, description, status, created_at AS createdAt FROM todos ORDER BY created_at, rowid";
    const edges = "SELECT todo_id AS todoId, depends_on AS dependsOn FROM todo_deps ORDER BY todo_id, depends_on";
    const [rows, dependencies] = await Promise.all([this.#select(todos), this.#select(edges)]);
    return {
      rows: rows.map(
        (row): SqlTodo => Object.fromEntries(todoFields.flatMap((name) => (row[name] == null ? [] : [[name, String(row[name])]]))),
      ),
      dependencies: dependencies.flatMap(({ todoId, dependsOn }) =>
        todoId == null || dependsOn == null ? [] : [{ todoId: String(todoId), dependsOn: String(dependsOn) }],
      ),
    };
  }

  /** The client closes its database itself. */
  async close(): Promise<void> {}

  /** Empty when the model has made something else of the table. */
  async #select(query: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    try {
      const { rows } = await this.#files.query(query, "query");
      return Array.isArray(rows) ? rows.filter(isRecord) : [];
    } catch {
      return [];
    }
  }

  #create(): Promise<unknown> {
    this.#created ??= this.#files.query(todoTables, "exec").catch((error: unknown) => {
      this.#created = undefined;
      throw error;
    });
    return this.#created;
  }
}

const todoFields = ["id", "title", "description", "status", "createdAt"] as const;
const writes = /\b(?:INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP)\b/i;
/** They would reach other databases of the client. */
const refusedWords: ReadonlySet<string> = new Set(["ATTACH", "DETACH"]);
const schemaWords: ReadonlySet<string> = new Set(["CREATE", "ALTER", "DROP"]);
const readingWords: ReadonlySet<string> = new Set(["SELECT", "WITH", "EXPLAIN", "PRAGMA", "VALUES"]);

function typeOf(word: string): "exec" | "query" | "run" {
  if (schemaWords.has(word)) return "exec";
  return readingWords.has(word) ? "query" : "run";
}

function toOutcome(word: string, answer: Readonly<Record<string, unknown>>): StatementOutcome {
  const { rows, columns, rowsAffected, lastInsertRowid } = answer;
  if (typeOf(word) !== "query")
    return { kind: "changed", word, count: typeof rowsAffected === "number" ? rowsAffected : 0, lastRowId: String(lastInsertRowid ?? 0) };
  const names = Array.isArray(columns) ? columns.map(String) : [];
  const taken: string[][] = [];
  let length = 0;
  const all = Array.isArray(rows) ? rows.filter(isRecord) : [];
  for (const row of all) {
    const cells = names.map((name) => cellOf(row[name]));
    length += cells.reduce((sum, cell) => sum + cell.length + 3, 0);
    if (length > sqlLimits.resultLength) break;
    taken.push(cells);
  }
  return { kind: "rows", word, columns: names, rows: taken, isCut: taken.length < all.length };
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const token =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$)|\w+|[^\s\w]/g;

/**
 * The statements of a query, without those that are empty. The body of a trigger, from BEGIN to END, belongs to its statement.
 * @internal Exported for tests.
 */
export function splitStatements(sql: string): readonly string[] {
  const statements: string[] = [];
  let start = 0;
  let words: string[] = [];
  let depth = 0;
  const end = (at: number): void => {
    if (words.length > 0) statements.push(sql.slice(start, at).trim());
    [start, words, depth] = [at + 1, [], 0];
  };
  for (const { 0: text, index } of sql.matchAll(token)) {
    if (/^(?:--|\/\*)/.test(text)) continue;
    const word = text.toUpperCase();
    const isTrigger = words[0] === "CREATE" && words.slice(1, 4).includes("TRIGGER");
    if (isTrigger && (word === "BEGIN" || word === "CASE")) depth++;
    else if (isTrigger && word === "END") depth--;
    if (text === ";" && depth <= 0) end(index);
    else if (words.length < 8) words.push(word);
  }
  end(sql.length);
  return statements;
}
