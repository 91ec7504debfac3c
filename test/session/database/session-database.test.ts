import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type * as Skillhost from "skillhost";
import type * as Testing from "skillhost/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { buildPackage } from "../../built-package.ts";
import { rounds } from "../../rounds.ts";
import { tempFolder } from "../../skills/kit.ts";
import { patience } from "../../slowness.ts";

// The thread of a database runs the built program, so the whole host is the built one.
const built = (file: string): string => pathToFileURL(join(buildPackage().folder, "dist", file)).href;
const { createHost } = (await import(/* @vite-ignore */ built("index.js"))) as typeof Skillhost;
const { scriptedModel } = (await import(/* @vite-ignore */ built("testing.js"))) as typeof Testing;

async function openHost(folder = tempFolder()): Promise<Skillhost.Host> {
  const host = await createHost({
    skillDirectories: [],
    watch: false,
    logger: silentLogger,
    workingDirectory: folder,
    sessionsDirectory: folder,
  });
  onTestFinished(() => host.close());
  return host;
}

interface Opened {
  readonly host: Skillhost.Host;
  readonly session: Skillhost.Session;
  readonly folder: string;
  /** What the model reads of a query. */
  sql(query: string): Promise<string>;
}

const options = (): Skillhost.SessionOptions => ({ chatModel: scriptedModel(), sessionDatabase: true });

async function open(more: Skillhost.SessionOptions = {}): Promise<Opened> {
  const folder = tempFolder();
  const host = await openHost(folder);
  const session = await host.createSession({ ...options(), ...more });
  return { host, session, folder, sql: sqlOf(session) };
}

function sqlOf(session: Skillhost.Session): (query: string) => Promise<string> {
  return async (query) => (await session.callTool("sql", { description: "Does something", query })).text;
}

const numbers = (count: number): string => `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${count}) `;

describe("the database of a session", () => {
  test("keeps todos, says that they changed before the call ends, and has them again when the session is resumed", async () => {
    const { host, session, folder, sql } = await open();
    expect(await session.readSqlTodos()).toEqual({ rows: [], dependencies: [] });
    expect(existsSync(join(folder, session.id, "session.db"))).toBe(false);
    const seen: string[] = [];
    session.on(({ type, ...event }) => {
      if (type !== "session.tools_updated") seen.push("ephemeral" in event ? `${type} (ephemeral)` : type);
    });
    expect(await session.readSqlTodos()).toEqual({ rows: [], dependencies: [] });
    await sql(
      "INSERT INTO todos (id, title, description) VALUES ('model', 'Creating the model', 'All of it'), ('routes', 'Adding routes', NULL)",
    );
    expect(seen).toEqual(["tool.execution_start", "session.todos_changed (ephemeral)", "tool.execution_complete"]);
    await sql("INSERT INTO todo_deps VALUES ('routes', 'model'); UPDATE todos SET status = 'in_progress' WHERE id = 'model'");
    seen.length = 0;
    await sql("SELECT * FROM todos; CREATE TABLE notes (about TEXT, todos TEXT)");
    expect(seen).toEqual(["tool.execution_start", "tool.execution_complete"]);
    const todos = {
      rows: [
        {
          id: "model",
          title: "Creating the model",
          description: "All of it",
          status: "in_progress",
          createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
        },
        { id: "routes", title: "Adding routes", status: "pending", createdAt: expect.any(String) },
      ],
      dependencies: [{ todoId: "routes", dependsOn: "model" }],
    };
    expect(await session.readSqlTodos()).toEqual(todos);
    await host.close();
    await expect(session.readSqlTodos()).rejects.toMatchObject({ code: "SESSION_CLOSED" });

    const resumed = await (await openHost(folder)).resumeSession(session.id, { chatModel: scriptedModel() });
    expect(await resumed.readSqlTodos()).toEqual(todos);
    expect(await sqlOf(resumed)("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")).toContain("| notes |");
  });

  test("answers in the words that recorded conversations have", async () => {
    const { sql } = await open();
    expect(await sql("SELECT * FROM todos")).toBe("Query returned 0 rows.");
    expect(await sql("INSERT INTO todos (id, title) VALUES ('a', 'A'), ('b', 'B')")).toBe("2 row(s) inserted. Last inserted row ID: 2.");
    expect(await sql("UPDATE todos SET title = 'C' WHERE id = 'none'")).toBe("0 row(s) updated.");
    expect(await sql("DELETE FROM todos WHERE id = 'b'")).toBe("1 row(s) deleted.");
    expect(await sql("SELECT id, description, 1.5 AS f, x'00ff' AS b, 9007199254740993 AS big FROM todos")).toBe(
      "1 row(s) returned:\n\n| id | description | f | b | big |\n| --- | --- | --- | --- | --- |\n| a | NULL | 1.5 | x'00ff' | 9007199254740993 |",
    );
    expect(await sql("CREATE TABLE u (x); INSERT INTO u VALUES (1); -- more\nSELECT * FROM u;")).toBe(
      "Executed 3 statement(s):\n\n1. CREATE\n   Schema operation completed successfully.\n\n2. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.\n\n3. SELECT\n   1 row(s) returned:\n   \n   | x |\n   | --- |\n   | 1 |",
    );
    expect(await sql("INSERT INTO u VALUES (2); SELECT * FROM nowhere; INSERT INTO u VALUES (3)")).toBe(
      "SQL Error after statement 2 (SELECT): Error: no such table: nowhere\n\nCompleted 1 statement(s) before failure:\n\n1. INSERT\n   1 row(s) inserted. Last inserted row ID: 2.",
    );
    expect(await sql("SELECT count(*) AS n FROM u")).toContain("| 2 |");
    expect(await sql("UPDATE todos SET status = 'nonsense'")).toMatch(/^SQL Error: Error: CHECK constraint failed/);
    expect(await sql("INSERT INTO todo_deps VALUES ('none', 'a')")).toBe("SQL Error: Error: FOREIGN KEY constraint failed");
    expect(await sql("")).toBe("Error: Empty query provided.");
    expect(await sql(" ; -- nothing")).toBe("Error: Empty query provided.");
    expect(await sql("this is not SQL")).toBe('SQL Error: Error: near "this": syntax error');
  });

  test("undoes a transaction that its query does not end, and says so", async () => {
    const { sql } = await open();
    await sql("CREATE TABLE t (x)");
    expect(await sql("BEGIN; INSERT INTO t VALUES (1)")).toContain("The transaction was not committed, so its changes were undone.");
    expect(await sql("SELECT * FROM t")).toBe("Query returned 0 rows.");
    expect(await sql("COMMIT")).toBe("SQL Error: Error: cannot commit - no transaction is active");
    await sql("BEGIN; INSERT INTO t VALUES (2); COMMIT; CREATE TEMP TABLE short (x)");
    expect(await sql("SELECT * FROM t")).toContain("| 2 |");
    expect(await sql("SELECT * FROM short")).toBe("SQL Error: Error: no such table: short");
  });

  test("is the session's own: another has no part in it, a fork gets a copy, a rewind leaves it, and it goes with the session", async () => {
    const { host, session, folder, sql } = await open({ chatModel: scriptedModel("One.", "Two.") });
    const other = await host.createSession(options());
    await session.sendAndWait("First");
    await sql("INSERT INTO todos (id, title) VALUES ('a', 'A')");
    await sqlOf(other)("INSERT INTO todos (id, title) VALUES ('b', 'B')");
    expect((await other.readSqlTodos()).rows.map(({ id }) => id)).toEqual(["b"]);

    const fork = await host.resumeSession(await host.forkSession(session.id), { chatModel: scriptedModel() });
    await sql("UPDATE todos SET status = 'done'");
    await sqlOf(fork)("INSERT INTO todos (id, title) VALUES ('c', 'C')");
    expect((await fork.readSqlTodos()).rows.map(({ id, status }) => `${id} ${status}`)).toEqual(["a pending", "c pending"]);

    const [first] = (await session.getMessages()).filter(({ type }) => type === "user.message");
    await session.rewind(first!.id);
    expect((await session.readSqlTodos()).rows).toMatchObject([{ id: "a", status: "done" }]);

    await host.deleteSession(session.id);
    expect(existsSync(join(folder, session.id))).toBe(false);
    expect((await fork.readSqlTodos()).rows).toHaveLength(2);
  });

  test("has room for 100,000 todos, of which a list too long for a model goes to a file", { timeout: patience(60_000) }, async () => {
    const { session, sql } = await open();
    expect(
      await sql(
        `${numbers(100_000)} INSERT INTO todos (id, title, description) SELECT 'todo-' || n, 'Doing ' || n, 'What to do for ' || n FROM c`,
      ),
    ).toContain("Rows affected: 100000.");
    const { rows } = await session.readSqlTodos();
    expect([rows.length, rows[0]?.id, rows.at(-1)?.id]).toEqual([100_000, "todo-1", "todo-100000"]);
    expect(await sql("UPDATE todos SET status = 'done' WHERE id = 'todo-50000'")).toBe("1 row(s) updated.");
    expect((await session.readSqlTodos()).rows.filter(({ status }) => status === "done").map(({ id }) => id)).toEqual(["todo-50000"]);
    const listed = await sql("SELECT id, title, status FROM todos");
    expect(Buffer.byteLength(listed)).toBeLessThan(60_000);
    const [, file] = /The full output is in (\S+):/.exec(listed) ?? [];
    expect(readFileSync(file!, "utf8")).toContain("| todo-100000 | Doing 100000 | pending |");
  });

  test("is complete after its process was killed while it wrote", { timeout: patience(90_000) }, async () => {
    const folder = tempFolder();
    const program = writerIn(tempFolder());
    const child = (): ChildProcess => spawn(process.execPath, [program, folder], { stdio: ["ignore", "pipe", "inherit"] });
    let stored = 0;
    for (let round = 0; round < rounds(3, 20); round++) {
      const running = child();
      onTestFinished(() => void running.kill("SIGKILL"));
      await new Promise<void>((resolve) => {
        let count = 0;
        running.stdout?.on("data", (chunk: Buffer) => {
          const lines = chunk.toString().trim().split("\n");
          stored = Number(lines.at(-1));
          count += lines.length;
          if (count > 3 + round) running.kill("SIGKILL");
        });
        running.on("close", () => resolve());
      });
      const host = await openHost(folder);
      const session = await host.resumeSession("s", options());
      const text = await sqlOf(session)("PRAGMA integrity_check; SELECT count(*) AS n, max(n) AS m FROM written");
      expect(text).toContain("| ok |");
      const [, count, last] = /\| (\d+) \| (\d+) \|$/.exec(text) ?? [];
      expect(count).toBe(last);
      // The last one may have been stored just before it could say so.
      expect(Number(last) - stored).toBeOneOf([0, 1]);
      stored = Number(last);
      await host.close();
    }
  });
});

/** A program that adds rows to the database of a session, and prints each number that is stored, until it is killed. */
function writerIn(folder: string): string {
  const file = join(folder, "writer.mjs");
  writeFileSync(
    file,
    `import { createHost } from ${JSON.stringify(built("index.js"))};
import { scriptedModel } from ${JSON.stringify(built("testing.js"))};
const [folder] = process.argv.slice(2);
const host = await createHost({ skillDirectories: [], watch: false, workingDirectory: folder, sessionsDirectory: folder });
const options = { chatModel: scriptedModel(), sessionDatabase: true };
const known = await host.listSessions();
const session = known.length === 0 ? await host.createSession({ ...options, sessionId: "s" }) : await host.resumeSession("s", options);
const sql = async (query) => {
  const { ok, text } = await session.callTool("sql", { description: "Writes", query });
  if (!ok) throw new Error(text);
  return text;
};
await sql("CREATE TABLE IF NOT EXISTS written (n INTEGER PRIMARY KEY, filler TEXT)");
const from = Number((await sql("SELECT coalesce(max(n), 0) AS n FROM written")).split("|").at(-2));
for (let n = from + 1; ; n++) {
  await sql(\`INSERT INTO written VALUES (\${n}, hex(randomblob(20000)))\`);
  console.log(n);
}
`,
  );
  return file;
}

describe("SQL that would do harm", () => {
  test("reaches no other file, setting or library", async () => {
    const { folder, sql } = await open();
    const secret = join(folder, "secret.db");
    writeFileSync(secret, "secret");
    const before = readdirSync(folder, { recursive: true }).length;
    const refused = (what: string): string => `Error: Blocked SQL statement: "${what}" is not allowed for security reasons.`;
    const attempts: readonly (readonly [query: string, answer: string | RegExp])[] = [
      [`ATTACH '${secret}' AS other`, refused("ATTACH")],
      [`ATTACH ':memory:' AS other`, refused("ATTACH")],
      [`/* x */ attach database 'file:${secret}?mode=rwc' as other`, refused("ATTACH")],
      [`VACUUM INTO '${join(folder, "copy.db")}'`, refused("VACUUM INTO")],
      ["DETACH DATABASE main", refused("DETACH")],
      ["PRAGMA database_list", refused("PRAGMA database_list")],
      ["SELECT * FROM pragma_database_list", refused("PRAGMA database_list")],
      ["PRAGMA writable_schema = 1", refused("PRAGMA writable_schema")],
      ["PRAGMA hard_heap_limit = 0", refused("PRAGMA hard_heap_limit")],
      ["PRAGMA max_page_count = 4294967294", refused("PRAGMA max_page_count")],
      ["PRAGMA user_version = 3", refused("PRAGMA user_version")],
      [`PRAGMA temp_store_directory = '${folder}'`, /not allowed|Rows affected: 0/],
      ["SELECT load_extension('x')", /no such function/],
      [`SELECT readfile('${secret}')`, /no such function/],
      [`SELECT writefile('${secret}', 'x')`, /no such function/],
      [`SELECT edit('x')`, /no such function/],
      ["CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')", /no such module/],
      ["UPDATE sqlite_schema SET sql = 'x'", /may not be modified/],
      ["UPDATE sqlite_dbpage SET data = zeroblob(8192) WHERE pgno = 1", /may not be modified|read-only|unsafe/],
      ["INSERT INTO nowhere VALUES (1); ATTACH 'x' AS y", /no such table/],
      ["SELECT 1 AS n; ATTACH 'x' AS y", /^SQL Error after statement 2 \(ATTACH\): Blocked SQL statement/],
      ["EXPLAIN ATTACH 'x' AS y", /not allowed/],
    ];
    for (const [query, answer] of attempts) {
      if (typeof answer === "string") expect(await sql(query), query).toBe(answer);
      else expect(await sql(query), query).toMatch(answer);
    }
    expect(readFileSync(secret, "utf8")).toBe("secret");
    expect(readdirSync(folder, { recursive: true })).toHaveLength(before);
    expect(await sql("SELECT 1 AS n")).toContain("| 1 |");
  });

  test("ends where it runs for ever, while other sessions and the host continue", { timeout: patience(120_000) }, async () => {
    const { host, session, sql } = await open();
    const other = sqlOf(await host.createSession(options()));
    await sql("INSERT INTO todos (id, title) VALUES ('a', 'A')");
    let turns = 0;
    let ended = false;
    const counting = (): void => {
      turns++;
      if (!ended) setImmediate(counting);
    };
    setImmediate(counting);
    const endless = sql("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c").finally(() => {
      ended = true;
    });
    const order: string[] = [];
    await Promise.all([endless.then((text) => order.push(text)), other("SELECT 1 AS n").then((text) => order.push(text.slice(0, 6)))]);
    expect(order).toEqual(["1 row(", expect.stringMatching(/^SQL Error: Error: the query took more than 50000000 steps/)]);
    expect(turns).toBeGreaterThan(100);
    // Also where reading the todos would never end.
    await sql(
      "DROP TABLE todo_deps; DROP TABLE todos; CREATE VIEW todos AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS id FROM c",
    );
    expect(await session.readSqlTodos()).toEqual({ rows: [], dependencies: [] });
  });

  test("stops with its call, and what it did is undone", { timeout: patience(60_000) }, async () => {
    const { session, sql } = await open();
    await sql("CREATE TABLE t (x)");
    const stop = new AbortController();
    const query = `INSERT INTO t VALUES (1); ${numbers(1_000_000_000)} SELECT count(*) FROM c`;
    const call = session.callTool("sql", { description: "Runs", query }, { signal: stop.signal });
    // It has begun when the next one waits for it.
    const next = sql("SELECT * FROM t");
    setTimeout(() => stop.abort(new Error("Enough.")), 300);
    expect((await call).ok).toBe(false);
    expect(await next).toBe("Query returned 0 rows.");
  });

  test.each([
    [
      "rows",
      `CREATE TABLE big (x); ${numbers(1_000)} INSERT INTO big SELECT randomblob(900000) FROM c`,
      /database or disk is full|out of memory/,
    ],
    ["one value", "SELECT length(replace(hex(zeroblob(400000)), '0', 'xxxxxxxx')) AS n", /string or blob too big/],
    ["a value that is made", "SELECT zeroblob(2000000000) AS z", /string or blob too big/],
    ["a text of SQL", `SELECT '${"x".repeat(1_000_001)}'`, /too big|too large|too long/],
    ["a pattern", `SELECT 'a' LIKE '${"%a".repeat(2_000)}' AS n`, /pattern too complex/],
    ["an expression", `SELECT ${"1 + ".repeat(3_000)} 1 AS n`, /maximum depth 200/],
    ["a join", `${numbers(100_000)} SELECT count(*) AS n FROM c a, c b, c d`, /took more than|disk is full|out of memory/],
    ["sorting", `${numbers(5_000)} SELECT randomblob(900000) AS b FROM c ORDER BY 1`, /out of memory|took more than|full/],
  ])("is limited in %s, and the database stays as it was", { timeout: patience(120_000) }, async (_what, query, answer) => {
    const { folder, session, sql } = await open();
    await sql("INSERT INTO todos (id, title) VALUES ('a', 'A')");
    expect(await sql(query)).toMatch(answer);
    expect((await session.readSqlTodos()).rows).toMatchObject([{ id: "a" }]);
    expect(await sql("UPDATE todos SET status = 'done'")).toBe("1 row(s) updated.");
    expect(readFileSync(join(folder, session.id, "session.db")).length).toBeLessThan(64 * 1024 * 1024 + 1);
  });

  test("gets no more rows than a result may have", { timeout: patience(60_000) }, async () => {
    const { sql } = await open({ largeOutput: { enabled: false } });
    const text = await sql(`${numbers(2_000_000)} SELECT n, 'a text that is repeated' AS t FROM c`);
    expect(text).toContain("There are more rows, which are too long for one result.");
    expect(text.length).toBeLessThan(12_000_000);
  });
});

describe("a database that cannot be used", () => {
  test.each([
    [
      "is damaged",
      (file: string) => writeFileSync(file, "a text in place of a database, that is long enough to have a header ".repeat(200)),
    ],
    ["is cut off", (file: string) => writeFileSync(file, readFileSync(file).subarray(0, 5_000))],
    ["is a folder", (file: string) => mkdirSync(file)],
  ])("because its file %s is a failure of the call, and there are no todos", async (what, spoil) => {
    const folder = tempFolder();
    const host = await openHost(folder);
    const { id } = await host.createSession({ ...options(), sessionId: "s" });
    const session = await host.resumeSession(id);
    if (what === "is cut off") {
      await sqlOf(session)("INSERT INTO todos (id, title) VALUES ('a', 'A')");
      await session.disconnect();
    } else mkdirSync(join(folder, "s"), { recursive: true });
    spoil(join(folder, "s", "session.db"));
    const again = await host.resumeSession(id, { chatModel: scriptedModel() });
    const { ok, text } = await again.callTool("sql", { description: "Reads", query: "SELECT * FROM todos; PRAGMA integrity_check" });
    expect([ok, text]).toEqual([
      false,
      expect.stringMatching(/^SQL Error: Error: (?:the database of this session cannot be used now\.|.*malformed)/),
    ]);
    expect(await again.readSqlTodos()).toEqual({ rows: [], dependencies: [] });
  });
});

describe("the tool sql", () => {
  test("is there where the option says so, and a filter hides it", async () => {
    const host = await openHost();
    const names = async (more: Skillhost.SessionOptions): Promise<readonly string[]> => {
      const session = await host.createSession({ chatModel: scriptedModel(), ...more });
      return session.listTools().map(({ name }) => name);
    };
    expect(await names({})).not.toContain("sql");
    expect(await names({ sessionDatabase: true })).toContain("sql");
    expect(await names({ sessionDatabase: true, excludedTools: ["sql"] })).not.toContain("sql");
    const session = await host.createSession({ chatModel: scriptedModel() });
    await session.update({ sessionDatabase: true });
    expect(session.listTools().map(({ name }) => name)).toContain("sql");
    await expect(host.createSession({ sessionDatabase: "yes" as never })).rejects.toMatchObject({ code: "SESSION_OPTIONS" });
  });
});
