import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import type { FeedRequests } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";
import type { ReceivedEvent } from "../feed/received-event.ts";
import { attempt } from "../page-state.ts";

type Todos = FeedRequests["session.todos"]["result"];

/** What the model of a session has to do. It is read again when the model has written it. */
export function TodoList({ sessionId, entries }: { readonly sessionId: string; readonly entries: readonly ReceivedEvent[] }): JSX.Element {
  const todos = useSignal<Todos | undefined>(undefined);
  const lastChange = useSignal("");
  lastChange.value = entries.findLast(({ type }) => type === "session.todos_changed")?.event.id ?? "";
  useSignalEffect(() => {
    void lastChange.value;
    attempt(
      requestHost("session.todos", { sessionId }).then((answer) => {
        todos.value = answer;
      }),
    );
  });
  if (todos.value === undefined) return <p>Reading the todos …</p>;
  const { todos: shown, total, counts } = todos.value;
  if (total === 0) return <p>The model has no todos.</p>;
  const states = Object.entries(counts).map(([status, count]) => `${count} ${nameOf(status)}`);
  return (
    <>
      <p>{states.join(", ")}</p>
      <table>
        <caption class="hint">{shown.length < total ? `The first ${shown.length} of ${total} todos` : `${total} todos`}</caption>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Todo</th>
            <th scope="col">Waits for</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ id, title, description, status = "", dependsOn }, index) => (
            <tr key={id ?? index}>
              <td>
                <span class={status === "blocked" ? "badge bad" : "badge"}>{nameOf(status)}</span>
              </td>
              <td>
                <strong>{title ?? id}</strong>
                {description === undefined ? null : <p class="hint">{description}</p>}
              </td>
              <td>{dependsOn.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function nameOf(status: string): string {
  return status === "" ? "without a state" : status.replaceAll("_", " ");
}
