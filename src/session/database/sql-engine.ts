import sqlite3InitModule, { type Database, type Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import { errorMessage } from "../../base/errors.ts";
import { type SqlOutcome, type SqlTodo, type SqlTodos, type StatementOutcome, todoTables, wordOf } from "./sql-database.ts";
import { sqlLimits } from "./sql-limits.ts";

interface RunResult {
  readonly outcome: SqlOutcome;
  /** The database after a change. */
  readonly bytes?: Uint8Array;
}

/**
 * SQLite with one database in memory. It is compiled to WebAssembly and has no files: what a statement could name beyond the database
 * does not exist for it.
 */
export class SqlEngine {
  readonly #sqlite: Sqlite3Static;
  readonly #isStopped: () => boolean;
  #db: Database | undefined;
  #steps = 0;
  #maxSteps: number = sqlLimits.steps;
  /** What the statement that is being compiled would write, and why it is refused. */
  #writes: "todos" | "other" | undefined;
  #refused: string | undefined;
  #word = "";

  private constructor(sqlite: Sqlite3Static, isStopped: () => boolean) {
    this.#sqlite = sqlite;
    this.#isStopped = isStopped;
  }

  /** `isStopped` is asked again and again while a statement runs. */
  static async load(isStopped: () => boolean): Promise<SqlEngine> {
    const silent = (): void => {};
    // It would log each statement that fails.
    Object.assign(globalThis, { sqlite3ApiConfig: { debug: silent, error: silent, log: silent, warn: silent } });
    return new SqlEngine(await sqlite3InitModule({ print: silent, printErr: silent }), isStopped);
  }

  /** Opens a stored database, or makes a new one. @throws Error when the bytes are not a database. */
  open(bytes: Uint8Array | undefined): void {
    const { capi, wasm, oo1 } = this.#sqlite;
    const db = new oo1.DB(":memory:");
    if (bytes !== undefined) {
      // A database with a log of its own beside it: what is in the file is complete without the log.
      if (bytes[18] === 2 && bytes[19] === 2) bytes.fill(1, 18, 20);
      const copy = wasm.allocFromTypedArray(bytes);
      const flags = capi.SQLITE_DESERIALIZE_FREEONCLOSE | capi.SQLITE_DESERIALIZE_RESIZEABLE;
      db.checkRc(capi.sqlite3_deserialize(db, "main", copy, bytes.byteLength, bytes.byteLength, flags));
    }
    const pageSize = Number(db.selectValue("PRAGMA page_size"));
    db.exec(`PRAGMA max_page_count = ${Math.floor(sqlLimits.databaseBytes / pageSize)};
PRAGMA hard_heap_limit = ${sqlLimits.heapBytes}; PRAGMA foreign_keys = ON;`);
    // Reads the file, and fails where it is not a database.
    db.selectValue("SELECT count(*) FROM sqlite_schema");
    if (bytes === undefined) db.exec(todoTables);
    for (const [id, limit] of this.#limits()) capi.sqlite3_limit(db, id, limit);
    capi.sqlite3_db_config(db, capi.SQLITE_DBCONFIG_DEFENSIVE, 1, 0);
    capi.sqlite3_db_config(db, capi.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, 0);
    capi.sqlite3_progress_handler(db, stepsPerQuestion, () => this.#countSteps(), 0);
    this.#db = db;
  }

  run(sql: string): RunResult {
    const { capi } = this.#sqlite;
    const db = this.#opened();
    const statements: StatementOutcome[] = [];
    const done: Progress = { statements, changesTodos: false, hasWritten: false, failure: undefined };
    const before = capi.sqlite3_total_changes(db);
    this.#steps = 0;
    this.#maxSteps = sqlLimits.steps;
    capi.sqlite3_set_authorizer(db, (_, action, first, second) => this.#authorize(action, first || "", second || ""), 0);
    try {
      this.#runAll(db, sql, done);
    } finally {
      capi.sqlite3_set_authorizer(db, noFunction, 0);
    }
    this.#steps = Number.NEGATIVE_INFINITY;
    const isRolledBack = (capi as typeof capi & WithAutocommit).sqlite3_get_autocommit(db) === 0;
    if (isRolledBack) db.exec("ROLLBACK");
    // A change of this setting removes temporary tables: they end with their query.
    db.exec("PRAGMA temp_store = MEMORY; PRAGMA temp_store = DEFAULT");
    const { changesTodos, failure } = done;
    const outcome = { statements, ...(failure && { failure }), changesTodos, isRolledBack };
    // A statement that fails may keep the rows before the one that it failed at.
    const hasWritten = done.hasWritten || capi.sqlite3_total_changes(db) !== before;
    return { outcome, ...(hasWritten && { bytes: capi.sqlite3_js_db_export(db) }) };
  }

  readTodos(): SqlTodos {
    const budget = { length: sqlLimits.todosLength };
    const rows = this.#select("todos", ["id", "title", "description", "status", "created_at"], budget);
    const edges = this.#select("todo_deps", ["todo_id", "depends_on"], budget);
    return {
      rows: rows.map(({ created_at: createdAt, ...row }): SqlTodo => ({ ...row, ...(createdAt !== undefined && { createdAt }) })),
      dependencies: edges.flatMap(({ todo_id: todoId, depends_on: dependsOn }) =>
        todoId === undefined || dependsOn === undefined ? [] : [{ todoId, dependsOn }],
      ),
    };
  }

  #opened(): Database {
    if (this.#db === undefined) throw new Error("The database is not open.");
    return this.#db;
  }

  #limits(): readonly (readonly [id: Parameters<Sqlite3Static["capi"]["sqlite3_limit"]>[1], limit: number])[] {
    const { capi } = this.#sqlite;
    return [
      [capi.SQLITE_LIMIT_LENGTH, sqlLimits.valueBytes],
      [capi.SQLITE_LIMIT_SQL_LENGTH, sqlLimits.queryBytes],
      [capi.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000],
      [capi.SQLITE_LIMIT_EXPR_DEPTH, 200],
      [capi.SQLITE_LIMIT_TRIGGER_DEPTH, 20],
      // VACUUM needs one.
      [capi.SQLITE_LIMIT_ATTACHED, 1],
    ];
  }

  /** Anything but 0 ends the statement. */
  #countSteps(): number {
    this.#steps += stepsPerQuestion;
    return this.#steps > this.#maxSteps || this.#isStopped() ? 1 : 0;
  }

  #runAll(db: Database, sql: string, done: Progress): void {
    const { capi, wasm } = this.#sqlite;
    const bytes = Buffer.from(sql.includes("\0") ? sql.slice(0, sql.indexOf("\0")) : sql);
    const scope = wasm.scopedAllocPush();
    const budget = { length: sqlLimits.resultLength };
    try {
      const [pointers, text] = [wasm.scopedAlloc(16), wasm.scopedAlloc(bytes.length + 1)];
      wasm.heap8u().set(bytes, text);
      wasm.heap8u()[text + bytes.length] = 0;
      for (let at = text; at < text + bytes.length; ) {
        this.#word = wordOf(bytes.toString("utf8", at - text, Math.min(bytes.length, at - text + 2_000)));
        [this.#writes, this.#refused] = [undefined, undefined];
        const code = capi.sqlite3_prepare_v3(db, at, text + bytes.length - at, 0, pointers, pointers + 8);
        const statement = code === capi.SQLITE_OK ? wasm.peekPtr(pointers) : 0;
        const failure = code === capi.SQLITE_OK ? undefined : this.#failureOf(db);
        at = wasm.peekPtr(pointers + 8);
        // Only white space and comments.
        if (failure === undefined && statement === 0) continue;
        if (statement !== 0 && capi.sqlite3_stmt_isexplain(statement) !== 0) this.#writes = undefined;
        const outcome = failure ?? this.#step(db, statement, budget);
        if ("message" in outcome) {
          done.failure = outcome;
          return;
        }
        done.hasWritten ||= this.#writes !== undefined;
        done.changesTodos ||= this.#writes === "todos";
        done.statements.push(outcome);
      }
    } finally {
      wasm.scopedAllocPop(scope);
    }
  }

  #failureOf(db: Database): NonNullable<SqlOutcome["failure"]> {
    const { capi } = this.#sqlite;
    if (this.#refused !== undefined) return { word: this.#word, message: this.#refused, isRefused: true };
    const message = this.#steps > this.#maxSteps ? tooLong : capi.sqlite3_errmsg(db);
    return { word: this.#word, message };
  }

  #step(db: Database, statement: number, budget: { length: number }): StatementOutcome | NonNullable<SqlOutcome["failure"]> {
    const { capi } = this.#sqlite;
    try {
      const before = capi.sqlite3_total_changes(db);
      const count = capi.sqlite3_column_count(statement);
      const columns = Array.from({ length: count }, (_, index) => capi.sqlite3_column_name(statement, index) ?? "");
      const rows: string[][] = [];
      let isCut = false;
      let code = capi.sqlite3_step(statement);
      for (; code === capi.SQLITE_ROW; code = capi.sqlite3_step(statement)) {
        if (isCut) continue;
        const row = columns.map((_, index) => this.#textAt(statement, index));
        budget.length -= row.reduce((length, cell) => length + cell.length + 3, 0);
        isCut = budget.length < 0;
        if (!isCut) rows.push(row);
        // What only reads has nothing more to do.
        else if (this.#writes === undefined) break;
      }
      if (code !== capi.SQLITE_DONE && !isCut) return this.#failureOf(db);
      if (count > 0) return { kind: "rows", word: this.#word, columns, rows, isCut };
      const changed = capi.sqlite3_total_changes(db) - before;
      const lastRowId = String(capi.sqlite3_last_insert_rowid(db));
      return { kind: "changed", word: this.#word, count: changed === 0 ? 0 : capi.sqlite3_changes(db), lastRowId };
    } finally {
      capi.sqlite3_finalize(statement);
    }
  }

  #textAt(statement: number, index: number): string {
    const { capi } = this.#sqlite;
    const value = capi.sqlite3_column_js(statement, index);
    if (value === null || value === undefined) return "NULL";
    return value instanceof Uint8Array ? `x'${Buffer.from(value).toString("hex")}'` : String(value);
  }

  /** Called while a statement is compiled, for each thing that it would do. */
  #authorize(action: number, first: string, second: string): number {
    const { capi } = this.#sqlite;
    const refuse = (what: string): number => {
      this.#refused ??= `Blocked SQL statement: "${what}" is not allowed for security reasons.`;
      return capi.SQLITE_DENY;
    };
    switch (action) {
      case capi.SQLITE_ATTACH:
        // VACUUM attaches a database without a name itself.
        if (this.#word === "VACUUM" && first === "") return capi.SQLITE_OK;
        return refuse(this.#word === "VACUUM" ? "VACUUM INTO" : "ATTACH");
      case capi.SQLITE_DETACH:
        return this.#word === "VACUUM" ? capi.SQLITE_OK : refuse("DETACH");
      case capi.SQLITE_PRAGMA: {
        const name = first.toLowerCase();
        const isAllowed = describing.has(name) || (second === "" && readable.has(name));
        return isAllowed ? capi.SQLITE_OK : refuse(`PRAGMA ${name}`);
      }
      case capi.SQLITE_FUNCTION:
        return second.toLowerCase() === "load_extension" ? refuse("load_extension") : capi.SQLITE_OK;
      case capi.SQLITE_READ:
      case capi.SQLITE_SELECT:
      case capi.SQLITE_TRANSACTION:
      case capi.SQLITE_SAVEPOINT:
      case capi.SQLITE_RECURSIVE:
        return capi.SQLITE_OK;
      default:
        // ALTER names the table second. Everything else that comes here writes.
        if (this.#word !== "VACUUM" && [first, second].some((name) => todoNames.has(name.toLowerCase()))) this.#writes = "todos";
        this.#writes ??= "other";
        return capi.SQLITE_OK;
    }
  }

  /** The rows of a table in their order of creation, with the columns that it has. Empty when it cannot be read. */
  #select<C extends string>(table: string, wanted: readonly C[], budget: { length: number }): { readonly [K in C]?: string }[] {
    const db = this.#opened();
    this.#steps = 0;
    this.#maxSteps = sqlLimits.steps;
    const rows: { [K in C]?: string }[] = [];
    try {
      const has = new Set(db.selectValues("SELECT lower(name) FROM pragma_table_info(?)", [table]).map(String));
      const columns = wanted.filter((name) => has.has(name));
      if (columns.length === 0) return [];
      for (const order of orders(columns)) {
        try {
          db.exec({
            sql: `SELECT ${columns.join(", ")} FROM ${table} ${order}`,
            rowMode: "array",
            callback: (row) => {
              const values = columns.map((name, index) => [name, row[index]] as const).filter(([, value]) => value !== null);
              rows.push(Object.fromEntries(values.map(([name, value]) => [name, String(value)])) as { [K in C]?: string });
              for (const [, value] of values) budget.length -= String(value).length + 20;
              return budget.length < 0 ? false : undefined;
            },
          });
          return rows;
        } catch (error) {
          // A table without row ids, and a view.
          if (!/no such column: rowid/.test(errorMessage(error))) throw error;
        }
      }
      return rows;
    } catch {
      // The model has made something else of the table.
      return [];
    }
  }
}

/** Missing in the declarations of the package. */
interface WithAutocommit {
  sqlite3_get_autocommit(db: Database): number;
}

/** A null pointer. */
const noFunction = 0 as unknown as () => number;

interface Progress {
  readonly statements: StatementOutcome[];
  changesTodos: boolean;
  hasWritten: boolean;
  failure: SqlOutcome["failure"];
}

const stepsPerQuestion = 10_000;
const tooLong = `the query took more than ${sqlLimits.steps} steps and was stopped. Narrow it, add an index, or end its recursion`;
const todoNames: ReadonlySet<string> = new Set(["todos", "todo_deps"]);

/** What describes tables: their argument is a name. */
const describing: ReadonlySet<string> = new Set([
  "foreign_key_check",
  "foreign_key_list",
  "index_info",
  "index_list",
  "index_xinfo",
  "integrity_check",
  "quick_check",
  "table_info",
  "table_list",
  "table_xinfo",
]);

/** Settings that may be read. `data_version` is how full-text search learns of changes. */
const readable: ReadonlySet<string> = new Set([
  "collation_list",
  "compile_options",
  "data_version",
  "encoding",
  "foreign_keys",
  "freelist_count",
  "function_list",
  "page_count",
  "page_size",
  "schema_version",
  "user_version",
]);

function orders(columns: readonly string[]): readonly string[] {
  const created = columns.includes("created_at") ? ["created_at"] : [];
  const id = columns.find((name) => name === "id" || name === "todo_id");
  return [["rowid"], id === undefined ? [] : [id]].map((last) => {
    const terms = id === "todo_id" ? ["todo_id", ...columns.filter((name) => name === "depends_on")] : [...created, ...last];
    return terms.length === 0 ? "" : `ORDER BY ${terms.join(", ")}`;
  });
}
