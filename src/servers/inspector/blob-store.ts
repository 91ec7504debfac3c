import { randomUUID } from "node:crypto";
import { redactMembers, redactText } from "../../base/logger.ts";
import type { FeedBlob } from "./feed-messages.ts";

/** All together, in UTF-16 units or bytes. */
const maxTotal = 64 * 1024 * 1024;
const headLength = 400;

interface StoredBlob {
  readonly mimeType: string;
  readonly content: string | Buffer;
}

/** Keeps long texts and pictures out of the messages of a feed. The oldest are dropped when there are too many. */
export class BlobStore {
  readonly #blobs = new Map<string, StoredBlob>();
  #total = 0;

  addText(text: string, mimeType = "text/plain"): FeedBlob {
    const size = Buffer.byteLength(text);
    const head = redactSecrets(text.slice(0, headLength));
    return { id: this.#keep({ mimeType, content: text }), size, mimeType, head };
  }

  /** @param data base64 */
  addBytes(data: string, mimeType: string): FeedBlob {
    const content = Buffer.from(data, "base64");
    return { id: this.#keep({ mimeType, content }), size: content.length, mimeType };
  }

  /** The content with secrets replaced. Undefined: it was dropped, or never existed. */
  read(id: string): { readonly mimeType: string; readonly content: string | Buffer } | undefined {
    const blob = this.#blobs.get(id);
    if (blob === undefined) return undefined;
    const { mimeType, content } = blob;
    return { mimeType, content: typeof content === "string" ? redactSecrets(content) : content };
  }

  #keep(blob: StoredBlob): string {
    const id = randomUUID();
    this.#blobs.set(id, blob);
    this.#total += blob.content.length;
    for (const [oldest, { content }] of this.#blobs) {
      if (this.#total <= maxTotal) break;
      this.#blobs.delete(oldest);
      this.#total -= content.length;
    }
    return id;
  }
}

export function redactSecrets(text: string): string {
  return redactMembers(redactText(text));
}
