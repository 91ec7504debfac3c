import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { FeedModelView, FeedSession } from "../../src/servers/inspector/feed-messages.ts";
import { describeEvent } from "../events/event-text.ts";
import { EventList } from "../events/events-view.tsx";
import { requestHost } from "../feed/host-requests.ts";
import type { ReceivedEvent } from "../feed/received-event.ts";
import { linkTo, route } from "../navigation/route.ts";
import { announce, attempt, store } from "../page-state.ts";
import { formatBytes, formatDuration, formatTime, JsonValue, TextValue } from "../parts/values.tsx";
import { SessionHistory } from "./session-history.tsx";
import { withoutTakenBack } from "./taken-back.ts";
import { isOfTimeLine, timeSpans } from "./time-spans.ts";
import { TodoList } from "./todo-list.tsx";

const tabs = {
  conversation: "Conversation",
  timeline: "Time line",
  todos: "Todos",
  history: "History",
  events: "Events",
  model: "What the model gets",
} as const;
type Tab = keyof typeof tabs;

/** Only a host knows what a model got, has the todos, and can go back. */
const ofHost: ReadonlySet<Tab> = new Set(["model", "todos", "history"]);

/** A session: what was said and called, with what decided about each call, and what its model gets. */
export function SessionPage({ session }: { readonly session: FeedSession }): JSX.Element {
  void store.events.version.value;
  const entries = store.events.entries.filter(({ sessionId }) => sessionId === session.id);
  const given = route.value.parts[1] ?? "conversation";
  const tab: Tab = Object.hasOwn(tabs, given) ? (given as Tab) : "conversation";
  const isExport = store.snapshot.value?.isExport === true;
  const shown = (Object.keys(tabs) as Tab[]).filter((name) => !(isExport && ofHost.has(name)));
  return (
    <article class="tall">
      <h2>{session.title ?? `Session ${session.id.slice(0, 8)}`}</h2>
      <p class="hint">
        {session.client} · {session.state} · {session.model ?? "no model"} · {session.workingDirectory}
      </p>
      <nav class="tabs" aria-label="Parts of the session">
        {shown.map((name) => (
          <a key={name} href={linkTo("sessions", session.id, name)} aria-current={name === tab ? "page" : undefined}>
            {tabs[name]}
          </a>
        ))}
        {isExport ? null : (
          <button type="button" class="small" onClick={() => attempt(saveExport(session.id))}>
            Export
          </button>
        )}
      </nav>
      {tab === "conversation" ? <Conversation entries={withoutTakenBack(entries)} /> : null}
      {tab === "timeline" ? <TimeLine entries={entries} /> : null}
      {tab === "todos" ? <TodoList key={session.id} sessionId={session.id} entries={entries} /> : null}
      {tab === "history" ? <SessionHistory key={session.id} session={session} entries={entries} /> : null}
      {tab === "events" ? <EventList events={entries} /> : null}
      {tab === "model" ? <ModelView sessionId={session.id} /> : null}
      {session.client === "inspector" && session.state !== "closed" ? <Prompt session={session} /> : null}
    </article>
  );
}

/** Writes a file that `skillhost inspect` opens without the host. */
async function saveExport(sessionId: string): Promise<void> {
  const { fileName, text } = await requestHost("session.export", { sessionId });
  const url = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: fileName });
  link.click();
  URL.revokeObjectURL(url);
  announce(`${fileName} is saved. Open it with "skillhost inspect ${fileName}".`);
}

function Prompt({ session: { id, state } }: { readonly session: FeedSession }): JSX.Element {
  const text = useSignal("");
  const send = (): void => {
    if (text.value.trim() === "") return;
    attempt(requestHost("session.send", { sessionId: id, prompt: text.value }));
    text.value = "";
  };
  return (
    <form
      class="send"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label>
        <span>Message</span>
        <textarea
          rows={2}
          value={text.value}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey) return;
            event.preventDefault();
            send();
          }}
        />
      </label>
      <button type="submit" class="primary" disabled={store.isReadOnly.value}>
        Send
      </button>
      <button type="button" disabled={state !== "running"} onClick={() => attempt(requestHost("session.abort", { sessionId: id }))}>
        Stop
      </button>
    </form>
  );
}

/** What of a session is said or decided. The other events are in the list of all. */
const said =
  /^(?:user\.message|assistant\.message|tool\.execution_(?:start|complete)|permission\.(?:requested|completed)|hook\.end|subagent\.\w+|session\.(?:error|warning|info)|elicitation\.\w+|user_input\.\w+)$/;

function Conversation({ entries }: { readonly entries: readonly ReceivedEvent[] }): JSX.Element {
  const events = entries
    .filter(({ type }) => said.test(type))
    .slice(-600)
    .map(({ event }) => event);
  // A model that only calls tools says nothing.
  const shown = events.filter(({ data }) => data["content"] !== "").slice(-300);
  if (shown.length === 0) return <p>Nothing was said or called yet.</p>;
  return (
    <ol class="conversation">
      {shown.map((event) => (
        <li key={event.id} class={`said ${event.type.replaceAll(/[._]/g, "-")}${event.agentId === undefined ? "" : " of-agent"}`}>
          <p class="said-head">
            <strong>{event.type}</strong> <span class="hint">{formatTime(event.timestamp)}</span>
            {event.agentId === undefined ? null : <span class="badge">agent {event.agentId.slice(0, 8)}</span>}
          </p>
          {event.type.endsWith(".message") ? (
            <TextValue value={event.data["content"]} label={event.type} />
          ) : (
            <details>
              <summary class="cut">{describeEvent(event)}</summary>
              <JsonValue value={event.data} label={event.type} />
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}

function TimeLine({ entries }: { readonly entries: readonly ReceivedEvent[] }): JSX.Element {
  const spans = timeSpans(entries.filter(({ type }) => isOfTimeLine.test(type)).map(({ event }) => event));
  if (spans.length === 0) return <p>No turn or call yet.</p>;
  const from = Math.min(...spans.map(({ start }) => start));
  const to = Math.max(from + 1, ...spans.map(({ start, end }) => end ?? start));
  const percent = (moment: number): string => `${(100 * (moment - from)) / (to - from)}%`;
  return (
    <ol class="timeline" aria-label={`Time line of ${formatDuration(to - from)}`}>
      {spans.map(({ id, kind, name, depth, start, end, isFailed }) => (
        <li key={id}>
          <span class="span-name" style={{ paddingLeft: `${depth * 16}px` }}>
            {kind === "agent" ? "Agent " : ""}
            {name}
            {isFailed ? <span class="badge bad">failed</span> : null}
          </span>
          <span class="span-lane">
            <span class={`span-bar ${kind}`} style={{ left: percent(start), width: `max(2px, ${percent(from + (end ?? to) - start)})` }} />
          </span>
          <span class="hint">{end === undefined ? "running" : formatDuration(end - start)}</span>
        </li>
      ))}
    </ol>
  );
}

function ModelView({ sessionId }: { readonly sessionId: string }): JSX.Element {
  const view = useSignal<FeedModelView | undefined>(undefined);
  const load = (): void =>
    attempt(
      requestHost("session.modelView", { sessionId }).then((answer) => {
        view.value = answer;
      }),
    );
  if (view.value === undefined) {
    return (
      <button type="button" onClick={load}>
        Show what the model got with its last request
      </button>
    );
  }
  const { model, system, tools, messages, parts, body } = view.value;
  const all = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  return (
    <>
      <p>
        {model}: about {all.toLocaleString("en")} tokens.{" "}
        <button type="button" class="small" onClick={load}>
          Read again
        </button>
      </p>
      <details>
        <summary>Tokens of each part, as an estimate</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">Part</th>
              <th scope="col">Tokens</th>
            </tr>
          </thead>
          <tbody>
            {parts.map(({ name, tokens }, index) => (
              <tr key={`${index} ${name}`}>
                <td>{name}</td>
                <td>{tokens.toLocaleString("en")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
      <h3>System message</h3>
      <TextValue value={system} label="System message" />
      <h3>Tools</h3>
      <JsonValue value={tools} label="Tools" />
      <h3>Messages</h3>
      <JsonValue value={messages} label="Messages" />
      {body === undefined ? null : (
        <>
          <h3>The request as the endpoint got it ({formatBytes(body.size)})</h3>
          <TextValue value={body.text} label="Request" />
        </>
      )}
    </>
  );
}
