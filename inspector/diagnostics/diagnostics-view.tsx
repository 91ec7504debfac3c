import type { JSX } from "preact";
import { store } from "../page-state.ts";
import { DiagnosticList } from "./diagnostic-list.tsx";

/** All current problems. */
export function DiagnosticsView(): JSX.Element {
  const diagnostics = store.diagnostics.value;
  return (
    <div class="single">
      <h2>Problems</h2>
      {diagnostics.length === 0 ? <p>No problems.</p> : <DiagnosticList diagnostics={diagnostics} />}
    </div>
  );
}
