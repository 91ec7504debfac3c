import type { SqlOutcome, StatementOutcome } from "./sql-database.ts";

/** What a model reads of a query, and what is wrong with it, for logs. The words are the Copilot runtime's, where it has some. */
export function describeOutcome({ statements, failure, isRolledBack }: SqlOutcome): { readonly text: string; readonly error?: string } {
  const undone = isRolledBack ? `\n\n${rolledBack}` : "";
  if (failure === undefined) {
    const [only] = statements;
    if (only === undefined) return { text: "Error: Empty query provided.", error: "Empty query provided" };
    const text = statements.length === 1 ? textOf(only) : `Executed ${statements.length} statement(s):\n\n${numbered(statements)}`;
    return { text: `${text}${undone}` };
  }
  const { word, isRefused } = failure;
  const message = isRefused ? failure.message : `Error: ${failure.message}`;
  if (statements.length === 0) return { text: `${isRefused ? "Error" : "SQL Error"}: ${message}${undone}`, error: message };
  const done = `Completed ${statements.length} statement(s) before failure:\n\n${numbered(statements)}`;
  const text = `SQL Error after statement ${statements.length + 1} (${word}): ${message}\n\n${done}${undone}`;
  return { text, error: text };
}

const rolledBack = "The transaction was not committed, so its changes were undone. End it with COMMIT in the same query.";

function numbered(statements: readonly StatementOutcome[]): string {
  return statements.map((outcome, index) => `${index + 1}. ${outcome.word}\n   ${textOf(outcome).replaceAll("\n", "\n   ")}`).join("\n\n");
}

function textOf(outcome: StatementOutcome): string {
  if (outcome.kind === "changed") return changeText(outcome.word, outcome.count, outcome.lastRowId);
  const { columns, rows, isCut } = outcome;
  if (rows.length === 0 && !isCut) return "Query returned 0 rows.";
  const table = [columns, columns.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  const note = isCut ? "\n\nThere are more rows, which are too long for one result. Ask for fewer of them, with WHERE or LIMIT." : "";
  return `${rows.length} row(s) returned:\n\n${table}${note}`;
}

function changeText(word: string, count: number, lastRowId: string): string {
  switch (word) {
    case "INSERT":
      return `${count} row(s) inserted. Last inserted row ID: ${lastRowId}.`;
    case "UPDATE":
      return `${count} row(s) updated.`;
    case "DELETE":
      return `${count} row(s) deleted.`;
    case "CREATE":
    case "ALTER":
    case "DROP":
      return "Schema operation completed successfully.";
    default:
      return `Query executed successfully. Rows affected: ${count}.`;
  }
}
