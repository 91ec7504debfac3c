import { afterEach, describe, expect, test } from "vitest";
import { splitStatements } from "../../../src/servers/copilot/clients/client-database.ts";
import { Disk } from "./client-disk.ts";
import { calling, type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

interface Opened {
  readonly client: TestClient;
  readonly sessionId: string;
  readonly queries: string[];
  /** What the model reads of a query. */
  sql(query: string): Promise<string>;
}

/** A client that stores sessions and has a database of each, or none. */
async function open(sqlite: boolean | undefined, answer: (query: string) => object = () => nothing): Promise<Opened> {
  served = await Served.start();
  const client = await served.connect();
  new Disk().serve(client);
  const queries: string[] = [];
  client.answers("sessionFs.sqliteExists", () => ({ exists: queries.length > 0 }));
  client.answers("sessionFs.sqliteQuery", ({ query, queryType }: Json) => {
    queries.push(`${queryType} ${query.trim().split("\n")[0]}`);
    return answer(query);
  });
  const capabilities = sqlite === undefined ? {} : { capabilities: { sqlite } };
  const provided = { initialCwd: served.folder, sessionStatePath: "/state", conventions: "posix", ...capabilities };
  await client.request("sessionFs.setProvider", provided);
  const sessionId = await client.create({ model: "m" });
  const sql = async (query: string): Promise<string> => {
    served.says(calling("sql", { description: "Does", query }), "So.");
    await client.say(sessionId, "Continue.");
    return served.asked.messages.findLast(({ role }: Json) => role === "tool").content;
  };
  return { client, sessionId, queries, sql };
}

const nothing = { rows: [], columns: [], rowsAffected: 0 };

describe("the database of a session that its client stores", () => {
  test("is at the client, which gets one statement at a time", async () => {
    const { client, sessionId, queries, sql } = await open(true, (query) =>
      query.startsWith("SELECT")
        ? { rows: [{ id: "a", n: null }], columns: ["id", "n"], rowsAffected: 0 }
        : { ...nothing, rowsAffected: 2, lastInsertRowid: 7 },
    );
    const read = (): Promise<Json> => client.request("session.plan.readSqlTodosWithDependencies", { sessionId });
    expect(await read()).toEqual({ rows: [], dependencies: [] });
    expect(queries).toEqual([]);
    expect(await sql("INSERT INTO todos (id, title) VALUES ('a', 'x;y'); SELECT id, n FROM todos; CREATE INDEX i ON todos (id);")).toBe(
      "Executed 3 statement(s):\n\n1. INSERT\n   2 row(s) inserted. Last inserted row ID: 7.\n\n2. SELECT\n   1 row(s) returned:\n   \n   | id | n |\n   | --- | --- |\n   | a | NULL |\n\n3. CREATE\n   Schema operation completed successfully.",
    );
    expect(queries).toEqual([
      "exec CREATE TABLE IF NOT EXISTS todos (",
      "run INSERT INTO todos (id, title) VALUES ('a', 'x;y')",
      "query SELECT id, n FROM todos",
      "exec CREATE INDEX i ON todos (id)",
    ]);
    expect(client.events.filter(({ event }) => event.type === "session.todos_changed")).toHaveLength(1);
    expect(await read()).toEqual({ rows: [{ id: "a" }], dependencies: [] });
  });

  test("fails with the client's message, and never gets what would reach other files", async () => {
    const { queries, sql } = await open(true, (query) =>
      query.includes("bad") ? { ...nothing, error: { code: "UNKNOWN", message: "no such table: bad" } } : nothing,
    );
    expect(await sql("DELETE FROM bad")).toBe("SQL Error: Error: no such table: bad");
    expect(await sql("/* x */ ATTACH 'other.db' AS other")).toBe(
      'Error: Blocked SQL statement: "ATTACH" is not allowed for security reasons.',
    );
    expect(queries.filter((query) => query.includes("ATTACH"))).toEqual([]);
  });

  test.each([false, undefined])("is not offered where the client has none (%s)", async (sqlite) => {
    const { client, sessionId } = await open(sqlite);
    served.says("So.");
    await client.say(sessionId, "Hello");
    expect(served.asked.tools.map(({ function: { name } }: Json) => name)).not.toContain("sql");
    expect(await client.request("session.plan.readSqlTodos", { sessionId })).toEqual({ rows: [] });
  });
});

test.each<[sql: string, statements: readonly string[]]>([
  ["", []],
  [" ; ;-- only this\n;", []],
  ["SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]],
  ["SELECT ';' AS a; SELECT \"b;\", [c;], `d;`", ["SELECT ';' AS a", 'SELECT "b;", [c;], `d;`']],
  ["SELECT 'it''s; so'; -- a;b\nSELECT 2", ["SELECT 'it''s; so'", "-- a;b\nSELECT 2"]],
  ["/* ; */ SELECT 1 /* ; */; SELECT 'open ; text", ["/* ; */ SELECT 1 /* ; */", "SELECT 'open ; text"]],
  [
    "CREATE TRIGGER t AFTER INSERT ON x BEGIN UPDATE y SET a = CASE WHEN 1 THEN 2 END; DELETE FROM z; END; SELECT 1",
    ["CREATE TRIGGER t AFTER INSERT ON x BEGIN UPDATE y SET a = CASE WHEN 1 THEN 2 END; DELETE FROM z; END", "SELECT 1"],
  ],
  ["BEGIN; INSERT INTO x VALUES (1); COMMIT", ["BEGIN", "INSERT INTO x VALUES (1)", "COMMIT"]],
])("a query is split into its statements: %j", (sql, statements) => {
  expect(splitStatements(sql)).toEqual(statements);
});
