import type { ServerContext } from "@modelcontextprotocol/server";
import type { Progress } from "../../tools/tool.ts";

export type ReportProgress = (update: Progress, call?: { readonly toolName: string }) => void;

// Small against any step that a tool counts in, and never lost beside what it is added to.
const smallStep = 2 ** -16;

/** Tells a client how the work for its request goes: progress if it wants any, and log lines at the level that it wants. */
export class ProgressReport {
  readonly #context: () => ServerContext | undefined;
  #last = -1;
  #isCounted = false;

  /** `context` gives the request of now; while there is none, nobody is told. */
  constructor(context: () => ServerContext | undefined) {
    this.#context = context;
  }

  /** What cannot be sent is passed over: the client is gone, and the work is told so by its signal. */
  send({ level, message, data, progress, total }: Progress, call?: { readonly toolName: string }): void {
    const mcpReq = this.#context()?.mcpReq;
    if (mcpReq === undefined) return;
    if (level !== undefined) {
      const line = data === undefined ? message : message === undefined ? data : { message, data };
      mcpReq.log(level, line ?? "", call?.toolName).catch(() => {});
      return;
    }
    const progressToken = mcpReq._meta?.progressToken;
    if (typeof progressToken !== "string" && typeof progressToken !== "number") return;
    const isHigher = progress !== undefined && Number.isFinite(progress) && progress > this.#last;
    if (message === undefined && !isHigher) return;
    const params = {
      progressToken,
      progress: this.#next(isHigher ? progress : undefined),
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    };
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  }

  /** The specification wants every notification higher than the one before, also those that only say something. */
  #next(progress: number | undefined): number {
    if (progress !== undefined) this.#isCounted = true;
    this.#last = progress ?? Math.max(this.#last + (this.#isCounted ? smallStep : 1), 0);
    return this.#last;
  }
}
