import { isSameJson } from "../../trust/pins/definition-diff.ts";

interface Made<T> {
  readonly definition: unknown;
  readonly facts: string;
  readonly value: T;
}

/**
 * Gives again what was made of an equal definition the time before, so that what nobody changed stays the same object
 * over every refresh of a list.
 */
export class MadeBefore<T> {
  #before: Map<string, Made<T>> = new Map();
  #now: Map<string, Made<T>> = new Map();

  /** `facts` is all that the value depends on beside the definition. Each id once in a round. */
  take(id: string, definition: unknown, facts: string, make: () => T): T {
    const known = this.#before.get(id);
    const isSame = known !== undefined && known.facts === facts && isSameJson(known.definition, definition);
    const value = isSame ? known.value : make();
    this.#now.set(id, { definition, facts, value });
    return value;
  }

  /** Ends a round: what was not taken in it is let go of. */
  endRound(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }
}

/** The earlier of two lists where they hold the same: lists are told apart by identity. */
export function sameList<T>(before: readonly T[], next: readonly T[], isSame: (a: T, b: T) => boolean = isIdentical): readonly T[] {
  if (before.length === next.length && before.every((item, index) => isSame(item, next[index] as T))) return before;
  return Object.freeze([...next]);
}

function isIdentical(a: unknown, b: unknown): boolean {
  return a === b;
}
