import type { ReadAttachments } from "./user-attachments.ts";

/** A message of a user that waits for its turn. */
export interface QueuedMessage {
  readonly id: string;
  readonly prompt: string;
  /** For the running turn, before the model is asked again. */
  readonly isSteering: boolean;
  readonly attachments: ReadAttachments;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Who says it, when it is not the user. */
  readonly source: string | undefined;
  /** How it reached the session. */
  readonly delivery: "idle" | "queued" | "steering";
}

/** A message that waits, as others see it. */
export type QueuedPrompt = Pick<QueuedMessage, "id" | "prompt" | "isSteering" | "source">;

/** The messages that wait, in the order they came. */
export class MessageQueue {
  #waiting: QueuedMessage[] = [];
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get size(): number {
    return this.#waiting.length;
  }

  get all(): readonly QueuedPrompt[] {
    return this.#waiting.map(({ id, prompt, isSteering, source }) => ({ id, prompt, isSteering, source }));
  }

  /** Gives one up, the newest unless another is named; undefined: it is not there. */
  remove(id: string | undefined = this.#waiting.at(-1)?.id): QueuedMessage | undefined {
    const index = this.#waiting.findIndex((message) => message.id === id);
    const [removed] = index === -1 ? [] : this.#waiting.splice(index, 1);
    if (removed !== undefined) this.#changed();
    return removed;
  }

  add(message: QueuedMessage): void {
    this.#waiting.push(message);
    this.#changed();
  }

  /** The next message, which then begins a turn. */
  take(): QueuedMessage | undefined {
    const next = this.#waiting.shift();
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
