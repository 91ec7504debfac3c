import { isFunction, type Node, numberOf, stringOf, unwrap } from "../ast.ts";
import { problem, quote, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const neverNullish: Rule = {
  name: "useless-fallback",
  severity: "error",
  summary: "`a + b ?? c`: the left side is never null or undefined, so the fallback never comes.",
  *check(unit) {
    for (const node of unit.tree.all("LogicalExpression")) {
      if (node.operator !== "??" || !isNeverNullish(unwrap(node.left))) continue;
      yield problem(
        node,
        `${quote(unit, node.left)} is never null or undefined, so ${quote(unit, node.right)} is never used.`,
        unwrap(node.left).type === "BinaryExpression"
          ? "`??` binds weaker than the operator on its left: put the operand and its fallback in parentheses."
          : "Remove the fallback, or apply it to the value that may be missing.",
      );
    }
  },
};

function isNeverNullish(node: Node): boolean {
  if (
    node.type === "BinaryExpression" ||
    node.type === "TemplateLiteral" ||
    node.type === "ArrayExpression" ||
    node.type === "ObjectExpression"
  )
    return true;
  if (node.type === "UnaryExpression") return node.operator !== "void";
  return node.type === "NewExpression" || isFunction(node) || (numberOf(node) ?? stringOf(node)) !== undefined;
}

const unsafeChain: Rule = {
  name: "unsafe-optional-chain",
  severity: "error",
  summary: "An optional chain whose undefined is used at once, as in `(a?.b).c` or `const { x } = a?.b`.",
  *check(unit) {
    for (const chain of unit.tree.all("ChainExpression")) {
      const use = throwingUse(unit, chain);
      if (use)
        yield problem(
          chain,
          `${quote(unit, chain)} may be undefined, and ${use} undefined throws.`,
          "Carry the `?.` on, give a default with `??`, or test before.",
        );
    }
    for (const node of unit.tree.all("TSNonNullExpression"))
      if (node.expression.type === "ChainExpression" && unit.tree.parent(node)?.type === "MemberExpression")
        yield problem(
          node,
          `\`!\` claims that ${quote(unit, node.expression)} is there, just after \`?.\` said that it may not be.`,
          "Drop the `?.` if it is always there; otherwise handle undefined.",
        );
  },
};

function throwingUse(unit: Unit, chain: Node): string | undefined {
  const parent = unit.tree.parent(chain);
  const key = unit.tree.key(chain);
  if (parent?.type === "MemberExpression" && key === "object" && !parent.optional) return "reading a property of";
  if (
    (parent?.type === "CallExpression" || parent?.type === "NewExpression") &&
    key === "callee" &&
    !("optional" in parent && parent.optional)
  )
    return "calling";
  if (parent?.type === "SpreadElement" && unit.tree.parent(parent)?.type !== "ObjectExpression") return "spreading";
  if (parent?.type === "VariableDeclarator" && /^(Object|Array)Pattern$/.test(parent.id.type)) return "destructuring";
  if (parent?.type === "ForOfStatement" && key === "right") return "iterating over";
  return parent?.type === "BinaryExpression" && key === "right" && /^(in|instanceof)$/.test(parent.operator)
    ? `\`${parent.operator}\` with`
    : undefined;
}

export const nullishRules: readonly Rule[] = [neverNullish, unsafeChain];
