import type { JSX } from "preact";
import type { FeedDiagnostic } from "../../src/servers/inspector/feed-messages.ts";
import { editorLink } from "../page-state.ts";

interface DiagnosticListProps {
  readonly diagnostics: readonly FeedDiagnostic[];
  /** Shown when there are no diagnostics with lines of their files. */
  readonly fallback?: readonly FeedDiagnostic[];
}

export function DiagnosticList({ diagnostics, fallback = [] }: DiagnosticListProps): JSX.Element {
  const shown = diagnostics.length === 0 ? fallback : diagnostics;
  return (
    <ul class="diagnostics">
      {shown.map((diagnostic, index) => (
        <DiagnosticItem key={`${index} ${diagnostic.code} ${diagnostic.file ?? ""}`} diagnostic={diagnostic} />
      ))}
    </ul>
  );
}

function DiagnosticItem({ diagnostic }: { readonly diagnostic: FeedDiagnostic }): JSX.Element {
  const { severity, code, message, file, range, source, frame } = diagnostic;
  return (
    <li class="card">
      <p>
        <span class={severity === "error" ? "badge bad" : "badge"}>{severity}</span> <code>{code}</code>{" "}
        {source === undefined ? null : <span class="hint">{source}</span>}
      </p>
      <p>{message}</p>
      {file === undefined ? null : (
        <p>
          <a href={editorLink(file, range?.start.line, range?.start.column)}>
            {file}
            {range === undefined ? "" : `:${range.start.line}:${range.start.column}`}
          </a>
        </p>
      )}
      {frame === undefined ? null : (
        // biome-ignore lint/a11y: it scrolls, so the keyboard must reach it, and it is neither a field set nor a landmark
        <div class="block" role="group" aria-label={`Lines around the problem in ${file}`} tabIndex={0}>
          <pre>
            {frame.lines.map((line, index) => {
              const number = frame.firstLine + index;
              const isHere = range !== undefined && number >= range.start.line && number <= (range.end?.line ?? range.start.line);
              return (
                <span key={number} class={isHere ? "line here" : "line"}>
                  <span class="line-number">{number}</span> {line}
                  {"\n"}
                </span>
              );
            })}
          </pre>
        </div>
      )}
    </li>
  );
}
