import type { Logger } from "../../base/logger.ts";
import type { ToolUnit } from "../load/stage-tool.ts";

/** Ends replaced units as soon as their calls have ended, and reports when all have. */
export class Retirement {
  readonly #retiring = new Map<ToolUnit, Promise<void>>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  retire(units: readonly ToolUnit[]): void {
    for (const unit of units) {
      const retiring = unit.retire().then((errors) => {
        this.#retiring.delete(unit);
        this.#reportDisposers(unit, errors);
      });
      this.#retiring.set(unit, retiring);
    }
  }

  /**
   * Settles when everything retired so far has ended. Units that a call still uses `grace` milliseconds after its signal fired are ended
   * anyway: a handler that never returns cannot keep the host open.
   */
  async ended(grace: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, grace);
    });
    await Promise.race([Promise.all(this.#retiring.values()), patience]);
    clearTimeout(timer);
    for (const unit of this.#retiring.keys()) {
      this.#log.warning("A call of this tool is still running and was abandoned.", { unit: unit.key });
      this.#reportDisposers(unit, await unit.abandon());
    }
  }

  #reportDisposers(unit: ToolUnit, errors: readonly Error[]): void {
    for (const error of errors) this.#log.warning("A disposer of a replaced tool failed.", { unit: unit.key, error });
  }
}
