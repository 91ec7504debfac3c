import type { SqlDatabase, SqlTodos } from "../../../src/session/database/sql-database.ts";

/** A database whose tables are as given, and which says that each query changed them. */
export function todoDatabase(todos: () => SqlTodos): SqlDatabase {
  return {
    run: async () => ({
      statements: [{ kind: "changed", word: "UPDATE", count: 1, lastRowId: "1" }],
      changesTodos: true,
      isRolledBack: false,
    }),
    readTodos: async () => todos(),
    close: async () => {},
  };
}
