import { memberName, type Node, type NodeOf, stringOf, unwrap } from "../ast.ts";
import { isPure, isSameText, nearestWord } from "../compare.ts";
import { brief, problem, quote, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const equality = /^[!=]==?$/;
const relational = /^[<>]=?$/;

function isNullish(unit: Unit, node: Node): boolean {
  if (node.type === "Literal" && node.value === null && !("regex" in node)) return true;
  return node.type === "Identifier" && node.name === "undefined" && unit.scopes.resolve(node) === undefined;
}

const looseEquality: Rule = {
  name: "loose-equality",
  severity: "warning",
  summary: "`==` converts types before it compares. `== null` (null or undefined) and `typeof x ==` are left alone.",
  *check(unit) {
    for (const node of unit.tree.all("BinaryExpression")) {
      if (node.operator !== "==" && node.operator !== "!=") continue;
      const sides = [unwrap(node.left), unwrap(node.right)];
      const isSafe = sides.some((side) => isNullish(unit, side) || (side.type === "UnaryExpression" && side.operator === "typeof"));
      if (!isSafe && !sides.every((side) => side.type === "Literal"))
        yield problem(
          node,
          `\`${node.operator}\` converts types first: \`0 == ""\` and \`null == undefined\` are true.`,
          `Write \`${node.operator}=\`; to test for both null and undefined, \`x ${node.operator} null\`.`,
        );
    }
  },
};

function isNaNValue(unit: Unit, node: Node): boolean {
  if (node.type === "Identifier") return node.name === "NaN" && unit.scopes.resolve(node) === undefined;
  return node.type === "MemberExpression" && memberName(node) === "NaN" && unit.source(node.object) === "Number";
}

const nanComparison: Rule = {
  name: "nan-comparison",
  severity: "error",
  summary: "Nothing equals NaN, not even NaN.",
  *check(unit) {
    for (const node of unit.tree.all("BinaryExpression"))
      if (
        (equality.test(node.operator) || relational.test(node.operator)) &&
        [node.left, node.right].some((side) => isNaNValue(unit, side))
      )
        yield problem(
          node,
          `${quote(unit, node)} is always ${node.operator.startsWith("!") ? "true" : "false"}: nothing equals NaN.`,
          "Use `Number.isNaN(value)`.",
        );
    for (const branch of unit.tree.all("SwitchCase"))
      if (branch.test && isNaNValue(unit, branch.test))
        yield problem(branch.test, "`case NaN` never matches.", "Test with `Number.isNaN(value)` before the switch.");
    for (const call of unit.tree.all("CallExpression"))
      if (
        /^(indexOf|lastIndexOf)$/.test(call.callee.type === "MemberExpression" ? (memberName(call.callee) ?? "") : "") &&
        call.arguments[0] &&
        isNaNValue(unit, call.arguments[0])
      )
        yield problem(call, "`indexOf` compares with `===`, so it never finds NaN.", "Use `includes(NaN)` or `findIndex(Number.isNaN)`.");
  },
};

const typeNames = ["undefined", "object", "boolean", "number", "string", "function", "symbol", "bigint"];

const invalidTypeof: Rule = {
  name: "invalid-typeof",
  severity: "error",
  summary: "`typeof` compared with something it never gives.",
  *check(unit) {
    for (const node of unit.tree.all("BinaryExpression")) {
      const [side, other] = typeofSides(node);
      if (!side || !other || !equality.test(node.operator)) continue;
      const word = stringOf(other);
      if (word !== undefined && !typeNames.includes(word)) yield problem(other, `\`typeof\` never gives "${word}".`, advise(word));
      else if (isNullish(unit, other))
        yield problem(
          node,
          `\`typeof\` gives a string, never ${brief(unit, other)}.`,
          `Compare with a string: \`${brief(unit, side)} ${node.operator} "undefined"\`${brief(unit, other) === "null" ? "; for null, test the value itself" : ""}.`,
        );
    }
  },
};

function typeofSides(node: NodeOf<"BinaryExpression">): [Node, Node] | [] {
  const left = unwrap(node.left);
  const right = unwrap(node.right);
  if (left.type === "UnaryExpression" && left.operator === "typeof") return [left, right];
  return right.type === "UnaryExpression" && right.operator === "typeof" ? [right, left] : [];
}

function advise(word: string): string {
  if (word === "array") return "Use `Array.isArray(value)`.";
  if (word === "null") return 'Use `value === null`; `typeof null` is "object".';
  const near = nearestWord(word.toLowerCase(), typeNames, 3);
  return near ? `Did you mean "${near}"?` : `It gives one of ${typeNames.join(", ")}.`;
}

const sameOperands: Rule = {
  name: "same-operands",
  severity: "error",
  summary: "Both sides of an operator are the same expression.",
  *check(unit) {
    for (const node of [...unit.tree.all("BinaryExpression"), ...unit.tree.all("LogicalExpression")]) {
      const isSuspect = equality.test(node.operator) || relational.test(node.operator) || /^(-|\/|%|\^|&&|\|\||\?\?)$/.test(node.operator);
      if (!isSuspect || node.left.type === "Literal" || !isPure(node) || !isSameText(unit, node.left, node.right)) continue;
      const isNaNTest = /^[!=]==?$/.test(node.operator);
      yield problem(
        node,
        `Both sides of \`${node.operator}\` are ${quote(unit, node.left)}.`,
        isNaNTest
          ? "One side was meant to be something else; to test for NaN, write `Number.isNaN(value)`."
          : "One side was meant to be something else.",
      );
    }
  },
};

export const comparisonRules: readonly Rule[] = [looseEquality, nanComparison, invalidTypeof, sameOperands];
