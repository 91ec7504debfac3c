import { useSignal } from "@preact/signals";
import type { FunctionComponent, JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Json } from "../../src/base/json.ts";
import type { FeedCall, FeedRequests, FeedTool } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";
import { announce, attempt, store } from "../page-state.ts";
import { ResultView } from "../parts/result-view.tsx";
import { formatDuration, formatTime, JsonValue, TextValue } from "../parts/values.tsx";
import { AppPanel } from "./app-panel.tsx";
import { CallDraft } from "./call-draft.ts";

/** The arguments that the user wrote, by tool: they are kept while other views are open. */
const drafts = new Map<string, CallDraft>();
/** The arguments as they were sent. Those of the feed have their secrets replaced. */
const sentArguments = new Map<string, Json>();

function draftOf(tool: FeedTool): CallDraft {
  const draft = drafts.get(tool.id) ?? new CallDraft();
  drafts.set(tool.id, draft);
  return draft;
}

/** Opens a tool's form with the arguments of a former call. */
function editCall(tool: FeedTool, { id, arguments: args }: FeedCall): void {
  draftOf(tool).setValue(sentArguments.get(id) ?? args);
}

async function repeatCall({ id, tool, arguments: args }: FeedCall): Promise<string> {
  return callTool(tool, sentArguments.get(id) ?? args);
}

async function callTool(tool: string, args: Json): Promise<string> {
  const { callId } = await requestHost("call", { tool, arguments: args });
  sentArguments.set(callId, args);
  return callId;
}

/** The arguments of a tool as a form and as JSON, its calls, and their results. */
export function CallPanel({ tool }: { readonly tool: FeedTool }): JSX.Element {
  const draft = useMemo(() => draftOf(tool), [tool.id]);
  const shown = useSignal<"form" | "json">("form");
  const current = useSignal<string | undefined>(undefined);
  const mustConfirm = useSignal(false);
  const isReadOnly = store.isReadOnly.value;
  const own = [...store.calls.value.values()].filter((call) => call.tool === tool.definition.name).reverse();
  const call = own.find(({ id }) => id === current.value) ?? own[0];
  const begin = async (isSure: boolean): Promise<void> => {
    const args = draft.value.value;
    mustConfirm.value = false;
    const { problems } = isSure ? { problems: [] } : await requestHost("validate", { tool: tool.id, arguments: args });
    draft.problems.value = problems;
    mustConfirm.value = problems.length > 0;
    if (problems.length > 0) announce(`The arguments do not fit: ${problems.map(({ path, message }) => `${path} ${message}`).join("; ")}`);
    else current.value = await callTool(tool.id, args);
  };
  return (
    <section class="call" aria-label="Call">
      <h3>Call</h3>
      <div class="tabs">
        <button type="button" aria-pressed={shown.value === "form"} onClick={() => (shown.value = "form")}>
          Form
        </button>
        <button type="button" aria-pressed={shown.value === "json"} onClick={() => (shown.value = "json")}>
          JSON
        </button>
      </div>
      <Arguments tool={tool} draft={draft} shown={shown.value} />
      {draft.problems.value.length === 0 ? null : (
        <ul class="errors">
          {draft.problems.value.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              {path} {message}
            </li>
          ))}
        </ul>
      )}
      <div class="buttons">
        <button type="button" class="primary" disabled={isReadOnly || !draft.canCall.value} onClick={() => attempt(begin(false))}>
          Call {tool.definition.name}
        </button>
        {mustConfirm.value ? (
          <button type="button" onClick={() => attempt(begin(true))}>
            Call it anyway
          </button>
        ) : null}
        <ExportButtons tool={tool} draft={draft} />
      </div>
      {call === undefined ? null : <CallState call={call} />}
      <CallHistory tool={tool} calls={own} current={call?.id} onShow={(id) => (current.value = id)} />
    </section>
  );
}

interface ArgumentsProps {
  readonly tool: FeedTool;
  readonly draft: CallDraft;
  readonly shown: "form" | "json";
}

/** The libraries of the form and of the editor are loaded when the first tool is opened. */
function Arguments({ tool, draft, shown }: ArgumentsProps): JSX.Element {
  const form = useSignal<FunctionComponent<Parameters<typeof import("./argument-form.tsx").ArgumentForm>[0]> | undefined>(undefined);
  const editor = useSignal<FunctionComponent<Parameters<typeof import("./argument-editor.tsx").ArgumentEditor>[0]> | undefined>(undefined);
  useEffect(() => {
    if (shown === "form") attempt(import("./argument-form.tsx").then((module) => (form.value = module.ArgumentForm)));
    else attempt(import("./argument-editor.tsx").then((module) => (editor.value = module.ArgumentEditor)));
  }, [shown]);
  const [Form, Editor] = [form.value, editor.value];
  if (shown === "json") {
    return Editor === undefined ? (
      <p>Loading…</p>
    ) : (
      <Editor
        text={draft.text.value}
        syntaxError={draft.syntaxError.value}
        problems={draft.problems.value}
        onChange={(text) => draft.setText(text)}
      />
    );
  }
  if (Form === undefined) return <p>Loading…</p>;
  return (
    <Form
      schema={tool.definition.parameters ?? { type: "object" }}
      value={draft.value.value}
      problems={draft.problems}
      onChange={(value) => draft.setValue(value)}
    />
  );
}

function CallState({ call }: { readonly call: FeedCall }): JSX.Element {
  const { id, state, durationMs, progress, logs, result, hasApp } = call;
  return (
    <div class="card" aria-live="polite">
      <p>
        <strong>{state}</strong> {durationMs === undefined ? null : <span class="hint">{formatDuration(durationMs)}</span>}
        {state === "running" ? (
          <button
            type="button"
            class="small"
            disabled={store.isReadOnly.value}
            onClick={() => attempt(requestHost("cancel", { callId: id }))}
          >
            Cancel
          </button>
        ) : null}
      </p>
      {progress === undefined ? null : (
        <p>
          {progress.message ?? "Progress"}{" "}
          {progress.total === undefined ? (
            progress.progress
          ) : (
            <progress aria-label="Progress" value={progress.progress} max={progress.total} />
          )}
        </p>
      )}
      {logs.length === 0 ? null : <TextValue value={logs.join("\n")} label="Log of the call" />}
      {result === undefined ? null : <ResultView result={result} />}
      {hasApp === true ? <AppPanel key={id} callId={id} /> : null}
    </div>
  );
}

interface CallHistoryProps {
  readonly tool: FeedTool;
  readonly calls: readonly FeedCall[];
  readonly current: string | undefined;
  readonly onShow: (id: string) => void;
}

function CallHistory({ tool, calls, current, onShow }: CallHistoryProps): JSX.Element | null {
  if (calls.length === 0) return null;
  const isReadOnly = store.isReadOnly.value;
  return (
    <>
      <h4>Calls</h4>
      <ol class="history" reversed>
        {calls.slice(0, 50).map((call) => (
          <li key={call.id} aria-current={call.id === current ? "true" : undefined}>
            <button type="button" class="small" onClick={() => onShow(call.id)}>
              {formatTime(call.startTime)} {call.result?.code ?? call.state}
            </button>{" "}
            <code class="cut">{JSON.stringify(call.arguments).slice(0, 100)}</code>{" "}
            <button type="button" class="small" disabled={isReadOnly} onClick={() => attempt(repeatCall(call).then(onShow))}>
              Repeat
            </button>{" "}
            <button type="button" class="small" onClick={() => editCall(tool, call)}>
              Edit
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

interface ExportButtonsProps {
  readonly tool: FeedTool;
  readonly draft: CallDraft;
}

function ExportButtons({ tool, draft }: ExportButtonsProps): JSX.Element {
  const exported = useSignal<FeedRequests["exportCall"]["result"] | undefined>(undefined);
  const show = (): void =>
    attempt(
      requestHost("exportCall", { tool: tool.id, arguments: draft.value.value }).then((texts) => {
        exported.value = texts;
      }),
    );
  const pin = (): void =>
    attempt(
      requestHost("pin.save", {
        pin: {
          name: `${tool.definition.name} ${formatTime(Date.now())}`,
          tool: tool.id,
          arguments: draft.value.value,
          isAutomatic: false,
        },
      }).then(() => announce("The call is pinned.")),
    );
  return (
    <>
      <button type="button" onClick={show}>
        Export
      </button>
      {tool.kind === "skill" ? (
        <button type="button" disabled={store.isReadOnly.value} onClick={pin}>
          Pin
        </button>
      ) : null}
      {exported.value === undefined ? null : (
        <div class="card">
          <h4>Command</h4>
          <TextValue value={exported.value.command} label="Command" />
          <h4>curl</h4>
          <TextValue value={exported.value.curl} label="curl" />
          <h4>PowerShell</h4>
          <TextValue value={exported.value.powershell} label="PowerShell" />
          {exported.value.test === undefined ? null : (
            <>
              <h4>Test</h4>
              <TextValue value={exported.value.test} label="Test" />
            </>
          )}
        </div>
      )}
    </>
  );
}

/** All calls that were begun in the inspector, by any of its pages. */
export function CallsView(): JSX.Element {
  const calls = [...store.calls.value.values()].reverse();
  return (
    <div class="single">
      <h2>Calls of the inspector</h2>
      {calls.length === 0 ? <p>None yet. Choose a tool and call it.</p> : null}
      {calls.slice(0, 100).map((call) => (
        <details key={call.id} class="card">
          <summary>
            {formatTime(call.startTime)} <strong>{call.tool}</strong> {call.result?.code ?? call.state}
          </summary>
          <JsonValue value={call.arguments} label={`Arguments of ${call.tool}`} />
          <CallState call={call} />
        </details>
      ))}
    </div>
  );
}
