/** What a statement did. Cells are texts, as a model reads them. */
export type StatementOutcome = { readonly word: string } & (
  | {
      readonly kind: "rows";
      readonly columns: readonly string[];
      readonly rows: readonly (readonly string[])[];
      /** There were more rows than are kept. */
      readonly isCut: boolean;
    }
  | { readonly kind: "changed"; readonly count: number; readonly lastRowId: string }
);

/** What the statements of a query did, up to the one that failed. */
export interface SqlOutcome {
  readonly statements: readonly StatementOutcome[];
  /** `isRefused`: the statement is not allowed here. */
  readonly failure?: { readonly word: string; readonly message: string; readonly isRefused?: boolean };
  /** Whether the tables of todos were written, also by a trigger. */
  readonly changesTodos: boolean;
  /** The query began a transaction and did not end it. */
  readonly isRolledBack: boolean;
}

/** A thing to do, as the model wrote it in the table `todos`. The model may change the table, so each field may be missing. */
export interface SqlTodo {
  readonly id?: string;
  readonly title?: string;
  readonly description?: string;
  /** `pending`, `in_progress`, `done` or `blocked`, unless the model has other states. */
  readonly status?: string;
  /** In UTC: `2026-11-26 10:32:49`. */
  readonly createdAt?: string;
}

/** The things that a session's model has to do, the oldest first, and which of them wait for others. */
export interface SqlTodos {
  readonly rows: readonly SqlTodo[];
  readonly dependencies: readonly { readonly todoId: string; readonly dependsOn: string }[];
}

/** A database of a session: a file of this machine, or one at the session's client. */
export interface SqlDatabase {
  /** Runs the statements of a query in order, and makes the database if it does not exist. Rejects with the signal's reason. */
  run(sql: string, signal: AbortSignal): Promise<SqlOutcome>;
  /** Creates nothing. Tables that are missing, or not as they were made, count as empty. */
  readTodos(): Promise<SqlTodos>;
  close(): Promise<void>;
}

export const noTodos: SqlTodos = Object.freeze({ rows: Object.freeze([]), dependencies: Object.freeze([]) });

/** The tables of a new database. */
export const todoTables = `
CREATE TABLE IF NOT EXISTS todos (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  description TEXT,
  status TEXT DEFAULT 'pending' CHECK(status IN ('pending', 'in_progress', 'done', 'blocked')),
  created_at TEXT DEFAULT (datetime('now')),
  updated_at TEXT DEFAULT (datetime('now'))
);
CREATE TABLE IF NOT EXISTS todo_deps (
  todo_id TEXT NOT NULL,
  depends_on TEXT NOT NULL,
  PRIMARY KEY (todo_id, depends_on),
  FOREIGN KEY (todo_id) REFERENCES todos(id),
  FOREIGN KEY (depends_on) REFERENCES todos(id)
);
`;

/** The first word of a statement, in capitals. */
export function wordOf(statement: string): string {
  return (/^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(\w+)/.exec(statement)?.[1] ?? "").slice(0, 20).toUpperCase();
}
