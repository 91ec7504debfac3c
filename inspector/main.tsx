import { type JSX, render } from "preact";
import { CallsView } from "./call/call-panel.tsx";
import { DiagnosticsView } from "./diagnostics/diagnostics-view.tsx";
import { EventsView } from "./events/events-view.tsx";
import { refusal } from "./feed/feed-connection.ts";
import { exchangeToken } from "./feed/host-requests.ts";
import { isPaletteOpen, Palette } from "./navigation/palette.tsx";
import { followAddress, linkTo, route, type View, views } from "./navigation/route.ts";
import { chooseEditor, connection, editorScheme, notice, store } from "./page-state.ts";
import { PinsView } from "./pins/pins-view.tsx";
import { ServersView } from "./servers/servers-view.tsx";
import { AskPanel } from "./sessions/ask-panel.tsx";
import { SessionsView } from "./sessions/sessions-view.tsx";
import { SkillsView } from "./skills/skills-view.tsx";

const names: Readonly<Record<View, string>> = {
  skills: "Skills",
  sessions: "Sessions",
  calls: "Calls",
  servers: "Servers",
  events: "Events",
  problems: "Problems",
  pins: "Pinned calls",
};

const pages: Readonly<Record<View, () => JSX.Element>> = {
  skills: () => <SkillsView />,
  sessions: () => <SessionsView />,
  calls: () => <CallsView />,
  servers: () => <ServersView />,
  events: () => <EventsView />,
  problems: () => <DiagnosticsView />,
  pins: () => <PinsView />,
};

function Page(): JSX.Element {
  const { view } = route.value;
  const snapshot = store.snapshot.value;
  return (
    <>
      <header>
        <h1>skillhost</h1>
        <nav aria-label="Views">
          {views.map((each) => (
            <a key={each} href={linkTo(each)} aria-current={each === view ? "page" : undefined}>
              {names[each]}
              <Count view={each} />
            </a>
          ))}
        </nav>
        <button type="button" onClick={() => (isPaletteOpen.value = true)} aria-keyshortcuts="Control+K Meta+K">
          Search
        </button>
        <label class="editor-choice">
          <span>Editor</span>
          <select value={editorScheme.value} onChange={({ currentTarget }) => chooseEditor(currentTarget.value)}>
            {["vscode", "vscode-insiders", "cursor", "windsurf", "zed"].map((scheme) => (
              <option key={scheme} value={scheme}>
                {scheme}
              </option>
            ))}
          </select>
        </label>
        <ConnectionStatus />
      </header>
      <p class="notice" role="status" aria-live="polite">
        {notice.value}
      </p>
      <AskPanel />
      <main id="main">{snapshot === undefined ? <p>Connecting to the host…</p> : pages[view]()}</main>
      <Palette />
    </>
  );
}

function Count({ view }: { readonly view: View }): JSX.Element | null {
  const count = countOf(view);
  return count === undefined || count === 0 ? null : (
    <span class={view === "problems" ? "badge bad" : "badge"}>{count.toLocaleString("en")}</span>
  );
}

function countOf(view: View): number | undefined {
  if (view === "problems") return store.diagnostics.value.length;
  if (view === "skills") return store.skills.value.size;
  if (view === "sessions") return [...store.sessions.value.values()].filter(({ state }) => state !== "closed").length;
  if (view === "pins") return store.pins.value.length;
  return view === "servers" ? store.servers.value.size : undefined;
}

function ConnectionStatus(): JSX.Element {
  const state = connection.state.value;
  const { isReadOnly = false, isExport = false } = store.snapshot.value ?? {};
  const mode = isExport ? "export" : isReadOnly ? "read only" : "";
  return (
    <p class={`connection ${state.kind}`} role="status">
      <span>
        {state.kind === "connected" ? (state.isAgain ? "Connected again" : "Connected") : null}
        {state.kind === "connected" && state.by === "polling" ? " (a proxy holds the stream back)" : null}
        {state.kind === "connecting" ? "Connecting…" : null}
        {state.kind === "disconnected" || state.kind === "refused" ? state.reason : null}
      </span>{" "}
      {mode === "" ? null : <span class="badge">{mode}</span>}
    </p>
  );
}

async function start(): Promise<void> {
  const isAdmitted = await exchangeToken().catch(() => true);
  followAddress();
  if (isAdmitted) connection.open();
  else connection.state.value = { kind: "refused", reason: refusal };
  render(<Page />, document.getElementById("page")!);
}

void start();
