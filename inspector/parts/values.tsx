import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { FeedBlob } from "../../src/servers/inspector/feed-messages.ts";
import { attempt } from "../page-state.ts";

/** More of a text is shown when it is asked for: the page must stay usable with a text of 50 MB. */
const longestShown = 200_000;

export function blobIn(value: unknown): FeedBlob | undefined {
  return typeof value === "object" && value !== null && "$blob" in value ? (value as { readonly $blob: FeedBlob }).$blob : undefined;
}

/** A text of a stranger, as it is. */
export function TextValue({ value, label }: { readonly value: unknown; readonly label: string }): JSX.Element {
  const blob = blobIn(value);
  if (blob !== undefined) return <BlobText blob={blob} label={label} />;
  return <Block text={String(value)} label={label} />;
}

export function JsonValue({ value, label }: { readonly value: unknown; readonly label: string }): JSX.Element {
  return <Block text={JSON.stringify(value, undefined, 2) ?? "undefined"} label={label} />;
}

function Block({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const shown = text.length > longestShown ? text.slice(0, longestShown) : text;
  return (
    <>
      {/* biome-ignore lint/a11y: it scrolls, so the keyboard must reach it, and it is neither a field set nor a landmark */}
      <div class="block" role="group" aria-label={label} tabIndex={0}>
        <pre>{shown}</pre>
      </div>
      {shown.length < text.length ? <p class="hint">The first {longestShown.toLocaleString("en")} characters are shown.</p> : null}
    </>
  );
}

function BlobText({ blob, label }: { readonly blob: FeedBlob; readonly label: string }): JSX.Element {
  const text = useSignal<string | undefined>(undefined);
  const load = async (): Promise<void> => {
    const response = await fetch(`blob/${encodeURIComponent(blob.id)}`);
    const body = await response.text();
    if (!response.ok) throw new Error("This content is not kept any more. Make the call again.");
    text.value = body;
  };
  return (
    <>
      <Block text={text.value ?? `${blob.head ?? ""}…`} label={label} />
      <p class="hint">
        {formatBytes(blob.size)}{" "}
        {text.value === undefined ? (
          <button type="button" class="small" onClick={() => attempt(load())}>
            Show all of it
          </button>
        ) : null}{" "}
        <a href={`blob/${encodeURIComponent(blob.id)}`} target="_blank" rel="noreferrer">
          Open in a tab of its own
        </a>
      </p>
    </>
  );
}

export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}

/** The time of day of a moment, whatever a log says that it is. */
export function formatTime(moment: number | string): string {
  const date = new Date(moment);
  return Number.isNaN(date.getTime()) ? "" : date.toTimeString().slice(0, 8);
}

export function counted(count: number, one: string): string {
  return `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
}
