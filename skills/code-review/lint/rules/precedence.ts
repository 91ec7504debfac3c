import { type Node, numberOf, stringOf, unwrap } from "../ast.ts";
import { brief, problem, quote, type Rule } from "../rule.ts";
import { parenthesesAround } from "../unit.ts";

const equality = /^[!=]==?$/;
const relational = /^[<>]=?$/;

function freshKind(node: Node): string | undefined {
  if (node.type === "ArrayExpression") return "array";
  if (node.type === "ObjectExpression") return "object";
  if (node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression") return "function";
  if (node.type === "NewExpression") return "object";
  return node.type === "Literal" && "regex" in node ? "regular expression" : undefined;
}

const freshComparison: Rule = {
  name: "fresh-object-comparison",
  severity: "error",
  summary: "A comparison with an object that was just made is always false.",
  *check(unit) {
    for (const node of unit.tree.all("BinaryExpression")) {
      const kind =
        node.operator === "===" || node.operator === "!==" ? (freshKind(unwrap(node.right)) ?? freshKind(unwrap(node.left))) : undefined;
      if (kind)
        yield problem(
          node,
          `${quote(unit, node)} compares with a new ${kind}, which equals nothing else.`,
          kind === "array" ? "Test `.length === 0`, or compare the elements." : "Compare what is in them.",
        );
    }
  },
};

const chained: Rule = {
  name: "chained-comparison",
  severity: "error",
  summary: "`a < b < c` compares true or false with c.",
  *check(unit) {
    for (const node of unit.tree.all("BinaryExpression")) {
      const { left } = node;
      if (
        !relational.test(node.operator) ||
        left.type !== "BinaryExpression" ||
        !relational.test(left.operator) ||
        parenthesesAround(unit, left) > 0
      )
        continue;
      const middle = unit.source(left.right);
      yield problem(
        node,
        `${quote(unit, node)} compares the outcome (true or false) of ${quote(unit, left)} with ${quote(unit, node.right)}.`,
        `Write \`${brief(unit, left)} && ${middle} ${node.operator} ${brief(unit, node.right)}\`.`,
      );
    }
  },
};

const negatedOperand: Rule = {
  name: "negated-operand",
  severity: "error",
  summary: "`!a in b`, `!a instanceof B`, `!a === 1`: the `!` binds to `a` alone.",
  *check(unit) {
    for (const node of unit.tree.all("BinaryExpression")) {
      if (node.left.type !== "UnaryExpression" || node.left.operator !== "!" || parenthesesAround(unit, node.left) > 0) continue;
      const right = unwrap(node.right);
      const isTest = node.operator === "in" || node.operator === "instanceof" || relational.test(node.operator);
      const isComparison = equality.test(node.operator) && (numberOf(right) ?? stringOf(right)) !== undefined;
      if (isTest || isComparison)
        yield problem(
          node,
          `\`!\` applies to ${quote(unit, node.left.argument)} alone, so this compares true or false.`,
          isComparison
            ? `Write \`${brief(unit, node.left.argument)} !== ${brief(unit, right)}\`.`
            : `Write \`!(${brief(unit, node.left.argument)} ${node.operator} ${brief(unit, right)})\`.`,
        );
    }
  },
};

export const precedenceRules: readonly Rule[] = [freshComparison, chained, negatedOperand];
