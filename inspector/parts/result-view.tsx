import type { JSX } from "preact";
import type { FeedResult } from "../../src/servers/inspector/feed-messages.ts";
import { blobIn, JsonValue, TextValue } from "./values.tsx";

type Block = Readonly<Record<string, unknown>>;

/** The result of a call: what the model reads, and everything beside it. */
export function ResultView({ result }: { readonly result: FeedResult }): JSX.Element {
  const { ok, code, text, structured, content, error } = result;
  return (
    <div class="result">
      <p>
        <span class={ok ? "badge good" : "badge bad"}>{code}</span>
      </p>
      <TextValue value={text} label="Text of the result" />
      {structured === undefined ? null : (
        <>
          <h4>Structured</h4>
          <JsonValue value={structured} label="Structured result" />
        </>
      )}
      {content.length === 0 ? null : (
        <>
          <h4>Content</h4>
          {content.map((block, index) => (
            <ContentView key={`${index} ${String(block["type"])}`} block={block} number={index + 1} />
          ))}
        </>
      )}
      {error === undefined ? null : (
        <details>
          <summary>Only for people</summary>
          <TextValue value={error} label="Error" />
        </details>
      )}
    </div>
  );
}

const shownImages = /^image\/(?:png|jpeg|gif|webp|avif)$/;

function ContentView({ block, number }: { readonly block: Block; readonly number: number }): JSX.Element {
  const { type, mimeType } = block;
  const source = sourceOf(block);
  const label = `Content ${number}, ${String(type)}`;
  if (source !== undefined && typeof mimeType === "string" && shownImages.test(mimeType)) return <img src={source} alt={label} />;
  if (source !== undefined && typeof mimeType === "string" && mimeType.startsWith("audio/")) {
    // biome-ignore lint/a11y/useMediaCaption: what a tool returns has no captions
    return <audio controls src={source} aria-label={label} />;
  }
  if (type === "text") return <TextValue value={block["text"]} label={label} />;
  const resource = block["resource"] as Block | undefined;
  if (type === "resource" && typeof resource === "object" && resource !== null && resource["text"] !== undefined) {
    return (
      <>
        <p class="hint">{String(resource["uri"])}</p>
        <TextValue value={resource["text"]} label={label} />
      </>
    );
  }
  return <JsonValue value={block} label={label} />;
}

/** Undefined: the block holds no data. */
function sourceOf({ data, mimeType }: Block): string | undefined {
  const blob = blobIn(data);
  if (blob !== undefined) return `blob/${encodeURIComponent(blob.id)}`;
  const isBase64 = typeof data === "string" && /^[\w+/=\s-]*$/.test(data);
  return isBase64 && typeof mimeType === "string" && /^[\w.+-]+\/[\w.+-]+$/.test(mimeType) ? `data:${mimeType};base64,${data}` : undefined;
}
