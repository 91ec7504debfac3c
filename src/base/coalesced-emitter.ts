import { Emitter } from "./emitter.ts";

/** Emits `changed` once for all changes before the next microtask. */
export class CoalescedEmitter extends Emitter<{ changed: undefined }> {
  #isDue = false;

  touch(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.emit("changed", undefined);
    });
  }
}
