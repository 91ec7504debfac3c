import type { JSX } from "preact";
import type { FeedTool } from "../../src/servers/inspector/feed-messages.ts";
import { CallPanel } from "../call/call-panel.tsx";
import { linkTo } from "../navigation/route.ts";
import { editorLink, store } from "../page-state.ts";
import { JsonValue } from "../parts/values.tsx";

/** A tool: where it comes from, what else has its name and which rule decided, and a form to call it. */
export function ToolPage({ tool }: { readonly tool: FeedTool }): JSX.Element {
  const { definition, kind, source, file, state, rule, renamedTo, signature, isReadOnly } = tool;
  const chain = [...store.tools.value.values()].filter((other) => other.definition.name === definition.name);
  return (
    <article>
      <h2>{definition.title ?? definition.name}</h2>
      <p>{definition.description}</p>
      <dl class="facts">
        <dt>Name</dt>
        <dd>
          {definition.name} {renamedTo === undefined ? null : <span class="hint">renamed to {renamedTo}</span>}
        </dd>
        <dt>Source</dt>
        <dd>
          {kind} {source}
        </dd>
        {file === undefined ? null : (
          <>
            <dt>File</dt>
            <dd>
              <a href={editorLink(file)}>{file}</a>
            </dd>
          </>
        )}
        <dt>State</dt>
        <dd>
          {state} <span class="hint">{rule}</span>
        </dd>
        <dt>Signature</dt>
        <dd>
          <code>{signature.slice(0, 16)}…</code> {isReadOnly ? <span class="badge">read only</span> : null}
        </dd>
      </dl>
      {chain.length < 2 ? null : (
        <>
          <h3>All tools with this name</h3>
          <ol>
            {chain.map((other) => (
              <li key={other.id} aria-current={other.id === tool.id ? "true" : undefined}>
                <a href={linkTo("skills", "tool", other.id)}>
                  {other.kind} {other.source}
                </a>{" "}
                <span class="hint">{`${other.state}: ${other.rule}`}</span>
              </li>
            ))}
          </ol>
        </>
      )}
      {state === "wins" || state === "renamed" ? <CallPanel tool={tool} /> : <p>Calls by this name reach another tool.</p>}
      <details>
        <summary>Definition</summary>
        <JsonValue value={definition} label={`Definition of ${definition.name}`} />
      </details>
    </article>
  );
}
