/** What one query may use. A model writes it, so it counts steps and bytes, which are the same on each machine. */
export const sqlLimits: {
  readonly steps: number;
  readonly queryBytes: number;
  readonly valueBytes: number;
  readonly databaseBytes: number;
  readonly heapBytes: number;
  readonly resultLength: number;
  readonly todosLength: number;
} = {
  /** Instructions of SQLite's virtual machine. */
  steps: 50_000_000,
  /** UTF-8 bytes of a query. */
  queryBytes: 1_000_000,
  /** Bytes of a text or blob, and of a row. */
  valueBytes: 1_000_000,
  databaseBytes: 64 * 1024 * 1024,
  /** Memory of SQLite, with the database. */
  heapBytes: 320 * 1024 * 1024,
  /** UTF-16 units of the rows of one query. */
  resultLength: 10_000_000,
  /** UTF-16 units of the todos that are read. */
  todosLength: 64_000_000,
};
