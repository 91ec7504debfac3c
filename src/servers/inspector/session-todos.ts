import type { Session } from "../../session/session.ts";
import { redactSecrets } from "./blob-store.ts";
import type { FeedRequests, FeedTodo } from "./feed-messages.ts";

const maxTodos = 500;
const maxText = 2_000;

/** What a session's model has to do, as the page shows it. */
export async function describeTodos(session: Session): Promise<FeedRequests["session.todos"]["result"]> {
  const { rows, dependencies } = await session.readSqlTodos();
  const waitsFor = new Map<string, string[]>();
  for (const { todoId, dependsOn } of dependencies) waitsFor.set(todoId, [...(waitsFor.get(todoId) ?? []), shown(dependsOn)]);
  const counts = new Map<string, number>();
  for (const { status = "" } of rows) counts.set(shown(status), (counts.get(shown(status)) ?? 0) + 1);
  const todos = rows.slice(0, maxTodos).map(({ id, title, description, status }): FeedTodo => {
    const texts = Object.entries({ id, title, description, status }).filter((field): field is [string, string] => field[1] !== undefined);
    return { ...Object.fromEntries(texts.map(([name, text]) => [name, shown(text)])), dependsOn: waitsFor.get(id ?? "") ?? [] };
  });
  return { todos, total: rows.length, counts: Object.fromEntries(counts) };
}

function shown(text: string): string {
  return redactSecrets(text.slice(0, maxText));
}
