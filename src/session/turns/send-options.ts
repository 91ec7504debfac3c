import { HostError } from "../../base/errors.ts";
import { type FieldReaders, isPlainRecord, mustBe, readFields, readOneOf, readText } from "../../base/read-fields.ts";
import type { UserAttachment } from "./user-attachments.ts";

/** A message to a session. */
export interface SendOptions {
  readonly prompt: string;
  readonly attachments?: readonly UserAttachment[] | undefined;
  /**
   * `enqueue`, the default: its turn comes after those of the messages before it. `immediate`: the turn that runs takes
   * it in before it asks the model again.
   */
  readonly mode?: "enqueue" | "immediate" | undefined;
  /** Sent with the requests to the model that the message leads to. */
  readonly requestHeaders?: Readonly<Record<string, string>> | undefined;
  /** Who says it, when it is not the user: a name for the events. */
  readonly source?: string | undefined;
}

/** @throws HostError `SEND_OPTIONS` naming the field. */
export function readSendOptions(options: SendOptions | string): SendOptions {
  const given = typeof options === "string" ? { prompt: options } : options;
  const read = readFields(given, "message options", "SEND_OPTIONS", readers);
  if (read.prompt === undefined) throw new HostError("SEND_OPTIONS", 'prompt is missing. Send { prompt: "…" }.');
  return read;
}

const readers: FieldReaders<SendOptions> = {
  prompt: (value, path) => (typeof value === "string" ? value : mustBe(path, "a text")),
  // Read when the message is taken, with messages of their own.
  attachments: (value, path) => (Array.isArray(value) ? (value as UserAttachment[]) : mustBe(path, "a list")),
  mode: readOneOf(["enqueue", "immediate"]),
  requestHeaders: (value, path) => {
    const isHeaders = isPlainRecord(value) && Object.values(value).every((header) => typeof header === "string");
    return isHeaders ? (value as Readonly<Record<string, string>>) : mustBe(path, "an object of texts by header name");
  },
  source: readText,
};
