import { type Signal, signal, useSignal } from "@preact/signals";
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { requestHost } from "../feed/host-requests.ts";
import { announce, attempt, store } from "../page-state.ts";
import { goTo, type View, views } from "./route.ts";

export const isPaletteOpen: Signal<boolean> = signal(false);

interface PaletteEntry {
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  readonly run: () => void;
}

const mostShown = 30;
const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** One field that finds every view, skill, tool, session and server, and the commands. Ctrl-K or Cmd-K opens it. */
export function Palette(): JSX.Element | null {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      isPaletteOpen.value = !isPaletteOpen.value;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return isPaletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const active = useSignal(0);
  // Before anything else is drawn: a user types at once.
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current!.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const close = (): void => {
    isPaletteOpen.value = false;
  };
  const found = search(text.value);
  const index = Math.min(active.value, found.length - 1);
  const choose = (entry: PaletteEntry | undefined): void => {
    close();
    entry?.run();
  };
  const onKey = (event: TargetedKeyboardEvent<HTMLInputElement>): void => {
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      active.value = Math.max(0, Math.min(found.length - 1, index + step));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(found[index]);
    }
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Search" onClose={close}>
      <label>
        <span>Search views, skills, tools, sessions, servers and commands</span>
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-found"
          aria-activedescendant={found.length === 0 ? undefined : `palette-${index}`}
          value={text.value}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
            active.value = 0;
          }}
          onKeyDown={onKey}
        />
      </label>
      <div id="palette-found" role="listbox" aria-label="Found" class="found">
        {found.map((entry, at) => (
          <div
            key={entry.key}
            id={`palette-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === index}
            class="row"
            onClick={() => choose(entry)}
            onKeyDown={(event) => (event.key === "Enter" ? choose(entry) : undefined)}
          >
            <span class="hint">{entry.kind}</span> {entry.name}
          </div>
        ))}
      </div>
      {found.length === 0 ? <p>Nothing has this name.</p> : null}
    </dialog>
  );
}

function search(text: string): readonly PaletteEntry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const found: PaletteEntry[] = [];
  for (const entry of entries()) {
    const name = `${entry.kind} ${entry.name}`.toLowerCase();
    if (words.every((word) => name.includes(word)) && found.push(entry) >= mostShown) break;
  }
  return found;
}

function* entries(): Generator<PaletteEntry> {
  for (const view of views) yield { key: `view ${view}`, kind: "view", name: view, run: () => goTo(view) };
  if (!store.isReadOnly.value) {
    const run = (): void => attempt(requestHost("reload", {}).then(() => announce("All files were checked, and changed ones loaded.")));
    yield { key: "reload", kind: "command", name: "reload all files", run };
  }
  for (const skill of store.skills.value.values()) yield entryOf("skill", skill.name, "skills", "skill", skill.folder);
  for (const tool of store.tools.value.values()) yield entryOf("tool", tool.definition.name, "skills", "tool", tool.id);
  for (const session of store.sessions.value.values()) yield entryOf("session", session.title ?? session.id, "sessions", session.id);
  for (const server of store.servers.value.values()) yield entryOf("server", server.name, "servers", server.name);
}

function entryOf(kind: string, name: string, view: View, ...parts: readonly string[]): PaletteEntry {
  return { key: `${kind} ${parts.join("/")}`, kind, name, run: () => goTo(view, ...parts) };
}
