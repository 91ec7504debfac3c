import { shorten } from "../base/text.ts";
import type { SqlTodo } from "../session/database/sql-database.ts";
import type { Session } from "../session/session.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./terminal-style.ts";

/** More than a person would read. */
const maxLines = 30;

/** Reports how far a model is with its todos, each time that it writes them, until the end. */
export function followTodos(session: Session, out: Output): Disposable {
  let isReading = false;
  let hasChanged = false;
  const read = async (): Promise<void> => {
    isReading = true;
    try {
      do {
        hasChanged = false;
        if (session.isOpen) out.note(progressOf((await session.readSqlTodos()).rows));
      } while (hasChanged);
    } finally {
      isReading = false;
    }
  };
  return session.on("session.todos_changed", () => {
    hasChanged = true;
    // The session may end while they are read.
    if (!isReading) read().catch(() => {});
  });
}

/** The todos, a line each, with their states. */
export function todoLines(rows: readonly SqlTodo[]): readonly string[] {
  const lines = rows.slice(0, maxLines).map((todo) => `[${markOf(todo)}] ${nameOf(todo)}`);
  return rows.length > maxLines ? [...lines, `… and ${rows.length - maxLines} more`] : lines;
}

function progressOf(rows: readonly SqlTodo[]): string {
  const done = rows.filter(({ status }) => status === "done").length;
  const current = rows.find(({ status }) => status === "in_progress");
  return `todos: ${done} of ${rows.length} done${current === undefined ? "" : `, now: ${nameOf(current)}`}`;
}

function nameOf({ title, id }: SqlTodo): string {
  return shorten(visibleLine(title ?? id ?? "(without a title)"), 100);
}

function markOf({ status }: SqlTodo): string {
  if (status === "done") return "x";
  if (status === "in_progress") return ">";
  return status === "blocked" ? "!" : " ";
}
