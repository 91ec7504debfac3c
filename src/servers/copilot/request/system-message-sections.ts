import { isRecord } from "../../../base/json.ts";
import type { SectionTransform, SystemMessageOptions } from "../../../session/prompt/customize-prompt.ts";
import type { Client } from "../clients/client.ts";

/**
 * Reads a client's system message. A section with the action `transform` is sent to the client, which returns the changed
 * text; one request carries all sections of a message.
 */
export function toSystemMessage(value: unknown, sessionId: string, client: Client): SystemMessageOptions | undefined {
  if (!isRecord(value) || !isRecord(value["sections"])) return value as SystemMessageOptions | undefined;
  const transforms = new SectionRequests(sessionId, client);
  const sections = Object.entries(value["sections"]).map(([id, change]) => [id, toChange(id, change, transforms)] as const);
  return { ...value, sections: Object.fromEntries(sections) } as SystemMessageOptions;
}

function toChange(id: string, change: unknown, transforms: SectionRequests): unknown {
  if (!isRecord(change)) return change;
  const { action, content } = change;
  return action === "transform" ? { action: transforms.of(id) } : { action, ...(content !== null && content !== undefined && { content }) };
}

interface Waiting {
  readonly id: string;
  readonly content: string;
  readonly resolve: (content: string) => void;
}

class SectionRequests {
  readonly #sessionId: string;
  readonly #client: Client;
  #waiting: Waiting[] = [];

  constructor(sessionId: string, client: Client) {
    this.#sessionId = sessionId;
    this.#client = client;
  }

  of(id: string): SectionTransform {
    return (content) =>
      new Promise((resolve) => {
        if (this.#waiting.length === 0) queueMicrotask(() => void this.#send());
        this.#waiting.push({ id, content, resolve });
      });
  }

  async #send(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      const sections = Object.fromEntries(waiting.map(({ id, content }) => [id, { content }]));
      const answer = await this.#client.wire.request("systemMessage.transform", { sessionId: this.#sessionId, sections });
      const changed = isRecord(answer) && isRecord(answer["sections"]) ? answer["sections"] : {};
      for (const { id, content, resolve } of waiting) resolve(contentOf(changed, id) ?? content);
    } catch {
      // When the client fails or has disconnected, the sections stay unchanged.
      for (const { content, resolve } of waiting) resolve(content);
    }
  }
}

function contentOf(sections: Readonly<Record<string, unknown>>, id: string): string | undefined {
  const section = Object.hasOwn(sections, id) ? sections[id] : undefined;
  const content = isRecord(section) ? section["content"] : undefined;
  return typeof content === "string" ? content : undefined;
}
