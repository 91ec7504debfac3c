import { isFunction, memberName, type Node, type NodeOf, stringOf, unwrap } from "../ast.ts";
import { brief, problem, quote, type Rule } from "../rule.ts";
import { parenthesesAround, type Unit } from "../unit.ts";

/** Every expression that decides something, `!`, `&&` and `||` seen through. */
function* conditions(unit: Unit): Generator<Node> {
  for (const node of unit.tree.nodes) {
    const test = testOf(node);
    if (test) yield* parts(test);
  }
}

function testOf(node: Node): Node | null {
  const isTest =
    node.type === "IfStatement" ||
    node.type === "ConditionalExpression" ||
    node.type === "WhileStatement" ||
    node.type === "DoWhileStatement" ||
    node.type === "ForStatement";
  return isTest ? node.test : null;
}

function* parts(test: Node): Generator<Node> {
  const open = [test];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const inner = unwrap(node);
    yield inner;
    if (inner.type === "UnaryExpression" && inner.operator === "!") open.push(inner.argument);
    if (inner.type === "LogicalExpression" && inner.operator !== "??") open.push(inner.right, inner.left);
  }
}

const assignment: Rule = {
  name: "assignment-in-condition",
  severity: "error",
  summary: "`=` where a comparison was meant. A second pair of parentheses says that it is on purpose.",
  *check(unit) {
    for (const node of unit.tree.nodes) {
      const test = testOf(node);
      if (test?.type !== "AssignmentExpression" || test.operator !== "=") continue;
      const own = node.type === "ConditionalExpression" || node.type === "ForStatement" ? 0 : 1;
      if (parenthesesAround(unit, test) <= own && !isIdiom(unit, node, test))
        yield problem(
          test,
          `${quote(unit, test)} assigns; it does not compare.`,
          `Write \`===\`, or \`((${brief(unit, test)}))\` if the assignment is meant.`,
        );
    }
  },
};

/** `while (line = next())`, and `if (match = exec())` where `match` was declared empty to take just that. */
function isIdiom(unit: Unit, holder: Node, test: NodeOf<"AssignmentExpression">): boolean {
  if (!/^(Call|Await|Member|Chain|Yield)Expression$/.test(test.right.type)) return false;
  if (holder.type !== "IfStatement" && holder.type !== "ConditionalExpression") return true;
  const definition = test.left.type === "Identifier" ? unit.scopes.resolve(test.left)?.definitions[0] : undefined;
  return definition?.type === "VariableDeclarator" && definition.init === null;
}

const constantCondition: Rule = {
  name: "constant-condition",
  severity: "error",
  summary: 'A condition that is always true or always false, as in `x === "a" || "b"`.',
  *check(unit) {
    for (const node of unit.tree.nodes) {
      const test = testOf(node);
      if (!test) continue;
      // `while (true)` and `for (;;)` are loops that mean to go on; `if (false)` switches code off on purpose.
      const isSwitch = unwrap(test).type === "Literal" && !isRegExpLiteral(unwrap(test));
      for (const part of isSwitch ? [] : parts(test)) {
        const value = constantOf(part);
        if (value !== undefined) yield problem(part, `${quote(unit, part)} is always ${value} as a condition.`, remedy(unit, part));
      }
    }
  },
};

function isRegExpLiteral(node: Node): boolean {
  return node.type === "Literal" && "regex" in node;
}

/** Whether this is true or false whatever happens; undefined when it depends. */
function constantOf(node: Node): boolean | undefined {
  // A plain `true` or `false` is a switch somebody set.
  if (node.type === "Literal") return typeof node.value === "boolean" ? undefined : isRegExpLiteral(node) || Boolean(node.value);
  if (
    node.type === "ArrayExpression" ||
    node.type === "ObjectExpression" ||
    node.type === "NewExpression" ||
    node.type === "ClassExpression" ||
    isFunction(node)
  )
    return true;
  if (node.type === "TemplateLiteral") return node.quasis.some((part) => part.value.raw !== "") || undefined;
  if (node.type === "BinaryExpression" && node.operator === "+")
    return [node.left, node.right].some((side) => (stringOf(side) ?? "") !== "") || undefined;
  return node.type === "UnaryExpression" && node.operator === "typeof" ? true : undefined;
}

function remedy(unit: Unit, part: Node): string {
  const parent = unit.tree.parent(part);
  const left = parent?.type === "LogicalExpression" && parent.right === part ? unwrap(parent.left) : undefined;
  if (left?.type === "BinaryExpression" && /^[!=]==?$/.test(left.operator))
    return `Repeat the comparison: \`${brief(unit, left)} ${(parent as NodeOf<"LogicalExpression">).operator} ${brief(unit, left.left)} ${left.operator} ${brief(unit, part)}\`.`;
  if (part.type === "BinaryExpression") return "`+` binds tighter than `?:`: put the conditional in parentheses.";
  return "Test what was meant, or remove the condition.";
}

const indexAsCondition: Rule = {
  name: "index-as-condition",
  severity: "error",
  summary: "`if (text.indexOf(x))` is true when x is absent (-1) and false when it comes first (0).",
  *check(unit) {
    for (const part of conditions(unit)) {
      const name = part.type === "CallExpression" && part.callee.type === "MemberExpression" ? memberName(part.callee) : undefined;
      if (
        part.type === "CallExpression" &&
        name !== undefined &&
        /^(indexOf|lastIndexOf|findIndex|findLastIndex|localeCompare)$/.test(name)
      )
        yield problem(
          part,
          `\`${name}\` gives a number; -1 counts as true and 0 as false.`,
          name === "localeCompare" ? "Compare the number with 0." : `Write \`${brief(unit, part)} !== -1\`, or use \`includes\`/\`some\`.`,
        );
    }
  },
};

const bitwise: Rule = {
  name: "bitwise-for-logical",
  severity: "warning",
  summary: "`&` or `|` between two comparisons, where `&&` or `||` is usual.",
  *check(unit) {
    for (const node of unit.tree.all("BinaryExpression")) {
      if ((node.operator !== "&" && node.operator !== "|") || ![node.left, node.right].every(isComparison)) continue;
      yield problem(
        node,
        `\`${node.operator}\` works on bits, gives a number and always evaluates both sides.`,
        `Write \`${node.operator}${node.operator}\`.`,
      );
    }
  },
};

function isComparison(node: Node): boolean {
  return node.type === "BinaryExpression" && /^([!=]==?|[<>]=?|in|instanceof)$/.test(node.operator);
}

export const conditionRules: readonly Rule[] = [assignment, constantCondition, indexAsCondition, bitwise];
