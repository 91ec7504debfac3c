import type { AgentTurn } from "./agent-turn.ts";
import { OpenTurn, type SendOptions, type TurnPlace } from "./conversation.ts";

/** The turns that run, by what the server calls them. */
export class OpenTurns {
  readonly #open = new Map<string | number, OpenTurn>();

  async run(prompt: string, place: TurnPlace, options: SendOptions): Promise<AgentTurn> {
    const { signal } = options;
    const turn = new OpenTurn(place.server, options);
    this.#open.set(turn.token, turn);
    const stop = (): void => turn.stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return await turn.run(prompt, place, options);
    } finally {
      signal?.removeEventListener("abort", stop);
      this.#open.delete(turn.token);
      place.server.desk.stop(turn.conversationId);
    }
  }

  hear(token: string | number, value: unknown): void {
    this.#open.get(token)?.hear(value);
  }

  /** A call of a conversation was the last one of its turn. */
  endAfter(conversationId: string): void {
    for (const turn of this.#open.values()) if (turn.conversationId === conversationId) turn.endAfterCall();
  }

  stop(): void {
    for (const turn of this.#open.values()) turn.stop();
  }
}
