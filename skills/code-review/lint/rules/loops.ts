import { isFunction, memberName, type Node, type NodeOf, unwrap, withinFunction } from "../ast.ts";
import { loopOf } from "../loop-head.ts";
import { problem, type Rule } from "../rule.ts";
import type { Reference } from "../scope.ts";
import type { Unit } from "../unit.ts";

const awaitInLoop: Rule = {
  name: "await-in-loop",
  severity: "advice",
  summary: "A loop that gathers results one await at a time could run them together.",
  *check(unit) {
    for (const loop of unit.tree.all("ForOfStatement")) {
      if (loop.await || loop.body.type !== "BlockStatement" || !isGathering(unit, loop)) continue;
      const awaited = [...withinFunction(loop.body)].find((node) => node.type === "AwaitExpression");
      if (awaited)
        yield problem(
          awaited,
          "Each turn of this loop waits for the one before, although no turn uses another's result.",
          "`const results = await Promise.all(items.map(async (item) => …))`, in batches when there are many.",
        );
    }
  },
};

/** A body that only computes from the loop's own names and puts the result away: nothing in it depends on an earlier turn. */
function isGathering(unit: Unit, loop: NodeOf<"ForOfStatement">): boolean {
  const body = (loop.body as NodeOf<"BlockStatement">).body;
  const last = body.at(-1);
  if (last?.type !== "ExpressionStatement") return false;
  const sink = sinkOf(last.expression);
  if (sink === undefined || !body.slice(0, -1).every((s) => s.type === "VariableDeclaration" && s.kind === "const")) return false;
  const awaits = [...withinFunction(loop.body)].filter((node) => node.type === "AwaitExpression");
  const variable = unit.scopes.resolve(sink);
  if (variable === undefined || awaits.length === 0) return false;
  const inside = variable.references.filter((r) => r.node.start >= loop.body.start && r.node.end <= loop.body.end);
  return (
    inside.length === 1 &&
    !isInside(variable.definitions[0], loop.body) &&
    awaits.every((node) => isIndependentCall(unit, node.argument, loop))
  );
}

/** `results.push(…)`, `map.set(k, …)` or `object[key] = …` as the last statement: the collection's name. */
function sinkOf(expression: Node): Node | undefined {
  if (
    expression.type === "AssignmentExpression" &&
    expression.operator === "=" &&
    expression.left.type === "MemberExpression" &&
    expression.left.computed
  )
    return expression.left.object;
  if (expression.type !== "CallExpression" || expression.callee.type !== "MemberExpression") return undefined;
  return /^(push|set)$/.test(memberName(expression.callee) ?? "") ? expression.callee.object : undefined;
}

/** A call given the loop's own item. One without it (`await queue.next()`) may well depend on the order. */
function isIndependentCall(unit: Unit, node: Node, loop: NodeOf<"ForOfStatement">): boolean {
  const call = unwrap(node);
  if (call.type !== "CallExpression") return false;
  return call.arguments.some((argument) =>
    [...withinFunction(argument)].some((n) => isInside(unit.scopes.resolve(n)?.definitions[0], loop)),
  );
}

function isInside(node: Node | undefined, outer: Node): boolean {
  return node !== undefined && node.start >= outer.start && node.end <= outer.end;
}

const laterCallers =
  /^(setTimeout|setInterval|setImmediate|queueMicrotask|requestAnimationFrame|nextTick|then|catch|finally|on|once|addEventListener|addListener|subscribe|push)$/;

const closureOverVar: Rule = {
  name: "var-in-closure",
  severity: "error",
  summary: "A function that runs later sees the last value of a loop's `var`.",
  *check(unit) {
    for (const variable of unit.scopes.variables) {
      const loop = variable.kind === "var" ? loopOf(unit, variable.definitions[0]) : undefined;
      const captured = loop && variable.references.find((reference) => isCapturedLater(unit, reference, loop));
      if (captured)
        yield problem(
          captured.node,
          `By the time this function runs, \`${variable.name}\` has its value from the end of the loop.`,
          `Declare \`${variable.name}\` with \`let\`: each turn then has its own.`,
        );
    }
  },
};

function isCapturedLater(unit: Unit, reference: Reference, loop: Node): boolean {
  if (!isInside(reference.node, loop)) return false;
  let at: Node | undefined = reference.node;
  while (at !== undefined && at !== loop && !isFunction(at)) at = unit.tree.parent(at);
  const call = at && unit.tree.parent(at);
  if (!isFunction(at) || call?.type !== "CallExpression" || unit.tree.key(at) !== "arguments") return false;
  const name = call.callee.type === "Identifier" ? call.callee.name : memberName(call.callee);
  return laterCallers.test(name ?? "");
}

export const loopRules: readonly Rule[] = [awaitInLoop, closureOverVar];
