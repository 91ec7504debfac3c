import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { FeedApp } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";
import { announce, attempt, store } from "../page-state.ts";
import { TextValue } from "../parts/values.tsx";
import { AppBridge } from "./app-bridge.ts";

const maxLog = 200;

/** The app of an MCP server that shows the result of a call. It runs when the user opens it. */
export function AppPanel({ callId }: { readonly callId: string }): JSX.Element {
  const app = useSignal<FeedApp | undefined>(undefined);
  const allowsDomains = useSignal(false);
  const open = (): void => {
    allowsDomains.value = false;
    attempt(requestHost("app.open", { callId }).then((opened) => (app.value = opened)));
  };
  if (app.value === undefined) {
    return (
      <p>
        <button type="button" disabled={store.isReadOnly.value} onClick={open}>
          Open the app of this result
        </button>
      </p>
    );
  }
  const { appId, server, address, domains } = app.value;
  const wanted = [...new Set(Object.values(domains).flat())];
  return (
    <section class="card app" aria-label={`App of ${server}`}>
      <p>
        <strong>{server}</strong> <span class="hint">{address}</span>{" "}
        <button type="button" class="small" onClick={() => (app.value = undefined)}>
          Close
        </button>
      </p>
      {wanted.length === 0 ? null : (
        <p>
          It {allowsDomains.value ? "may reach" : "wants to reach"} {wanted.join(", ")}.{" "}
          {allowsDomains.value ? null : (
            <button type="button" class="small" onClick={() => (allowsDomains.value = true)}>
              Allow these addresses
            </button>
          )}
        </p>
      )}
      <AppFrame
        key={`${appId} ${allowsDomains.value}`}
        app={app.value}
        allowsDomains={allowsDomains.value}
        onFlood={() => {
          app.value = undefined;
          announce(`The app of ${server} was closed: it sends more messages than can be read.`);
        }}
      />
    </section>
  );
}

interface AppFrameProps {
  readonly app: FeedApp;
  readonly allowsDomains: boolean;
  readonly onFlood: () => void;
}

interface AskedLink {
  readonly url: string;
  readonly answer: (isOpened: boolean) => void;
}

function AppFrame({ app, allowsDomains, onFlood }: AppFrameProps): JSX.Element {
  const frame = useRef<HTMLIFrameElement>(null);
  const height = useSignal(240);
  const link = useSignal<AskedLink | undefined>(undefined);
  const log = useSignal<readonly string[]>([]);
  useEffect(() => {
    // An app may send thousands of messages a second.
    let lines: string[] = [];
    const drawing = setInterval(() => {
      if (lines.length > 0) log.value = [...log.value, ...lines].slice(-maxLog);
      lines = [];
    }, 100);
    const bridge = new AppBridge(app, frame.current!, {
      onLog(text) {
        if (lines.length < maxLog) lines.push(text.slice(0, 2_000));
      },
      onHeight(pixels) {
        height.value = pixels;
      },
      onFlood,
      askToOpen(url) {
        if (link.value !== undefined) return Promise.resolve(false);
        return new Promise((resolve) => {
          link.value = { url, answer: resolve };
        });
      },
    });
    // Its first message must find the bridge.
    frame.current!.src = `app/${encodeURIComponent(app.appId)}${allowsDomains ? "?domains=1" : ""}`;
    return () => {
      clearInterval(drawing);
      bridge.close();
    };
  }, []);
  const answerLink = (isOpened: boolean): void => {
    const asked = link.value;
    link.value = undefined;
    if (asked === undefined) return;
    if (isOpened) window.open(asked.url, "_blank", "noopener,noreferrer");
    asked.answer(isOpened);
  };
  return (
    <>
      {link.value === undefined ? null : (
        <p role="alert">
          The app wants to open <strong class="address">{link.value.url}</strong>{" "}
          <button type="button" class="small" onClick={() => answerLink(true)}>
            Open it
          </button>{" "}
          <button type="button" class="small" onClick={() => answerLink(false)}>
            Do not open it
          </button>
        </p>
      )}
      <iframe
        ref={frame}
        title={`App of ${app.server}`}
        sandbox="allow-scripts allow-forms"
        referrerpolicy="no-referrer"
        style={{ height: `${height.value}px` }}
      />
      {log.value.length === 0 ? null : (
        <details>
          <summary>What the app did</summary>
          <TextValue value={log.value.join("\n")} label="What the app did" />
        </details>
      )}
    </>
  );
}
