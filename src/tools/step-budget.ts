import type { FuncKeywordDefinition } from "ajv";
import { isRecord } from "./walk-schema.ts";

const keyword = "skillhostStep";
const maxSteps = 100_000;

/** Ends the checking of arguments against a schema whose references multiply the work without end. */
export class StepsExceeded extends Error {}

/** How many references one check may follow; without references, the work is bounded by the sizes of schema and arguments. */
export interface StepBudget {
  /** A keyword for the validator that counts. */
  readonly definition: FuncKeywordDefinition;
  /** Puts the keyword beside every reference of a schema, in place. */
  mark(schema: unknown): void;
  restart(): void;
}

export function createStepBudget(): StepBudget {
  let left = maxSteps;
  const count = (): boolean => {
    if (left-- <= 0) throw new StepsExceeded();
    return true;
  };
  return {
    // Counted first: a reference that fails would keep later keywords from being looked at.
    definition: { keyword, validate: count, schema: false, errors: false, before: "$ref" },
    mark: markReferences,
    restart: () => {
      left = maxSteps;
    },
  };
}

/** Everywhere, as a reference may also lead to where no schema is expected. */
function markReferences(value: unknown): void {
  if (Array.isArray(value)) for (const member of value) markReferences(member);
  if (!isRecord(value)) return;
  for (const key of Object.keys(value)) markReferences(value[key]);
  if (["$ref", "$dynamicRef", "$recursiveRef"].some((key) => typeof value[key] === "string")) value[keyword] = true;
}
