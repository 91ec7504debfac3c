import type { Node } from "../ast.ts";
import { type Problem, problem, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const explicitAny: Rule = {
  name: "explicit-any",
  severity: "advice",
  summary: "`any` switches type checking off for everything that the value touches.",
  *check(unit): Iterable<Problem> {
    const found = unit.isTest ? [] : unit.tree.all("TSAnyKeyword").filter((node) => !isInConstraint(unit, node));
    const [first] = found;
    if (first)
      yield problem(
        first,
        `\`any\` takes and gives everything unchecked${times(found)}.`,
        "Name the type; if it is not known, write `unknown` and check the value before its use.",
      );
  },
};

/** One finding stands for all of its kind in a file: whoever has one of these habits has it everywhere. */
function times(found: readonly Node[]): string {
  return found.length > 1 ? ` (${found.length} times in this file)` : "";
}

/** `F extends (...args: any[]) => any` is the only way to say "any function". */
function isInConstraint(unit: Unit, node: Node): boolean {
  for (let at: Node | undefined = node; at !== undefined; at = unit.tree.parent(at)) {
    if (at.type === "TSTypeParameter" || at.type === "TSConditionalType") return true;
    if (/Statement$|Declaration$/.test(at.type) && !at.type.startsWith("TS")) return false;
  }
  return false;
}

const checkOff: Rule = {
  name: "type-check-off",
  severity: "advice",
  summary: "`@ts-ignore` and `@ts-nocheck` hide every error, those of tomorrow too.",
  *check(unit): Iterable<Problem> {
    for (const comment of unit.comments) {
      const directive = /^[\s*/]*@ts-(ignore|nocheck)\b/.exec(comment.value)?.[1];
      if (directive)
        yield problem(
          comment,
          `\`@ts-${directive}\` hides every error ${directive === "ignore" ? "of the next line" : "in this file"}, also one that comes later.`,
          "Correct the type; or write `@ts-expect-error` with the reason, which tells when it is no longer needed.",
        );
    }
  },
};

const varDeclaration: Rule = {
  name: "var-declaration",
  severity: "advice",
  summary: "`var` in a module: it is visible before its line and outside its block.",
  *check(unit): Iterable<Problem> {
    const found = unit.isModule ? unit.tree.all("VariableDeclaration").filter((node) => node.kind === "var" && !node.declare) : [];
    const [first] = found;
    if (first)
      yield problem(
        first,
        `A \`var\` is visible in the whole function, also before its line, where it is undefined${times(found)}.`,
        "Write `const`, or `let` if it changes.",
      );
  },
};

export const typeRules: readonly Rule[] = [explicitAny, checkOff, varDeclaration];
