import type { Evaluated, EvaluationRun } from "./evaluation-run.ts";
import type { SchemaIndex } from "./schema-index.ts";
import type { Pattern } from "./schema-pattern.ts";
import type { SchemaNode } from "./walk-schema.ts";

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
