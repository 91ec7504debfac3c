import { type Signal, signal } from "@preact/signals";
import { FeedConnection } from "./feed/feed-connection.ts";
import { FeedStore } from "./feed/feed-store.ts";

/** What the whole page shares. */
export const store: FeedStore = new FeedStore();
export const connection: FeedConnection = new FeedConnection(store);

/** A short message for the user, also for screen readers. */
export const notice: Signal<string> = signal("");

export function announce(text: string): void {
  notice.value = text;
}

/** Shows the failure of a request instead of losing it. */
export function attempt(work: Promise<unknown>): void {
  work.catch((error: unknown) => announce(error instanceof Error ? error.message : String(error)));
}

const editorKey = "skillhost-inspector-editor";

/** The URL scheme of the user's editor. */
export const editorScheme: Signal<string> = signal(read(editorKey) ?? "vscode");

export function chooseEditor(scheme: string): void {
  editorScheme.value = scheme;
  try {
    localStorage.setItem(editorKey, scheme);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** Opens a file at a place in the user's editor. */
export function editorLink(file: string, line = 1, column = 1): string {
  const path = file.replaceAll("\\", "/").split("/").map(encodeURIComponent).join("/");
  return `${editorScheme.value}://file${path.startsWith("/") ? "" : "/"}${path}:${line}:${column}`;
}

function read(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    // A browser may forbid storage.
    return undefined;
  }
}
