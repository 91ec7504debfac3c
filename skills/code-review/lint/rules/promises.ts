import { isFunction, memberName, type Node, type NodeOf, unwrap } from "../ast.ts";
import { isPromiseCall } from "../facts.ts";
import { guardingTry } from "../flow.ts";
import { brief, type Problem, problem, quote, type Rule } from "../rule.ts";
import { enclosingFunction, type Unit } from "../unit.ts";

const floatingPromise: Rule = {
  name: "floating-promise",
  severity: "error",
  summary: "A promise that nothing waits for: its failure is unhandled and what follows runs too early.",
  *check(unit) {
    for (const statement of unit.tree.all("ExpressionStatement")) {
      const expression = unwrap(statement.expression);
      if (isUnhandledChain(unit, expression))
        yield problem(expression, `The promise of ${quote(unit, expression)} has no rejection handler and nothing waits for it.`, waitFix);
      else if (isPromiseCall(unit, expression))
        yield problem(expression, `${quote(unit, expression)} starts a promise that nothing waits for.`, waitFix);
      else if (isMatcherChain(expression))
        yield problem(
          expression,
          "This assertion on a promise is not awaited: the test ends before it is checked.",
          `Write \`await ${brief(unit, expression)}\`.`,
        );
    }
  },
};

const waitFix = "Write `await` before it, return it, or end it with `.catch(…)`; `void` before it says that it is meant.";

/** A chain that ends without a rejection handler and began with `.then`, so it is a promise. */
function isUnhandledChain(unit: Unit, expression: Node): boolean {
  let hasThen = false;
  let at = expression;
  while (at.type === "CallExpression" && at.callee.type === "MemberExpression") {
    const name = memberName(at.callee);
    if (name === "catch" || (name === "then" && at.arguments.length > 1)) return false;
    if (name === "then" && at.arguments.length === 1 && mayBeHandler(unit, at.arguments[0])) hasThen = true;
    else if (name !== "finally") break;
    at = unwrap(at.callee.object);
  }
  return hasThen || (at !== expression && isPromiseCall(unit, at));
}

function mayBeHandler(unit: Unit, argument: Node | undefined): boolean {
  return argument !== undefined && (isFunction(argument) || isFunction(unit.scopes.resolve(argument)?.definitions[0]));
}

/** `expect(x).rejects.toThrow()` and `expect(x).resolves.…`: assertions that are promises. */
function isMatcherChain(expression: Node): boolean {
  let sawPromise = false;
  let at = expression;
  if (at.type !== "CallExpression") return false;
  while (at.type === "CallExpression" || at.type === "MemberExpression") {
    if (at.type === "CallExpression" && at.callee.type === "Identifier") return sawPromise && at.callee.name === "expect";
    if (at.type === "MemberExpression" && /^(rejects|resolves)$/.test(memberName(at) ?? "")) sawPromise = true;
    at = unwrap(at.type === "CallExpression" ? at.callee : at.object);
  }
  return false;
}

const promiseInCondition: Rule = {
  name: "promise-in-condition",
  severity: "error",
  summary: "A condition that tests a promise instead of its value is always true.",
  *check(unit) {
    for (const node of unit.tree.nodes) {
      const test = conditionOf(node);
      const inner = test?.type === "UnaryExpression" && test.operator === "!" ? unwrap(test.argument) : test;
      if (inner && isPromiseCall(unit, inner))
        yield problem(
          inner,
          `${quote(unit, inner)} is a promise here, so this test is always ${inner === test ? "true" : "false"}.`,
          `Write \`await ${brief(unit, inner)}\`.`,
        );
    }
  },
};

function conditionOf(node: Node): Node | undefined {
  if (node.type === "IfStatement" || node.type === "ConditionalExpression" || node.type === "WhileStatement") return unwrap(node.test);
  return node.type === "LogicalExpression" && node.operator === "&&" ? unwrap(node.left) : undefined;
}

const asyncExecutor: Rule = {
  name: "async-promise-executor",
  severity: "error",
  summary: "`new Promise(async …)`: what the executor throws is lost and the promise never settles.",
  *check(unit) {
    for (const creation of unit.tree.all("NewExpression")) {
      const executor = creation.arguments[0];
      if (creation.callee.type === "Identifier" && creation.callee.name === "Promise" && isFunction(executor) && executor.async)
        yield problem(
          executor,
          "An async executor: an error thrown in it rejects a promise nobody sees, and this one stays pending.",
          "Drop `new Promise` and write an async function that awaits and returns; or make the executor synchronous and call `reject` itself.",
        );
    }
  },
};

const ignoresPromises = /^(forEach|filter|some|every|find|findIndex|findLast|findLastIndex|sort|toSorted)$/;

const asyncCallback: Rule = {
  name: "async-array-callback",
  severity: "error",
  summary: "An async callback for an array method that does not wait for promises.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const name = call.callee.type === "MemberExpression" ? memberName(call.callee) : undefined;
      const callback = call.arguments[0];
      if (name === undefined || !ignoresPromises.test(name) || !isFunction(callback) || !callback.async || isAwaited(unit, call)) continue;
      if (name === "forEach")
        yield problem(
          callback,
          "`forEach` does not wait for an async callback, and its errors are unhandled.",
          "Use `for (const item of items) await …`, or `await Promise.all(items.map(async …))`.",
        );
      else
        yield problem(
          callback,
          `\`${name}\` gets a promise from an async callback, and a promise is always true.`,
          `Await the answers first (\`await Promise.all(items.map(…))\`), then call \`${name}\` with a synchronous test of them.`,
        );
    }
  },
};

/** Streams and other async collections have methods of these names that return a promise. */
function isAwaited(unit: Unit, call: NodeOf<"CallExpression">): boolean {
  const parent = unit.tree.parent(call);
  const above = parent?.type === "ChainExpression" ? unit.tree.parent(parent) : parent;
  return (
    above?.type === "AwaitExpression" || (above?.type === "MemberExpression" && /^(then|catch|finally)$/.test(memberName(above) ?? ""))
  );
}

const promiseAll: Rule = {
  name: "promise-all-misuse",
  severity: "error",
  summary: "`Promise.all(a, b)` sees only `a`; `Promise.all([await a(), await b()])` runs one after the other.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const name = promiseStatic(call);
      if (name === undefined) continue;
      const [first, second] = call.arguments;
      if (second)
        yield problem(
          call,
          `\`Promise.${name}\` takes one iterable; the other arguments are ignored.`,
          `Put them in an array: \`Promise.${name}([…])\`.`,
        );
      else if (first?.type === "ArrayExpression" && first.elements.filter((element) => element?.type === "AwaitExpression").length > 1)
        yield problem(
          call,
          `Each \`await\` inside this array waits before the next call starts, so \`Promise.${name}\` has nothing left to do.`,
          "Remove the `await`s inside the array.",
        );
    }
  },
};

function promiseStatic(call: NodeOf<"CallExpression">): string | undefined {
  if (call.callee.type !== "MemberExpression" || call.callee.object.type !== "Identifier" || call.callee.object.name !== "Promise")
    return undefined;
  const name = memberName(call.callee) ?? "";
  return /^(all|allSettled|any|race)$/.test(name) ? name : undefined;
}

const unawaitedReturn: Rule = {
  name: "unawaited-return-in-try",
  severity: "warning",
  summary: "`return promise` inside `try` leaves before the promise settles: its rejection skips `catch`, and `finally` runs too early.",
  *check(unit): Iterable<Problem> {
    for (const statement of unit.tree.all("ReturnStatement")) {
      if (!statement.argument || !isPromiseCall(unit, statement.argument)) continue;
      const guard = enclosingFunction(unit, statement)?.async ? guardingTry(unit, statement) : undefined;
      if (guard)
        yield problem(
          statement,
          `${quote(unit, statement.argument)} is returned unsettled, so ${guard.handler && !guard.finalizer ? "this `catch` never sees its rejection" : "`finally` runs before it is done"}.`,
          `Write \`return await ${brief(unit, statement.argument)}\` .`,
        );
    }
  },
};

export const promiseRules: readonly Rule[] = [
  floatingPromise,
  promiseInCondition,
  asyncExecutor,
  asyncCallback,
  promiseAll,
  unawaitedReturn,
];
