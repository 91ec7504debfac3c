/**
 * How much a search may look at: names, and kilobytes of files. Not how long it may take: what it finds must not depend on
 * what else the machine does meanwhile.
 */
export class SearchSteps {
  #left: number;

  constructor(steps: number = maxSteps) {
    this.#left = steps;
  }

  get areSpent(): boolean {
    return this.#left <= 0;
  }

  takeName(): void {
    this.#left--;
  }

  takeFile(bytes: number): void {
    this.#left -= Math.ceil(bytes / 1024);
  }
}

/** Some 20 seconds' worth on an idle machine. */
const maxSteps = 500_000;
