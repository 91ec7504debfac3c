/** What goes on beside the conversation of a session: agents in the background, commands of an attached shell. */
export class BackgroundWork {
  readonly #running = new Set<PromiseLike<unknown>>();
  readonly #ended: () => void;

  /** `ended` is called each time the last work has ended. */
  constructor(ended: () => void) {
    this.#ended = ended;
  }

  get isEmpty(): boolean {
    return this.#running.size === 0;
  }

  /** How the work ends is for whoever started it: a rejection is an end as well. */
  add(work: PromiseLike<unknown>): void {
    if (this.#running.has(work)) return;
    this.#running.add(work);
    const end = (): void => {
      this.#running.delete(work);
      if (this.isEmpty) this.#ended();
    };
    work.then(end, end);
  }
}
