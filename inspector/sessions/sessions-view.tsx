import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import type { Json } from "../../src/base/json.ts";
import type { FeedSession } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";
import { goTo, linkTo, route } from "../navigation/route.ts";
import { attempt, store } from "../page-state.ts";
import { formatTime } from "../parts/values.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";
import { SessionPage } from "./session-page.tsx";

/** The sessions of every client, the newest first. */
export function SessionsView(): JSX.Element {
  const filter = useSignal("");
  const wanted = filter.value.toLowerCase();
  const sessions = [...store.sessions.value.values()].reverse().filter((session) => fits(session, wanted));
  const [id = ""] = route.value.parts;
  const session = store.sessions.value.get(id);
  return (
    <div class="columns">
      <section class="list" aria-label="Sessions">
        <label class="filter">
          <span>Filter</span>
          <input type="search" value={filter.value} onInput={({ currentTarget }) => (filter.value = currentTarget.value)} />
        </label>
        {store.snapshot.value?.isExport === true ? null : (
          <a class="row" href={linkTo("sessions", "new")} aria-current={id === "new" ? "true" : undefined}>
            Open a session…
          </a>
        )}
        <VirtualList
          label="Sessions"
          items={sessions}
          rowHeight={46}
          keyOf={(each) => each.id}
          row={(each) => (
            <a class="row two-lines" href={linkTo("sessions", each.id)} aria-current={each.id === id ? "true" : undefined}>
              <span class="cut">{each.title ?? each.id}</span>
              <span class="hint">
                {each.client} · {each.state} · {formatTime(each.startTime)}
              </span>
            </a>
          )}
        />
      </section>
      <section class="detail" aria-label="Details">
        {id === "new" ? <NewSession /> : null}
        {session === undefined ? null : <SessionPage key={session.id} session={session} />}
        {session === undefined && id !== "new" ? <p>{id === "" ? "Choose a session." : "This session is not kept any more."}</p> : null}
      </section>
    </div>
  );
}

function fits({ id, title, client, model }: FeedSession, wanted: string): boolean {
  return wanted === "" || [id, title, client, model].some((text) => text?.toLowerCase().includes(wanted));
}

/** Opens a session with a model, or with a script that answers in the place of one. */
function NewSession(): JSX.Element {
  const kind = useSignal<"script" | "model">("script");
  const script = useSignal('["Hello from the script."]');
  const [model, baseUrl, apiKey] = [useSignal(""), useSignal(""), useSignal("")];
  const open = async (): Promise<void> => {
    const provider: Json = { type: "openai", baseUrl: baseUrl.value, ...(apiKey.value === "" ? {} : { apiKey: apiKey.value }) };
    const params =
      kind.value === "script"
        ? { script: JSON.parse(script.value) as readonly (string | Json)[] }
        : { model: model.value, ...(baseUrl.value === "" ? {} : { provider }) };
    const { sessionId } = await requestHost("session.create", params);
    goTo("sessions", sessionId);
  };
  return (
    <article>
      <h2>Open a session</h2>
      <div class="tabs">
        <button type="button" aria-pressed={kind.value === "script"} onClick={() => (kind.value = "script")}>
          Scripted answers
        </button>
        <button type="button" aria-pressed={kind.value === "model"} onClick={() => (kind.value = "model")}>
          A model
        </button>
      </div>
      {kind.value === "script" ? (
        <label class="field">
          <span>
            Answers, as JSON: texts, or calls such as <code>{'{"calls": [{"name": "hello", "args": {}}]}'}</code>
          </span>
          <textarea rows={6} value={script.value} onInput={({ currentTarget }) => (script.value = currentTarget.value)} />
        </label>
      ) : (
        <>
          <TextField label="Model" value={model} />
          <TextField label="Base URL of an OpenAI-compatible endpoint (empty: that of the host)" value={baseUrl} />
          <TextField label="API key, which is sent to the host only" value={apiKey} isSecret />
        </>
      )}
      <button type="button" class="primary" disabled={store.isReadOnly.value} onClick={() => attempt(open())}>
        Open
      </button>
    </article>
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: { value: string };
  readonly isSecret?: boolean;
}

function TextField({ label, value, isSecret = false }: TextFieldProps): JSX.Element {
  const id = useId();
  const common = {
    id,
    autocomplete: "off",
    value: value.value,
    onInput: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => (value.value = currentTarget.value),
  } as const;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {isSecret ? <input type="password" {...common} /> : <input type="text" {...common} />}
    </div>
  );
}
