import { type Finding, type Outcome, toFinding } from "./finding.ts";
import { rules as allRules } from "./registry.ts";
import type { Rule } from "./rule.ts";
import { type AsyncImports, parseUnit, type SyntaxFault, type Unit } from "./unit.ts";

/** Checks one source text. What does not parse is a finding of the rule `syntax-error`. */
export function lintText(
  path: string,
  text: string,
  options: { readonly rules?: readonly Rule[]; readonly isAsyncImport?: AsyncImports } = {},
): Outcome {
  try {
    const { unit, faults } = parseUnit(path, text, options.isAsyncImport);
    const found = unit ? applyRules(unit, options.rules ?? allRules) : [];
    return {
      findings: [...faults.slice(0, 5).map((fault) => syntaxError(path, fault)), ...found].sort(
        (a, b) => a.line - b.line || a.column - b.column,
      ),
    };
  } catch (error) {
    // The analysis walks statements by recursion; code nested beyond the stack is no code a person wrote.
    if (error instanceof RangeError) return { findings: [], skipped: "nested too deeply to analyse" };
    throw error;
  }
}

function applyRules(unit: Unit, rules: readonly Rule[]): Finding[] {
  const findings = rules.flatMap((rule) => [...rule.check(unit)].map((problem) => toFinding(unit, rule, problem)));
  const different = new Map(findings.map((finding) => [`${finding.rule} ${finding.line}:${finding.column}`, finding]));
  return [...different.values()].filter((finding) => !isAllowed(unit, finding));
}

/** `// lint-ignore rule: reason` on the line or the line before it. Without a reason it does not count. */
function isAllowed(unit: Unit, finding: Finding): boolean {
  return unit.comments.some((comment) => {
    const allowed = /^[\s*]*lint-ignore\s+([\w-]+)\s*:\s*\S/.exec(comment.value)?.[1];
    if (allowed !== finding.rule) return false;
    const { line } = unit.place(comment.end);
    return line === finding.line || line === finding.line - 1;
  });
}

function syntaxError(path: string, { line, column, message }: SyntaxFault): Finding {
  return { file: path, line, column, rule: "syntax-error", severity: "error", message, fix: "Correct it: this code does not compile." };
}
