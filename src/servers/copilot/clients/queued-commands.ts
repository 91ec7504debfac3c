import { randomUUID } from "node:crypto";
import { onAbort } from "../../../base/wait-for.ts";
import type { Session } from "../../../session/session.ts";

/** What a client made of a command whose turn in the queue has come. */
export interface QueuedCommandResult {
  readonly handled: boolean;
  /** The commands after it wait for the next request. */
  readonly stopProcessingQueue: boolean;
}

const unhandled: QueuedCommandResult = { handled: false, stopProcessingQueue: false };

/** Commands whose turn in the queue has come: clients that are interested in them are told by an event, and one of them answers. */
export class QueuedCommands {
  readonly #session: Session;
  readonly #pending = new Map<string, (result: QueuedCommandResult) => void>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Settles with the first answer; as not handled when nobody is left who could give one, or the signal fires. */
  offer(command: string, signal: AbortSignal): Promise<QueuedCommandResult> {
    const requestId = randomUUID();
    return new Promise((resolve) => {
      const settle = (result: QueuedCommandResult): void => {
        if (!this.#pending.delete(requestId)) return;
        listening[Symbol.dispose]();
        if (this.#session.isOpen) this.#session.events.append("command.completed", { requestId });
        resolve(result);
      };
      this.#pending.set(requestId, settle);
      const listening = onAbort(signal, () => queueMicrotask(() => settle(unhandled)));
      this.#session.events.append("command.queued", { requestId, command });
    });
  }

  /** False: nobody waits for it any more. */
  answer(requestId: string, result: QueuedCommandResult): boolean {
    const settle = this.#pending.get(requestId);
    settle?.(result);
    return settle !== undefined;
  }

  /** Nobody who could answer is left. */
  release(): void {
    for (const settle of [...this.#pending.values()]) settle(unhandled);
  }
}
