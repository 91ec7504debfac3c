import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { calling, Runtime, type Sdk } from "./sdk-kit.ts";

let runtime: Runtime;

beforeAll(async () => {
  runtime = await Runtime.start();
}, patience(120_000));

afterEach(() => runtime.clear());
afterAll(() => runtime[Symbol.asyncDispose]());

/** Lets the model run a query, and returns the result that it reads. */
async function ask(session: Sdk, query: string): Promise<string> {
  runtime.says(calling("sql", { description: "Does something", query }, `call-${query}`), "So.");
  await session.sendAndWait({ prompt: "Continue." });
  return runtime.lastToolResult;
}

// These hold for the official runtime as well: COPILOT_TEST_RUNTIME.
describe("the todos of a session", () => {
  test("are written by the model and read by the program, which hears of each change", async () => {
    const session = await runtime.session();
    const seen: string[] = [];
    session.on(({ type }: Sdk) => {
      if (/^session\.todos|^tool\.execution/.test(type)) seen.push(type);
    });
    expect(await session.rpc.plan.readSqlTodosWithDependencies()).toEqual({ rows: [], dependencies: [] });
    expect(await ask(session, "INSERT INTO todos (id, title) VALUES ('a', 'Doing a'), ('b', 'Doing b')")).toBe(
      "2 row(s) inserted. Last inserted row ID: 2.",
    );
    expect(seen).toEqual(["tool.execution_start", "session.todos_changed", "tool.execution_complete"]);
    await ask(session, "INSERT INTO todo_deps VALUES ('b', 'a')");
    await ask(session, "UPDATE todos SET status = 'in_progress' WHERE id = 'a'");
    const changes = seen.length;
    expect(await ask(session, "SELECT id, status FROM todos")).toBe(
      "2 row(s) returned:\n\n| id | status |\n| --- | --- |\n| a | in_progress |\n| b | pending |",
    );
    expect(seen.slice(changes)).not.toContain("session.todos_changed");
    const { rows, dependencies } = await session.rpc.plan.readSqlTodosWithDependencies();
    expect(rows).toMatchObject([
      { id: "a", title: "Doing a", status: "in_progress", createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/) },
      { id: "b", title: "Doing b", status: "pending" },
    ]);
    expect(dependencies).toEqual([{ todoId: "b", dependsOn: "a" }]);
    expect((await session.rpc.plan.readSqlTodos()).rows).toEqual(rows);
    const [tool] = runtime.asked.tools.filter(({ function: { name } }: Sdk) => name === "sql");
    expect([Object.keys(tool.function.parameters.properties), tool.function.parameters.required]).toEqual([
      ["description", "query"],
      ["description", "query"],
    ]);
  });

  test("survive a mistake, are another session's own, and are there when the session is resumed", async () => {
    const [session, other] = [await runtime.session(), await runtime.session()];
    await ask(session, "INSERT INTO todos (id, title) VALUES ('a', 'Doing a')");
    expect(await ask(session, "this is not SQL")).toBe('SQL Error: Error: near "this": syntax error');
    expect(await ask(session, "UPDATE todos SET status = 'nonsense'")).toMatch(/^SQL Error: Error: CHECK constraint failed/);
    expect(await ask(session, "INSERT INTO todos (id, title) VALUES ('b', 'B'); SELECT * FROM nowhere")).toBe(
      "SQL Error after statement 2 (SELECT): Error: no such table: nowhere\n\nCompleted 1 statement(s) before failure:\n\n1. INSERT\n   1 row(s) inserted. Last inserted row ID: 2.",
    );
    expect(await ask(session, "ATTACH '/tmp/other.db' AS other")).toBe(
      'Error: Blocked SQL statement: "ATTACH" is not allowed for security reasons.',
    );
    expect(await other.rpc.plan.readSqlTodos()).toEqual({ rows: [] });
    await session.disconnect();
    const resumed = await (await runtime.shared()).resumeSession(session.sessionId, { onPermissionRequest: runtime.sdk.approveAll });
    expect((await resumed.rpc.plan.readSqlTodos()).rows.map(({ id }: Sdk) => id)).toEqual(["a", "b"]);
  });
});
