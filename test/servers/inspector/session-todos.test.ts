import { join } from "node:path";
import { expect, test } from "vitest";
import { openFileLog } from "../../../src/io/log/append-log.ts";
import { scriptedModel } from "../../../src/models/scripted-model.ts";
import type { SqlTodos } from "../../../src/session/database/sql-database.ts";
import { LocalFiles } from "../../../src/session/workspace/workspace-files.ts";
import { tempFolder } from "../../skills/kit.ts";
import { openInspected } from "./inspector-kit.ts";
import { todoDatabase } from "./todo-database.ts";

test("a reader is notified of changed todos, and reads them with their states, also where it may only read", async () => {
  const { host, read, request } = await openInspected({}, {}, { readOnly: true });
  const folder = tempFolder();
  let todos: SqlTodos = { rows: [], dependencies: [] };
  const storage = {
    log: openFileLog(join(folder, "events.jsonl"), { onDiagnostic: () => {} }),
    files: new LocalFiles(folder),
    database: todoDatabase(() => todos),
  };
  const session = await host.createSession({ chatModel: scriptedModel(), sessionDatabase: true }, { storage });
  const reader = read();
  const asked = { sessionId: session.id };
  expect(await request("session.todos", asked)).toEqual({ todos: [], total: 0, counts: {} });

  todos = {
    rows: [
      { id: "a", title: "Doing a", description: "x".repeat(10_000), status: "done", createdAt: "2026-01-01 00:00:00" },
      { id: "b", title: "Use the key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH" },
    ],
    dependencies: [{ todoId: "b", dependsOn: "a" }],
  };
  await session.callTool("sql", { description: "Changes", query: "UPDATE todos SET status = 'done'" });
  await reader.next("event", ({ event }) => event.type === "session.todos_changed");
  const shown = await request("session.todos", asked);
  expect(shown).toMatchObject({
    todos: [
      { id: "a", status: "done", dependsOn: [] },
      { id: "b", dependsOn: ["a"] },
    ],
    total: 2,
    counts: { done: 1, "": 1 },
  });
  expect(shown.todos[0]?.description).toHaveLength(2_000);
  expect(shown.todos[1]?.title).not.toContain("abcdefghijklmnopqrstuvwxyz");

  todos = { rows: Array.from({ length: 100_000 }, (_, n) => ({ id: String(n), status: "pending" })), dependencies: [] };
  const many = await request("session.todos", asked);
  expect([many.todos.length, many.total, many.counts]).toEqual([500, 100_000, { pending: 100_000 }]);
  await expect(request("session.todos", { sessionId: "none" })).rejects.toThrow("SESSION");
});
