import { type Signal, useSignal } from "@preact/signals";
import type { FunctionComponent, JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Json } from "../../src/base/json.ts";
import type { FeedAsk } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";
import { announce, attempt, store } from "../page-state.ts";
import { JsonValue, TextValue } from "../parts/values.tsx";

/** Everything that waits for an answer of a person, in every session. */
export function AskPanel(): JSX.Element | null {
  const asks = [...store.asks.value.values()];
  if (asks.length === 0) return null;
  return (
    <section class="asks" aria-label="Questions that wait for an answer">
      {asks.map((ask) => (
        <AskForm key={ask.id} ask={ask} />
      ))}
    </section>
  );
}

function AskForm({ ask }: { readonly ask: FeedAsk }): JSX.Element {
  const { id, sessionId, kind, data } = ask;
  const isReadOnly = store.isReadOnly.value;
  const answer = (value: Json): void =>
    attempt(
      requestHost("answer", { askId: id, sessionId, answer: value }).then(({ isFirst }) => {
        if (!isFirst) announce("Another client answered first.");
      }),
    );
  return (
    <section class="card ask" aria-label={`${headings[kind]}, session ${sessionId.slice(0, 8)}`}>
      <h2>{headings[kind]}</h2>
      <p class="hint">Session {sessionId.slice(0, 8)}</p>
      <fieldset disabled={isReadOnly}>
        <legend class="hidden">Answer</legend>
        {kind === "permission" ? <PermissionAnswer data={data} answer={answer} /> : null}
        {kind === "userInput" ? <InputAnswer data={data} answer={answer} /> : null}
        {kind === "elicitation" ? <ElicitationAnswer data={data} answer={answer} /> : null}
        {kind === "exitPlanMode" ? <PlanAnswer data={data} answer={answer} /> : null}
      </fieldset>
    </section>
  );
}

const headings: Readonly<Record<FeedAsk["kind"], string>> = {
  permission: "A call asks for permission",
  userInput: "The model asks",
  elicitation: "A server or tool asks",
  exitPlanMode: "A plan waits for approval",
};

interface AnswerProps {
  readonly data: Json;
  readonly answer: (value: Json) => void;
}

function PermissionAnswer({ data, answer }: AnswerProps): JSX.Element {
  const { toolName, kind, fullCommandText, intention } = data;
  return (
    <>
      <p>
        <strong>{String(toolName ?? kind ?? "A tool")}</strong> {intention === undefined ? "" : String(intention)}
      </p>
      {fullCommandText === undefined ? null : <TextValue value={fullCommandText} label="Command" />}
      <details>
        <summary>Details</summary>
        <JsonValue value={data} label="The request" />
      </details>
      <div class="buttons">
        <button type="button" class="primary" onClick={() => answer({ kind: "approve-once" })}>
          Allow once
        </button>
        <button type="button" onClick={() => answer({ kind: "approve-for-session" })}>
          Allow for the session
        </button>
        <button type="button" onClick={() => answer({ kind: "reject" })}>
          Deny
        </button>
      </div>
    </>
  );
}

function InputAnswer({ data, answer }: AnswerProps): JSX.Element {
  const text = useSignal("");
  const choices = Array.isArray(data["choices"]) ? data["choices"].map(String) : [];
  return (
    <>
      <p>{String(data["question"])}</p>
      <div class="buttons">
        {choices.map((choice) => (
          <button key={choice} type="button" onClick={() => answer({ answer: choice, wasFreeform: false })}>
            {choice}
          </button>
        ))}
      </div>
      {data["allowFreeform"] === false ? null : (
        <FreeText label="Your answer" text={text} onSend={() => answer({ answer: text.value, wasFreeform: true })} />
      )}
    </>
  );
}

function ElicitationAnswer({ data, answer }: AnswerProps): JSX.Element {
  const value = useSignal<Json>({});
  const form = useSignal<FunctionComponent<Parameters<typeof import("../call/argument-form.tsx").ArgumentForm>[0]> | undefined>(undefined);
  const problems = useSignal<readonly { readonly path: string; readonly message: string }[]>([]);
  const { requestedSchema, url, message } = data;
  useEffect(() => {
    if (requestedSchema !== undefined) attempt(import("../call/argument-form.tsx").then((module) => (form.value = module.ArgumentForm)));
  }, []);
  const schema = useMemo(() => requestedSchema, []);
  const Form = form.value;
  return (
    <>
      <p>{String(message)}</p>
      {url === undefined ? null : (
        <p>
          It wants you to open this address, outside of this page: <code>{String(url)}</code>
        </p>
      )}
      {schema === undefined || Form === undefined ? null : (
        <Form schema={schema} value={value.value} problems={problems} onChange={(next) => (value.value = next as Json)} />
      )}
      <div class="buttons">
        <button
          type="button"
          class="primary"
          onClick={() => answer({ action: "accept", ...(schema === undefined ? {} : { content: value.value }) })}
        >
          Accept
        </button>
        <button type="button" onClick={() => answer({ action: "decline" })}>
          Decline
        </button>
        <button type="button" onClick={() => answer({ action: "cancel" })}>
          Cancel
        </button>
      </div>
    </>
  );
}

function PlanAnswer({ data, answer }: AnswerProps): JSX.Element {
  const feedback = useSignal("");
  const actions = Array.isArray(data["actions"]) ? data["actions"].map(String) : [];
  return (
    <>
      <p>{String(data["summary"])}</p>
      <TextValue value={data["planContent"]} label="Plan" />
      <div class="buttons">
        {actions.map((action) => (
          <button key={action} type="button" onClick={() => answer({ approved: true, selectedAction: action })}>
            Approve: {action}
          </button>
        ))}
      </div>
      <FreeText label="What should change" text={feedback} onSend={() => answer({ approved: false, feedback: feedback.value })} />
    </>
  );
}

interface FreeTextProps {
  readonly label: string;
  readonly text: Signal<string>;
  readonly onSend: () => void;
}

function FreeText({ label, text, onSend }: FreeTextProps): JSX.Element {
  return (
    <div class="send">
      <label>
        <span>{label}</span>
        <textarea rows={2} value={text.value} onInput={({ currentTarget }) => (text.value = currentTarget.value)} />
      </label>
      <button type="button" disabled={text.value.trim() === ""} onClick={onSend}>
        Send
      </button>
    </div>
  );
}
