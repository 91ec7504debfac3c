import type { Pattern } from "./schema-pattern.ts";
import type { SchemaIndex, SchemaNode } from "./schema-structure.ts";

/** A mismatch: where, and by which keyword. The fault of a union without a matching branch holds the faults of its branches. */
export interface SchemaFault {
  readonly keyword: string;
  readonly path: readonly (string | number)[];
  readonly params: Readonly<Record<string, unknown>>;
  readonly data: unknown;
  readonly parentSchema: SchemaNode;
  readonly branches?: readonly SchemaFault[];
}

/** Ends an evaluation that exceeds its step limit. */
export class StepsExceeded extends Error {}

/** Ends an evaluation whose value or references are nested too deeply. */
export class TooDeep extends Error {}

/** Unwinds an evaluation at the end of a slice. Each frame that has made progress saves its state. */
export const pause: unique symbol = Symbol("pause");

const stepsPerSlice = 10_000;
/** The first slice adds to the other work of a call in the same turn of the event loop. */
const firstSteps = 5_000;
/** The limit for work that cannot be interrupted. */
const longestStretch = 300_000;
const maxDepth = 2_000;
const maxFaults = 200;

export interface RunOptions {
  /** Steps in all slices together. */
  readonly limit: number;
  /** Undefined: only whether the value matches. `first`: the first fault. `all`: every fault, up to a limit. */
  readonly faults?: "first" | "all";
  /** Steps in one slice. Default: a few milliseconds of work. */
  readonly slice?: number;
  /** Writes defaults into the value. */
  readonly appliesDefaults?: boolean;
  /** Removes members that are null, optional and mismatched, because many models write null for omitted values. */
  readonly omitsNulls?: boolean;
}

/**
 * One evaluation of a value against a schema. It counts steps, so that the work is bounded for any schema, and can be paused at the end
 * of a slice and resumed later. Resuming calls the same functions again from the outside in; each restores what it saved, innermost last.
 */
export class EvaluationRun {
  faults: SchemaFault[] | null;
  readonly wantsAll: boolean;
  readonly #omitsNulls: boolean;
  /** True while frames restore their saved state. */
  isResuming = false;
  /** Segments from the root to the current value; recorded only while faults are collected. */
  readonly path: (string | number)[] = [];
  /** Base addresses of the schemas that references entered, outermost first. */
  scope: string[];
  /** Above 0 within a union or a condition, where defaults are not applied. */
  tentative = 0;
  readonly #leastTentative: number;
  #depth = 0;
  #steps = 0;
  readonly #slice: number;
  /** The step budget of the next slice. */
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

  /** Must be called before each slice. */
  beginSlice(): void {
    // Steps that the previous slice overspent count too.
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

  /** Charges for work that cannot be interrupted. */
  spend(steps: number): void {
    if (steps > longestStretch) throw new StepsExceeded();
    this.#steps -= steps;
  }

  /** For loops that enter no schema: when true, they save their state and throw `pause`. */
  get isSliceOver(): boolean {
    if (this.#steps >= 0) return false;
    if (this.#left <= 0) throw new StepsExceeded();
    return true;
  }

  /** Records a fault and returns false. */
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

/** The members of a value that a schema has evaluated, for `unevaluatedProperties` and `unevaluatedItems`. */
export class Evaluated {
  hasAllProperties = false;
  hasAllItems = false;
  readonly properties: Set<string> = new Set();
  /** All items before this index are evaluated. */
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

/** Whether a value matches; `seen` records the evaluated members where a keyword needs them. */
export type Check = (value: unknown, run: EvaluationRun, seen: Evaluated | null) => boolean;

/** Compiles one keyword, or returns null when it demands nothing. */
export type KeywordCompiler = (value: unknown, schema: SchemaNode, evaluator: SchemaContext) => Check | null;

/** The test of a `format`, such as `date`. */
export interface StringFormat {
  readonly type: "string" | "number";
  test(value: never): boolean;
}

export interface EvaluatorParts {
  /** Null: the pattern cannot be matched and is not checked. */
  readonly toPattern: (source: string) => Pattern | null;
  readonly formats: ReadonlyMap<string, StringFormat>;
}

/** What a keyword needs of the schema around it to compile its checks. */
export interface SchemaContext {
  readonly index: SchemaIndex;
  readonly parts: EvaluatorParts;
  /** The check of a subschema, compiled on first use. */
  checkOf(schema: unknown): Check;
}
