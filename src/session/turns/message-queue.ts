import { randomUUID } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { type FieldReaders, mustBe, readFields, readOneOf, readText } from "../../base/read-fields.ts";
import type { ReadAttachments, UserAttachment } from "./user-attachments.ts";

/** A message of a user that waits for its turn. */
export interface QueuedMessage {
  readonly id: string;
  readonly prompt: string;
  /** For the running turn, before the model is asked again. */
  readonly isSteering: boolean;
  readonly attachments: ReadAttachments;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** The sender reads the answer as it is produced. */
  readonly streams?: boolean | undefined;
  /** Who says it, when it is not the user. */
  readonly source: string | undefined;
  /** How it reached the session. */
  readonly delivery: "idle" | "queued" | "steering";
  /** What is said before it, in the same turn. */
  readonly preceding?: readonly QueuedMessage[] | undefined;
  /** Nothing is said: the model answers what the conversation ends with. */
  readonly isContinuation?: true | undefined;
  /** Absent for a message. What is to happen in the turn of a command. */
  readonly command?: QueuedCommand | undefined;
}

/**
 * Runs a command. `done`: the model is not asked. `hold`: the same, and later commands wait for the next request.
 * `message`: its text is sent like any other message.
 */
export type QueuedCommand = (signal: AbortSignal) => Promise<"done" | "hold" | "message">;

/** One change of an item in the queue: its position among the listed ones, its text, or that the running turn takes it in. */
export interface QueueChange {
  readonly position?: number;
  readonly prompt?: string;
  readonly isSteering?: true;
}

/** A message that waits, as others see it. */
export interface QueuedPrompt extends Pick<QueuedMessage, "id" | "prompt" | "isSteering" | "source"> {
  readonly kind: "message" | "command";
}

/** Whether users see the item as one of the queue. Steering messages are part of the running turn. */
export function isListed({ isSteering, source }: Pick<QueuedPrompt, "isSteering" | "source">): boolean {
  return !isSteering && source === undefined;
}

/** The messages that wait, in the order in which their turns begin. */
export class MessageQueue {
  #waiting: QueuedMessage[] = [];
  /** No turn begins. */
  isPaused = false;
  /** Commands wait for the next request. */
  #holdsCommands = false;
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Whether something waits whose turn may come. */
  get hasNext(): boolean {
    return this.#next !== -1;
  }

  get #next(): number {
    if (this.isPaused) return -1;
    return this.#holdsCommands ? this.#waiting.findIndex(({ command }) => command === undefined) : this.#waiting.length === 0 ? -1 : 0;
  }

  /** Commands that wait do so until something is added. */
  holdCommands(): void {
    this.#holdsCommands = true;
  }

  get all(): readonly QueuedPrompt[] {
    return this.#waiting.map(({ id, prompt, isSteering, source, command }) => ({
      id,
      prompt,
      isSteering,
      source,
      kind: command === undefined ? "message" : "command",
    }));
  }

  /** Gives one up, the newest unless another is named; undefined: it is not there. */
  remove(id: string | undefined = this.#waiting.at(-1)?.id): QueuedMessage | undefined {
    const index = this.#waiting.findIndex((message) => message.id === id);
    const [removed] = index === -1 ? [] : this.#waiting.splice(index, 1);
    if (removed !== undefined) this.#changed();
    return removed;
  }

  add(message: QueuedMessage): void {
    this.#holdsCommands = false;
    this.#waiting.push(message);
    this.#changed();
  }

  /** A listed item. Undefined: it does not wait, or is not listed. */
  find(id: string): QueuedMessage | undefined {
    return this.#waiting.find((message) => message.id === id && isListed(message));
  }

  /** Adds an item at a position among the listed ones; a position beyond an end is that end. */
  insert(message: QueuedMessage, position: number): void {
    this.#holdsCommands = false;
    this.#place(message, position);
    this.#changed();
  }

  /** Moves a listed item to a position among the listed ones. False: it is there already. */
  move(message: QueuedMessage, position: number): boolean {
    const before = this.#waiting;
    this.#waiting = before.filter((other) => other !== message);
    this.#place(message, position);
    const isMoved = this.#waiting.some((other, index) => other !== before[index]);
    if (isMoved) this.#changed();
    return isMoved;
  }

  replace(message: QueuedMessage, change: Partial<Pick<QueuedMessage, "prompt" | "isSteering" | "delivery">>): void {
    this.#waiting = this.#waiting.map((other) => (other === message ? { ...message, ...change } : other));
    this.#changed();
  }

  /** Adds a listed item once more, after itself. */
  duplicate(message: QueuedMessage, id: string): void {
    const preceding = message.preceding?.map((other) => ({ ...other, id: randomUUID() }));
    this.#waiting.splice(this.#waiting.indexOf(message) + 1, 0, { ...message, id, ...(preceding !== undefined && { preceding }) });
    this.#changed();
  }

  #place(message: QueuedMessage, position: number): void {
    const listed = this.#waiting.filter(isListed);
    const next = listed[Math.max(0, position)];
    this.#waiting.splice(next === undefined ? this.#waiting.length : this.#waiting.indexOf(next), 0, message);
  }

  /** The next message, which then begins a turn. */
  take(): QueuedMessage | undefined {
    const index = this.#next;
    const [next] = index === -1 ? [] : this.#waiting.splice(index, 1);
    if (next !== undefined) this.#changed();
    return next;
  }

  /** All that are meant for the turn that runs. */
  takeSteering(): readonly QueuedMessage[] {
    const steering = this.#waiting.filter(({ isSteering }) => isSteering);
    if (steering.length === 0) return steering;
    this.#waiting = this.#waiting.filter(({ isSteering }) => !isSteering);
    this.#changed();
    return steering;
  }

  /** Gives up all of them. */
  clear(): readonly QueuedMessage[] {
    const dropped = this.#waiting;
    this.#waiting = [];
    if (dropped.length > 0) this.#changed();
    return dropped;
  }
}

/** How several messages are sent, as one. The mode is that of all. */
export interface SendAllOptions extends Pick<SendOptions, "mode" | "requestHeaders"> {
  /** The position of their turn in the queue. Default: the last. */
  readonly position?: number | undefined;
}

/**
 * A message to a session.
 *
 * @example
 * ```ts
 * const options: SendOptions = { prompt: "What changed?", attachments: [{ type: "file", path: "CHANGELOG.md" }] };
 * ```
 */
export interface SendOptions {
  /** The message. */
  readonly prompt: string;
  /** Files, folders and other content that comes with it. Default: none. */
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
  prompt: (value, path) => (typeof value === "string" ? value : mustBe(path, "a string")),
  // Read when the message is taken, with messages of their own.
  attachments: (value, path) => (Array.isArray(value) ? (value as UserAttachment[]) : mustBe(path, "an array")),
  mode: readOneOf(["enqueue", "immediate"]),
  requestHeaders: (value, path) => {
    const isHeaders = isRecord(value) && Object.values(value).every((header) => typeof header === "string");
    return isHeaders ? (value as Readonly<Record<string, string>>) : mustBe(path, "an object of strings by header name");
  },
  source: readText,
};
