import type { AskHandlers } from "../asks/asks.ts";
import type { ScopeOptions } from "../conversation-scope.ts";
import type { ProgressListener } from "./pipeline-types.ts";

export interface CallOptions {
  /** Default: a new UUID. */
  readonly toolCallId?: string;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  /** Hears of the progress and the log lines of the call, and of calls that it makes; never after it has settled. */
  readonly onProgress?: ProgressListener;
  /**
   * Asked first what this call, and those that it makes, want to know: a permission that no rule and no earlier approval
   * decides, or what a tool or a server asks. What it leaves with `noResult` goes to those who are attached.
   */
  readonly answers?: AskHandlers;
}

/** What is particular to one call, until it has settled. Undefined: nothing is. */
export function listenTo({ signal, onProgress, answers }: CallOptions): ListenedCall | undefined {
  if (signal === undefined && onProgress === undefined && answers === undefined) return undefined;
  return new ListenedCall(signal, onProgress, answers);
}

class ListenedCall implements ScopeOptions {
  declare readonly signal?: AbortSignal;
  declare readonly answers?: AskHandlers;
  declare readonly onProgress?: ProgressListener;
  #isOver = false;

  constructor(signal: AbortSignal | undefined, onProgress: ProgressListener | undefined, answers: AskHandlers | undefined) {
    if (signal !== undefined) this.signal = signal;
    if (answers !== undefined) this.answers = answers;
    if (onProgress === undefined) return;
    this.onProgress = (update, call) => {
      if (!this.#isOver) onProgress(update, call);
    };
  }

  end(): void {
    this.#isOver = true;
  }
}
