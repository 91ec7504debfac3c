import { isFunction, keyName, memberName, type Node, type NodeOf, stringOf, unwrap, withinFunction } from "../ast.ts";
import { brief, type Problem, problem, quote, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const offByOne: Rule = {
  name: "off-by-one",
  severity: "error",
  summary: "`i <= list.length` reads one past the end.",
  *check(unit) {
    for (const loop of unit.tree.all("ForStatement")) {
      const { test } = loop;
      if (
        test?.type !== "BinaryExpression" ||
        test.operator !== "<=" ||
        test.left.type !== "Identifier" ||
        memberName(test.right) !== "length"
      )
        continue;
      const list = unit.source((test.right as NodeOf<"MemberExpression">).object);
      const counter = test.left.name;
      const isRead = [...withinFunction(loop.body)].some(
        (node) => node.type === "MemberExpression" && node.computed && unit.source(node) === `${list}[${counter}]`,
      );
      // Whoever means the extra turn says what is to be done in it.
      const isMeant = [`${list}.length`, "undefined", "break", "??", "?."].some((sign) => unit.source(loop.body).includes(sign));
      if (isRead && !isMeant)
        yield problem(
          test,
          `In the last turn \`${counter}\` equals the length, and \`${list}[${counter}]\` is past the end.`,
          `Write \`${counter} < ${list}.length\`.`,
        );
    }
  },
};

const endlessRecursion: Rule = {
  name: "endless-recursion",
  severity: "error",
  summary: "A getter that reads itself, a setter that sets itself, or a function that does nothing but call itself.",
  *check(unit): Iterable<Problem> {
    for (const node of [...unit.tree.all("MethodDefinition"), ...unit.tree.all("Property")]) {
      const name = isFunction(node.value) ? keyName(node) : undefined;
      const self = name === undefined ? undefined : accessOfSelf(node, `this.${name}`, unit);
      if (self)
        yield problem(
          self,
          `This ${node.kind === "get" ? "getter reads" : "setter sets"} itself, again and again, until the stack is full.`,
          `Keep the value in another field, such as \`this.#${name}\`.`,
        );
    }
    for (const fn of unit.tree.all("FunctionDeclaration")) {
      const [only] = fn.body?.body ?? [];
      const call = only && (fn.body?.body.length ?? 0) === 1 ? resultOf(only) : undefined;
      if (
        call?.type === "CallExpression" &&
        call.callee.type === "Identifier" &&
        fn.id &&
        unit.scopes.resolve(call.callee) === unit.scopes.resolve(fn.id)
      )
        yield problem(call, `\`${fn.id.name}\` does nothing but call itself.`, "Add the case in which it ends, or call what was meant.");
    }
  },
};

/** The first statement of a getter that returns, or of a setter that assigns, the property itself. */
function accessOfSelf(node: NodeOf<"MethodDefinition"> | NodeOf<"Property">, self: string, unit: Unit): Node | undefined {
  const first = isFunction(node.value) && node.value.body?.type === "BlockStatement" ? node.value.body.body[0] : undefined;
  const value = first && resultOf(first);
  if (node.kind === "get") return first?.type === "ReturnStatement" && value && unit.source(value) === self ? value : undefined;
  return node.kind === "set" && value?.type === "AssignmentExpression" && unit.source(value.left) === self ? value.left : undefined;
}

function resultOf(statement: Node): Node | undefined {
  if (statement.type === "ReturnStatement") return statement.argument ? unwrap(statement.argument) : undefined;
  return statement.type === "ExpressionStatement" ? unwrap(statement.expression) : undefined;
}

const changesNothing =
  /^(trim|trimStart|trimEnd|toUpperCase|toLowerCase|padStart|padEnd|toFixed|concat|slice|substring|toSorted|toReversed|toSpliced|filter|flatMap)$/;

const unusedResult: Rule = {
  name: "unused-result",
  severity: "error",
  summary: "`text.trim();` changes nothing: strings and the copying array methods give a new value.",
  *check(unit) {
    for (const statement of unit.tree.all("ExpressionStatement")) {
      const call = unwrap(statement.expression);
      const name = call.type === "CallExpression" && call.callee.type === "MemberExpression" ? memberName(call.callee) : undefined;
      if (call.type !== "CallExpression" || name === undefined || !(changesNothing.test(name) || isTextReplace(name, call))) continue;
      yield problem(
        call,
        `\`${name}\` gives a new value and leaves the old one as it is; here the new one is dropped.`,
        "Assign or return the result.",
      );
    }
  },
};

/** `location.replace(url)` is no such thing; a pattern and a replacement are. */
function isTextReplace(name: string, call: NodeOf<"CallExpression">): boolean {
  const [pattern, replacement] = call.arguments;
  if (!/^replace(All)?$/.test(name) || !pattern || !replacement) return false;
  return (
    (pattern.type === "Literal" && "regex" in pattern) ||
    (stringOf(pattern) !== undefined && (stringOf(replacement) !== undefined || isFunction(replacement)))
  );
}

const wrapper: Rule = {
  name: "wrapper-object",
  severity: "error",
  summary: "`new Boolean(false)` is an object, so it counts as true; likewise `new String` and `new Number` equal nothing.",
  *check(unit) {
    for (const node of unit.tree.all("NewExpression"))
      if (node.callee.type === "Identifier" && /^(Boolean|Number|String)$/.test(node.callee.name) && !unit.scopes.resolve(node.callee))
        yield problem(
          node,
          `${quote(unit, node)} makes an object, which is always true and equals no other value.`,
          `Leave out \`new\`: \`${brief(unit, node).replace(/^new\s+/, "")}\`.`,
        );
  },
};

export const logicRules: readonly Rule[] = [offByOne, endlessRecursion, unusedResult, wrapper];
