import type { Pattern } from "../schema-pattern.ts";
import { isRecord, type SchemaNode } from "../walk-schema.ts";
import { applicators } from "./applicators.ts";
import { arrayKeywords } from "./array-keywords.ts";
import { Evaluated, type EvaluationRun, pause } from "./evaluation-run.ts";
import { objectKeywords } from "./object-keywords.ts";
import { referenceKeywords } from "./reference-keywords.ts";
import { SchemaIndex } from "./schema-index.ts";
import type { StringFormat } from "./string-formats.ts";
import { valueKeywords } from "./value-keywords.ts";

/** Whether a value fits; `seen` notes which of its members were looked at, where something asks for that. */
export type Check = (value: unknown, run: EvaluationRun, seen: Evaluated | null) => boolean;

/** Makes the check of one keyword, or null where it asks for nothing. */
export type KeywordCompiler = (value: unknown, schema: SchemaNode, evaluator: SchemaEvaluator) => Check | null;

export interface EvaluatorParts {
  /** Null: a pattern that cannot be matched; it is not checked. */
  readonly toPattern: (source: string) => Pattern | null;
  readonly formats: ReadonlyMap<string, StringFormat>;
}

/** In the order in which they are looked at: what is cheap and says most comes first. */
const keywords: readonly (readonly [string, KeywordCompiler])[] = [
  ...referenceKeywords,
  ...valueKeywords,
  ...applicators,
  ...arrayKeywords,
  ...objectKeywords,
];

/**
 * Checks values against a schema without generating code: a part of the schema is prepared when a value first gets there,
 * so a large schema costs what is used of it.
 */
export class SchemaEvaluator {
  readonly index: SchemaIndex;
  readonly parts: EvaluatorParts;
  readonly #checks = new Map<unknown, Check>();

  constructor(root: unknown, parts: EvaluatorParts) {
    this.index = new SchemaIndex(root);
    this.parts = parts;
  }

  /** One slice of an evaluation: whether the value fits, or that another slice is needed. */
  advance(value: unknown, run: EvaluationRun): boolean | typeof pause {
    run.beginSlice();
    try {
      return this.checkOf(this.index.root)(value, run, null);
    } catch (error) {
      if (error === pause) return pause;
      throw error;
    }
  }

  /** The check of a part of the schema, which is prepared when it is first used. */
  checkOf(schema: unknown): Check {
    const known = this.#checks.get(schema);
    if (known !== undefined) return known;
    let prepared: Check | undefined;
    const check: Check = (value, run, seen) => {
      prepared ??= this.#prepare(schema);
      return prepared(value, run, seen);
    };
    this.#checks.set(schema, check);
    return check;
  }

  #prepare(schema: unknown): Check {
    if (schema === true) return () => true;
    if (!isRecord(schema)) return (value, run) => run.fail("false schema", {}, value, {});
    const checks: Check[] = [];
    for (const [keyword, compile] of keywords) {
      if (!Object.hasOwn(schema, keyword)) continue;
      const check = compile(schema[keyword], schema, this);
      if (check !== null) checks.push(check);
    }
    return checkAll(checks, { stopsEarly: Object.hasOwn(schema, "type"), asksWhatWasSeen: asksWhatWasSeen(schema) });
  }
}

function asksWhatWasSeen(schema: SchemaNode): boolean {
  return Object.hasOwn(schema, "unevaluatedProperties") || Object.hasOwn(schema, "unevaluatedItems");
}

interface Progress {
  readonly at: number;
  readonly fits: boolean;
  readonly own: Evaluated | null;
}

/** `stopsEarly`: the first check is that of the type, and nothing else is said of a value of a wrong one. */
function checkAll(checks: readonly Check[], { stopsEarly, asksWhatWasSeen }: { stopsEarly: boolean; asksWhatWasSeen: boolean }): Check {
  return (value, run, seen) => {
    let at = 0;
    let fits = true;
    let own = seen;
    if (run.isResuming) ({ at, fits, own } = run.restore<Progress>());
    else {
      run.step();
      if (asksWhatWasSeen) own = new Evaluated();
    }
    run.descend();
    try {
      for (; at < checks.length; at++) {
        if (checks[at]!(value, run, own)) continue;
        fits = false;
        if (!run.wantsAll || (stopsEarly && at === 0)) break;
      }
    } catch (error) {
      if (error === pause) run.save({ at, fits, own } satisfies Progress);
      throw error;
    }
    run.ascend();
    if (asksWhatWasSeen && fits && seen !== null && own !== null) seen.add(own);
    return fits;
  };
}
