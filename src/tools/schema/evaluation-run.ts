import type { SchemaIndex } from "./schema-index.ts";
import type { Pattern } from "./schema-pattern.ts";
import type { SchemaNode } from "./walk-schema.ts";

/** What does not fit, where, and by which keyword. That of a union none of whose branches fits holds the branches' faults. */
export interface SchemaFault {
  readonly keyword: string;
  readonly path: readonly (string | number)[];
  readonly params: Readonly<Record<string, unknown>>;
  readonly data: unknown;
  readonly parentSchema: SchemaNode;
  readonly branches?: readonly SchemaFault[];
}

/** Ends an evaluation that takes more steps than it may. */
export class StepsExceeded extends Error {}

/** Ends an evaluation whose value or references are nested beyond what is followed. */
export class TooDeep extends Error {}

/** Unwinds an evaluation at the end of a slice. Each frame that has got further than its beginning saves where it is. */
export const pause: unique symbol = Symbol("pause");

const stepsPerSlice = 10_000;
/** The first slice comes on top of what else a call does in that turn. */
const firstSteps = 5_000;
/** More of what cannot be interrupted is not done. */
const longestStretch = 300_000;
const maxDepth = 2_000;
const maxFaults = 200;

export interface RunOptions {
  /** Steps in all slices together. */
  readonly limit: number;
  /** Undefined: only whether it fits. `first`: the first fault. `all`: every fault, up to a limit. */
  readonly faults?: "first" | "all";
  /** Steps in one slice; some milliseconds of work unless said otherwise. */
  readonly slice?: number;
  /** Writes defaults into the value. */
  readonly appliesDefaults?: boolean;
  /** Takes out of the value what is null, may be absent, and does not fit: as many models write what they leave out. */
  readonly omitsNulls?: boolean;
}

/**
 * One evaluation of a value against a schema. It counts steps, so that the work is bounded whatever the schema says, and
 * can be paused at the end of a slice and resumed later. Resuming calls the same functions again from the outside in; each
 * takes back what it saved, innermost last.
 */
export class EvaluationRun {
  faults: SchemaFault[] | null;
  readonly wantsAll: boolean;
  readonly #omitsNulls: boolean;
  /** Frames are to take back what they saved. */
  isResuming = false;
  /** Segments from the root to the value that is being looked at; kept only while faults are collected. */
  readonly path: (string | number)[] = [];
  /** Base addresses of the schemas that references entered, outermost first. */
  scope: string[];
  /** Above 0 within a union or a condition, where defaults are not applied. */
  tentative = 0;
  readonly #leastTentative: number;
  #depth = 0;
  #steps = 0;
  readonly #slice: number;
  /** Of the slice that is next. */
  #next: number;
  readonly #limit: number;
  #left: number;
  readonly #saved: unknown[] = [];
  readonly #rootBase: string;

  constructor(rootBase: string, { limit, faults, slice, appliesDefaults = false, omitsNulls = false }: RunOptions) {
    this.#omitsNulls = omitsNulls;
    this.#slice = slice ?? stepsPerSlice;
    this.#next = slice ?? firstSteps;
    this.#limit = limit;
    this.#leastTentative = appliesDefaults ? 0 : 1;
    this.#rootBase = rootBase;
    this.scope = [rootBase];
    this.#left = limit;
    this.faults = faults === undefined ? null : [];
    this.wantsAll = faults === "all";
  }

  get stepsTaken(): number {
    return this.#limit - this.#left - this.#steps;
  }

  /** Before each slice. */
  beginSlice(): void {
    // What the slice before took too much counts, too.
    this.#left += Math.min(0, this.#steps);
    this.#steps = Math.max(0, Math.min(this.#next, this.#left));
    this.#next = this.#slice;
    this.#left -= this.#steps;
    this.#depth = 0;
    this.tentative = this.#leastTentative;
    if (this.path.length > 0) this.path.length = 0;
    if (this.scope.length > 1) this.scope = [this.#rootBase];
  }

  get omitsNulls(): boolean {
    return this.#omitsNulls && this.tentative <= this.#leastTentative;
  }

  save(state: unknown): void {
    this.#saved.push(state);
    this.isResuming = true;
  }

  restore<T>(): T {
    const state = this.#saved.pop() as T;
    this.isResuming = this.#saved.length > 0;
    return state;
  }

  /** Enters a schema: one step, and a place to pause. */
  step(): void {
    if (--this.#steps < 0) this.#endSlice();
  }

  descend(): void {
    if (++this.#depth > maxDepth) throw new TooDeep();
  }

  ascend(): void {
    this.#depth--;
  }

  /** Work that cannot be interrupted. */
  spend(steps: number): void {
    if (steps > longestStretch) throw new StepsExceeded();
    this.#steps -= steps;
  }

  /** A place to pause for loops that enter no schema: true when they are to save what they have and throw `pause`. */
  get isSliceOver(): boolean {
    if (this.#steps >= 0) return false;
    if (this.#left <= 0) throw new StepsExceeded();
    return true;
  }

  /** Notes a fault, and says "does not fit". */
  fail(keyword: string, parentSchema: SchemaNode, data: unknown, params: SchemaFault["params"], branches?: readonly SchemaFault[]): false {
    if (this.faults !== null && this.faults.length < maxFaults) {
      this.faults.push({ keyword, path: [...this.path], params, data, parentSchema, ...(branches && { branches }) });
    }
    return false;
  }

  #endSlice(): never {
    if (this.#left <= 0) throw new StepsExceeded();
    throw pause;
  }
}

/** Which members of a value were looked at by a schema, for `unevaluatedProperties` and `unevaluatedItems`. */
export class Evaluated {
  hasAllProperties = false;
  hasAllItems = false;
  readonly properties: Set<string> = new Set();
  /** All items before this one. */
  itemsBefore = 0;
  readonly items: Set<number> = new Set();

  add(other: Evaluated): void {
    this.hasAllProperties ||= other.hasAllProperties;
    this.hasAllItems ||= other.hasAllItems;
    this.itemsBefore = Math.max(this.itemsBefore, other.itemsBefore);
    for (const name of other.properties) this.properties.add(name);
    for (const index of other.items) this.items.add(index);
  }
}

/** Whether a value fits; `seen` notes which of its members were looked at, where something asks for that. */
export type Check = (value: unknown, run: EvaluationRun, seen: Evaluated | null) => boolean;

/** Makes the check of one keyword, or null where it asks for nothing. */
export type KeywordCompiler = (value: unknown, schema: SchemaNode, evaluator: SchemaContext) => Check | null;

/** What texts (or numbers) of a format look like, such as dates. */
export interface StringFormat {
  readonly type: "string" | "number";
  test(value: never): boolean;
}

export interface EvaluatorParts {
  /** Null: a pattern that cannot be matched; it is not checked. */
  readonly toPattern: (source: string) => Pattern | null;
  readonly formats: ReadonlyMap<string, StringFormat>;
}

/** The schema around a keyword: what a keyword needs to prepare its checks. */
export interface SchemaContext {
  readonly index: SchemaIndex;
  readonly parts: EvaluatorParts;
  /** The check of a part of the schema, which is prepared when it is first used. */
  checkOf(schema: unknown): Check;
}
