import { type Node, withinFunction } from "../ast.ts";
import { Flow } from "../flow.ts";
import { loopOf } from "../loop-head.ts";
import { problem, quote, type Rule } from "../rule.ts";
import type { Variable } from "../scope.ts";
import { ancestorInFunction, type Unit } from "../unit.ts";

const runsOnce: Rule = {
  name: "loop-runs-once",
  severity: "error",
  summary: "A counting loop whose body always leaves it in the first turn.",
  *check(unit) {
    const flow = new Flow(unit);
    for (const loop of unit.tree.all("ForStatement")) {
      if (!loop.update || !loop.test || flow.completes(loop.body)) continue;
      if (![...withinFunction(loop.body)].some((node) => node.type === "ContinueStatement"))
        yield problem(
          loop,
          "This loop never comes to its second turn: every path through its body leaves it.",
          "Move the final `return`/`break` behind the loop, or write an `if` instead of the loop.",
        );
    }
  },
};

const direction: Rule = {
  name: "loop-direction",
  severity: "error",
  summary: "A counter that moves away from its limit.",
  *check(unit) {
    for (const loop of unit.tree.all("ForStatement")) {
      if (loop.test?.type !== "BinaryExpression" || loop.test.left.type !== "Identifier" || !loop.update) continue;
      const step = stepOf(loop.update, loop.test.left.name);
      const wanted = /^<=?$/.test(loop.test.operator) ? 1 : /^>=?$/.test(loop.test.operator) ? -1 : 0;
      if (step * wanted < 0)
        yield problem(
          loop.update,
          `${quote(unit, loop.update)} moves the counter away from ${quote(unit, loop.test)}, so the loop does not end as meant.`,
          `Turn the update around: \`${loop.test.left.name}${wanted > 0 ? "++" : "--"}\`.`,
        );
    }
  },
};

function stepOf(update: Node, name: string): number {
  if (update.type === "UpdateExpression") return isNamed(update.argument, name) ? (update.operator === "++" ? 1 : -1) : 0;
  if (
    update.type !== "AssignmentExpression" ||
    !isNamed(update.left, name) ||
    update.right.type !== "Literal" ||
    typeof update.right.value !== "number"
  )
    return 0;
  return update.operator === "+=" ? Math.sign(update.right.value) : update.operator === "-=" ? -Math.sign(update.right.value) : 0;
}

function isNamed(node: Node, name: string): boolean {
  return node.type === "Identifier" && node.name === name;
}

const shadowedCounter: Rule = {
  name: "shadowed-loop-variable",
  severity: "warning",
  summary: "A counting loop within a counting loop, with a counter of the same name.",
  *check(unit) {
    for (const variable of unit.scopes.variables) {
      const loop = loopOf(unit, variable.definitions[0]);
      const outer = loop && outerLoopVariable(unit, loop, variable.name);
      if (loop?.type === "ForStatement" && outer)
        yield problem(
          variable.declarations[0] ?? loop,
          `The loop around this one has a counter \`${variable.name}\` of its own.`,
          "Give the inner loop's counter another name.",
        );
      for (const again of variable.kind === "var" ? variable.definitions.slice(1) : [])
        if (loop && isNestedLoop(unit, again, loop))
          yield problem(
            again,
            `This inner loop reuses \`var ${variable.name}\` of the loop around it and disturbs its count.`,
            `Declare both with \`let\` and give this one another name.`,
          );
    }
  },
};

function outerLoopVariable(unit: Unit, loop: Node, name: string): Variable | undefined {
  const found = ancestorInFunction(
    unit,
    loop,
    (node, below) => node.type === "ForStatement" && node.body === below && isHeadVariable(unit, node, name),
  );
  return found && unit.scopes.lookup(found, name);
}

function isHeadVariable(unit: Unit, loop: Node, name: string): boolean {
  return unit.scopes.scopeOf(loop).node === loop && unit.scopes.scopeOf(loop).variables.has(name);
}

function isNestedLoop(unit: Unit, definition: Node, outer: Node): boolean {
  const loop = loopOf(unit, definition);
  return loop !== undefined && ancestorInFunction(unit, loop, (node) => node === outer) !== undefined;
}

export const counterRules: readonly Rule[] = [runsOnce, direction, shadowedCounter];
