import { HostError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { ModelTool } from "../../models/model.ts";
import { estimateTokens } from "../../session/prompt/system-prompt.ts";
import type { Session } from "../../session/session.ts";
import { type BlobStore, redactSecrets } from "./blob-store.ts";
import { toFeedDefinition, toFeedRecord, toFeedText } from "./feed-json.ts";
import type { FeedModelView } from "./feed-messages.ts";

/** What a session's model got with its last request. @throws HostError `INSPECTOR_NO_REQUEST` before the first. */
export function modelView(session: Session, blobs: BlobStore): FeedModelView {
  const sent = session.conversation.lastRequest;
  if (sent === undefined)
    throw new HostError("INSPECTOR_NO_REQUEST", "Nothing was sent to the model yet. Send a message to the session first.");
  const { messages, tools = [] } = sent.request;
  const system = messages.flatMap((message) => (message.role === "system" ? [message.content] : [])).join("\n\n");
  const body = sent.body?.();
  const others = messages.filter(({ role }) => role !== "system");
  return {
    model: sent.model,
    ...(body !== undefined && { body: { text: toFeedText(body, blobs), size: Buffer.byteLength(body) } }),
    system: redactSecrets(system),
    tools: tools.map((tool): Json => toFeedDefinition({ ...tool }, blobs)),
    messages: others.map((message) => toFeedRecord(message, blobs)),
    parts: [
      { name: "system", tokens: estimateTokens(system.length) },
      ...tools.map((tool) => ({ name: `tool ${tool.name}`, tokens: tokensOf(modelFields(tool)) })),
      ...others.map((message, index) => ({ name: `message ${index + 1} (${message.role})`, tokens: tokensOf(message) })),
    ],
  };
}

function modelFields({ name, description, parameters }: ModelTool): object {
  return { name, description, parameters };
}

function tokensOf(value: object): number {
  return estimateTokens(JSON.stringify(value).length);
}
