import type { ChatMessage, ImagePart, MessagePart, ToolMessage } from "../../models/model.ts";
import type { History } from "../history/conversation-history.ts";
import { unseenNote } from "../prompt/model-text.ts";

/** What a model is sent: one system message, then the conversation as its events describe it. */
export function assembleMessages(system: string, history: History, seesImages: boolean): readonly ChatMessage[] {
  const conversation = seesImages ? history.messages() : history.messages().map(withoutImages);
  return system === "" ? conversation : [{ role: "system", content: system }, ...conversation];
}

function withoutImages(message: ChatMessage): ChatMessage {
  if (message.role === "tool" && message.images !== undefined) return withoutPictures(message, message.images);
  if (message.role !== "user" || typeof message.content === "string") return message;
  return { role: "user", content: message.content.map(toNote) };
}

function withoutPictures({ role, toolCallId, content }: ToolMessage, images: readonly ImagePart[]): ToolMessage {
  return { role, toolCallId, content: [content, ...images.map(noteOf)].join("\n") };
}

function toNote(part: MessagePart): MessagePart {
  return part.type === "text" ? part : { type: "text", text: noteOf(part) };
}

function noteOf(image: ImagePart): string {
  if ("url" in image) return unseenNote({ mimeType: "image", bytes: undefined });
  return unseenNote({ mimeType: image.mimeType, bytes: Buffer.byteLength(image.data, "base64") });
}
