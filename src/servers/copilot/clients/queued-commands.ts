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

/** Commands whose turn in the queue has come. An event announces each to the clients that are interested, and one of them answers. */
export class QueuedCommands {
  readonly #session: Session;
  readonly #pending = new Map<string, (result: QueuedCommandResult) => void>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Settles with the first answer; as not handled when no interested client is left, or the signal fires. */
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

  /** False: it is not pending any more. */
  answer(requestId: string, result: QueuedCommandResult): boolean {
    const settle = this.#pending.get(requestId);
    settle?.(result);
    return settle !== undefined;
  }

  /** Settles all that are pending as not handled. */
  release(): void {
    for (const settle of [...this.#pending.values()]) settle(unhandled);
  }
}
