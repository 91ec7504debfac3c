import { isFunction, memberName, type Node, type NodeOf, unwrap } from "../ast.ts";
import { initialValue, isPromiseCall, soleDefinition } from "../facts.ts";
import { returnsOf } from "../flow.ts";
import { type Problem, problem, quote, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

/** A call that gives a promise, or a `const` that holds one. Who makes a promise may hang more on it. */
function isPromiseValue(unit: Unit, node: Node): boolean {
  const value = initialValue(unit, node);
  return value.type !== "NewExpression" && isPromiseCall(unit, value);
}

const asValue: Rule = {
  name: "promise-as-value",
  severity: "error",
  summary: "A promise is used as if it were the value it will have: an `await` is missing.",
  *check(unit) {
    for (const node of unit.tree.all("MemberExpression")) {
      const name = memberName(node);
      const isOther = name !== undefined && !/^(then|catch|finally|constructor|toString)$/.test(name);
      if (isOther && unit.tree.key(node) !== "left" && isPromiseValue(unit, node.object))
        yield missingAwait(unit, node.object, `\`.${name}\` of it is undefined`);
    }
    for (const node of unit.tree.all("TemplateLiteral"))
      for (const part of node.expressions)
        if (!isTagged(unit, node) && isPromiseValue(unit, part)) yield missingAwait(unit, part, 'as text it is "[object Promise]"');
    for (const node of unit.tree.all("BinaryExpression"))
      for (const side of [node.left, node.right])
        if (isValueOperator(node) && isPromiseValue(unit, side))
          yield missingAwait(unit, side, `\`${node.operator}\` sees the promise itself`);
    for (const loop of unit.tree.all("ForOfStatement"))
      if (!loop.await && isPromiseValue(unit, loop.right)) yield missingAwait(unit, loop.right, "it cannot be iterated over");
  },
};

function missingAwait(unit: Unit, node: Node, consequence: string): Problem {
  return problem(node, `${quote(unit, node)} is a promise here; ${consequence}.`, "Await it first.");
}

function isTagged(unit: Unit, node: Node): boolean {
  return unit.tree.parent(node)?.type === "TaggedTemplateExpression";
}

/** Two promises may well be compared; a promise and a literal may not. */
function isValueOperator({ operator, left, right }: NodeOf<"BinaryExpression">): boolean {
  if (/^(instanceof|in|[!=]==?)$/.test(operator))
    return /^[!=]==?$/.test(operator) && [left, right].some((side) => side.type === "Literal" && side.value !== null);
  return true;
}

const neverSettles: Rule = {
  name: "promise-never-settles",
  severity: "error",
  summary: "A `new Promise` whose executor calls neither resolve nor reject.",
  *check(unit) {
    for (const creation of unit.tree.all("NewExpression")) {
      const executor = creation.arguments[0];
      if (
        creation.callee.type !== "Identifier" ||
        creation.callee.name !== "Promise" ||
        !isFunction(executor) ||
        executor.params.length === 0
      )
        continue;
      const settlers = executor.params.map((param) =>
        param.type === "Identifier" ? unit.scopes.scopeOf(executor).variables.get(param.name) : undefined,
      );
      if (settlers.every((settler) => settler?.references.length === 0))
        yield problem(
          creation,
          "Nothing in this executor settles the promise, so whoever awaits it waits for ever.",
          "Call `resolve` when it is done and `reject` when it failed.",
        );
    }
  },
};

const takesCallback = /^(setTimeout|setInterval|setImmediate|queueMicrotask|requestAnimationFrame|addEventListener|then|on|once)$/;

const calledCallback: Rule = {
  name: "called-callback",
  severity: "error",
  summary: "`setTimeout(run(), 100)` calls `run` at once and passes what it returns, which is nothing.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const name = call.callee.type === "Identifier" ? call.callee.name : memberName(call.callee);
      const given = takesCallback.test(name ?? "") ? call.arguments.find((argument) => givesNothing(unit, argument)) : undefined;
      if (given)
        yield problem(
          given,
          `${quote(unit, given)} runs now, and \`${name}\` gets undefined instead of a function.`,
          `Pass a function: \`() => ${unit.source(given).slice(0, 40)}\`.`,
        );
    }
  },
};

/** A call of a function of this file that never returns a value. */
function givesNothing(unit: Unit, node: Node): boolean {
  const callee = node.type === "CallExpression" ? unwrap(node.callee) : undefined;
  const definition = callee?.type === "Identifier" ? soleDefinition(unit, callee) : undefined;
  const fn = definition?.type === "VariableDeclarator" ? definition.init : definition;
  if (!isFunction(fn) || fn.async || fn.generator || fn.body?.type !== "BlockStatement") return false;
  return returnsOf(fn.body).every((statement) => statement.argument === null);
}

const ignoredError: Rule = {
  name: "ignored-callback-error",
  severity: "warning",
  summary: "A callback `(err, data) => …` that uses the data and never looks at the error.",
  *check(unit) {
    for (const fn of [...unit.tree.all("ArrowFunctionExpression"), ...unit.tree.all("FunctionExpression")]) {
      const [first, second] = fn.params;
      if (!second || first?.type !== "Identifier" || !/^(err|error)$/.test(first.name) || unit.tree.key(fn) !== "arguments") continue;
      const variable = unit.scopes.scopeOf(fn).variables.get(first.name);
      if (variable?.references.length === 0 && fn.body?.type === "BlockStatement" && fn.body.body.length > 0)
        yield problem(
          first,
          `\`${first.name}\` is never looked at: when the operation fails, this goes on without its data.`,
          `Begin with \`if (${first.name}) …\`, or use the promise form of the function.`,
        );
    }
  },
};

export const promiseValueRules: readonly Rule[] = [asValue, neverSettles, calledCallback, ignoredError];
