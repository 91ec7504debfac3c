import type { Problem, Rule, Severity } from "./rule.ts";
import type { Unit } from "./unit.ts";

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly rule: string;
  readonly severity: Severity;
  readonly message: string;
  readonly fix: string;
}

/** What checking one file came to; `skipped` says why it could not be checked. */
export interface Outcome {
  readonly findings: readonly Finding[];
  readonly skipped?: string;
}

export function toFinding(unit: Unit, rule: Rule, problem: Problem): Finding {
  return {
    file: unit.path,
    ...unit.place(problem.start),
    rule: rule.name,
    severity: rule.severity,
    message: problem.message,
    fix: problem.fix,
  };
}
