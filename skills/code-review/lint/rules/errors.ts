import { isFunction, memberName, type Node, type NodeOf, withinFunction } from "../ast.ts";
import { brief, type Problem, problem, type Rule } from "../rule.ts";
import { hasComment, isExplained, type Unit } from "../unit.ts";

const emptyCatch: Rule = {
  name: "empty-catch",
  severity: "warning",
  summary: "An error is caught and dropped, and no comment says why.",
  *check(unit) {
    for (const clause of unit.tree.all("CatchClause"))
      if (clause.body.body.length === 0 && !isExplained(unit, clause))
        yield problem(
          clause,
          "Every error is dropped here, bugs included.",
          "Handle the one error that is expected and rethrow the others, or write a comment that says why nothing is to be done.",
        );
    for (const call of unit.tree.all("CallExpression")) {
      const handler = call.callee.type === "MemberExpression" && memberName(call.callee) === "catch" ? call.arguments[0] : undefined;
      if (isFunction(handler) && handler.body?.type === "BlockStatement" && handler.body.body.length === 0 && !isExplained(unit, handler))
        yield problem(
          handler,
          "Every rejection is dropped here, bugs included.",
          "Handle the one error that is expected and rethrow the others, or write a comment that says why nothing is to be done.",
        );
    }
  },
};

const throwLiteral: Rule = {
  name: "throw-non-error",
  severity: "warning",
  summary: "Something that is not an Error is thrown: it has no stack, and `error.message` is undefined.",
  *check(unit) {
    if (unit.isTest) return;
    for (const { argument } of unit.tree.all("ThrowStatement"))
      if (
        argument.type === "Literal" ||
        argument.type === "TemplateLiteral" ||
        argument.type === "ObjectExpression" ||
        argument.type === "ArrayExpression" ||
        isTextSum(argument)
      )
        yield problem(
          argument,
          "Whoever catches this gets no stack and no `message`.",
          argument.type === "ObjectExpression"
            ? "Throw an Error and put the data on it (a subclass, or `Object.assign(new Error(…), {…})`)."
            : `Write \`throw new Error(${brief(unit, argument).slice(0, 60)})\`.`,
        );
  },
};

function isTextSum(node: Node): boolean {
  return node.type === "BinaryExpression" && node.operator === "+";
}

const lostCause: Rule = {
  name: "lost-error-cause",
  severity: "advice",
  summary: "A new error is thrown from `catch` and the caught one is not used.",
  *check(unit) {
    for (const clause of unit.tree.all("CatchClause")) {
      const name = clause.param?.type === "Identifier" ? clause.param.name : undefined;
      const caught = name === undefined ? undefined : unit.scopes.scopeOf(clause).variables.get(name);
      if (caught === undefined || caught.name.startsWith("_") || caught.references.length > 0) continue;
      const thrown = [...withinFunction(clause.body)].find(
        (node) => node.type === "ThrowStatement" && node.argument.type === "NewExpression",
      ) as NodeOf<"ThrowStatement"> | undefined;
      if (thrown)
        yield problem(
          thrown,
          `The caught error \`${name}\` is lost: its message and stack are what tells the reason.`,
          `Pass it on: \`new Error("…", { cause: ${name} })\`.`,
        );
    }
  },
};

const uselessCatch: Rule = {
  name: "useless-catch",
  severity: "advice",
  summary: "A `catch` that only throws the same error again.",
  *check(unit): Iterable<Problem> {
    for (const clause of unit.tree.all("CatchClause")) {
      const [only] = clause.body.body;
      const isSame =
        clause.body.body.length === 1 &&
        only?.type === "ThrowStatement" &&
        only.argument.type === "Identifier" &&
        clause.param?.type === "Identifier" &&
        only.argument.name === clause.param.name;
      if (isSame && !hasComment(unit, clause.start, clause.end))
        yield problem(
          clause,
          "This `catch` does nothing but throw the error again.",
          "Remove it, or add what it should do (more context, a cleanup).",
        );
    }
  },
};

const externalText = /^(readFileSync|readFile|getItem)$/;

const uncheckedParse: Rule = {
  name: "unguarded-json-parse",
  severity: "advice",
  summary: "`JSON.parse` of text from outside, without a `try` around it: broken input ends the whole operation.",
  *check(unit) {
    if (unit.isTest) return;
    for (const call of unit.tree.all("CallExpression")) {
      const source = isJsonParse(call) ? call.arguments[0] : undefined;
      if (source && isRequestText(unit, source) && !isGuarded(unit, call))
        yield problem(
          call,
          "This text comes from outside; if it is not JSON, this throws a SyntaxError.",
          "Catch the error and answer with a message that says what was malformed; then check the shape of what was parsed.",
        );
    }
  },
};

function isJsonParse(call: NodeOf<"CallExpression">): boolean {
  return (
    call.callee.type === "MemberExpression" &&
    call.callee.object.type === "Identifier" &&
    call.callee.object.name === "JSON" &&
    memberName(call.callee) === "parse"
  );
}

/** Text that a stranger wrote: a message, a request, browser storage, the command line, the environment. */
function isRequestText(unit: Unit, node: Node): boolean {
  const text = unit.source(node);
  if (
    /^(event|message|msg|evt|e)\.data(\.toString\(\))?$|^(req|request|ctx\.request)\.(body|rawBody)$|^process\.(argv\[\d+\]|env[.[])|^localStorage\.|^sessionStorage\./.test(
      text,
    )
  )
    return true;
  return (
    node.type === "CallExpression" &&
    node.callee.type === "MemberExpression" &&
    externalText.test(memberName(node.callee) ?? "") &&
    /^(localStorage|sessionStorage)$/.test(unit.source(node.callee.object))
  );
}

function isGuarded(unit: Unit, node: Node): boolean {
  let below = node;
  for (let at = unit.tree.parent(node); at !== undefined; at = unit.tree.parent(at)) {
    if (at.type === "TryStatement" && at.block === below && at.handler !== null) return true;
    below = at;
  }
  return false;
}

export const errorRules: readonly Rule[] = [emptyCatch, throwLiteral, lostCause, uselessCatch, uncheckedParse];
