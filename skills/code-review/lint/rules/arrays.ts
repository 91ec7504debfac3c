import { type FunctionNode, isFunction, memberName, type Node, type NodeOf, numberOf, unwrap } from "../ast.ts";
import { annotationOf, initialValue, isArray, isArrayType } from "../facts.ts";
import { Flow, neverReturns, returnsOf } from "../flow.ts";
import { brief, type Problem, problem, quote, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const mustReturn = /^(map|flatMap|filter|some|every|find|findIndex|findLast|findLastIndex|reduce|reduceRight|sort|toSorted)$/;

const callbackReturn: Rule = {
  name: "callback-return",
  severity: "error",
  summary: "A callback of `map`, `filter`, `reduce`, `sort` … that returns nothing.",
  *check(unit) {
    const flow = new Flow(unit, neverReturns(unit));
    for (const call of unit.tree.all("CallExpression")) {
      const name = call.callee.type === "MemberExpression" ? memberName(call.callee) : undefined;
      const callback = call.arguments[0];
      if (name === undefined || !mustReturn.test(name) || !isFunction(callback) || !lacksReturn(flow, callback, name)) continue;
      yield problem(
        callback,
        `This callback of \`${name}\` can end without returning a value, so \`${name}\` gets undefined.`,
        unit.tree.parent(call)?.type === "ExpressionStatement"
          ? "Use `for…of` when nothing is made of the result; otherwise return a value on every path."
          : "Return a value on every path (a body in braces needs `return`).",
      );
    }
  },
};

/** Tests (`filter`, `find`) may fall off the end to say no; then only a callback that never returns anything is at fault. */
function lacksReturn(flow: Flow, callback: FunctionNode, name: string): boolean {
  const { body } = callback;
  if (body?.type !== "BlockStatement" || callback.async || callback.generator || !flow.completes(body)) return false;
  const returnsValue = returnsOf(body).some((statement) => statement.argument !== null);
  return !returnsValue || /^(reduce|reduceRight|sort|toSorted)$/.test(name);
}

const arrayDelete: Rule = {
  name: "array-delete",
  severity: "error",
  summary: "`delete list[i]` leaves a hole and the length as it was.",
  *check(unit) {
    for (const node of unit.tree.all("UnaryExpression")) {
      const target = node.operator === "delete" ? unwrap(node.argument) : undefined;
      if (target?.type === "MemberExpression" && target.computed && isArray(unit, target.object))
        yield problem(
          node,
          `This leaves a hole in ${quote(unit, target.object)}; its length stays.`,
          `Write \`${brief(unit, target.object)}.splice(${brief(unit, target.property)}, 1)\`.`,
        );
    }
  },
};

const forInArray: Rule = {
  name: "for-in-array",
  severity: "warning",
  summary: "`for…in` over an array gives the indexes as text, and inherited names too.",
  *check(unit) {
    for (const loop of unit.tree.all("ForInStatement"))
      if (isArray(unit, loop.right))
        yield problem(
          loop.right,
          "`for…in` gives an array's indexes as strings.",
          `Write \`for (const item of ${brief(unit, loop.right)})\`, or \`.entries()\` when the index is needed.`,
        );
  },
};

const numberSort: Rule = {
  name: "text-sort-of-numbers",
  severity: "error",
  summary: "`sort()` without a comparator orders numbers as text: 10 before 9.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const { callee } = call;
      if (
        callee.type === "MemberExpression" &&
        call.arguments.length === 0 &&
        /^(sort|toSorted)$/.test(memberName(callee) ?? "") &&
        holdsNumbers(unit, callee.object)
      )
        yield problem(
          call,
          `${quote(unit, callee.object)} holds numbers, and \`sort()\` compares them as text.`,
          "Write `.sort((a, b) => a - b)`.",
        );
    }
  },
};

function holdsNumbers(unit: Unit, node: Node): boolean {
  const type = annotationOf(unit, node);
  if (type) return isArrayType(type) && /^(readonly )?(number\[\]|(Readonly)?Array<number>)$/.test(unit.source(type));
  const value = initialValue(unit, node);
  return (
    value.type === "ArrayExpression" &&
    value.elements.length > 0 &&
    value.elements.every((element) => element !== null && numberOf(element) !== undefined)
  );
}

const sharedFill: Rule = {
  name: "shared-fill",
  severity: "error",
  summary: "`fill([])` puts the same array (or object) into every place; `new Array(n).map(…)` visits nothing.",
  *check(unit): Iterable<Problem> {
    for (const call of unit.tree.all("CallExpression")) {
      const { callee } = call;
      const name = callee.type === "MemberExpression" ? memberName(callee) : undefined;
      const [value] = call.arguments;
      if (callee.type !== "MemberExpression" || name === undefined || !isSizedArray(callee.object)) continue;
      if (name === "fill" && value && /^(ArrayExpression|ObjectExpression|NewExpression)$/.test(value.type))
        yield problem(
          call,
          `Every place holds the same ${quote(unit, value)}: a change in one shows in all.`,
          `Write \`Array.from({ length: n }, () => ${brief(unit, value)})\`.`,
        );
      else if (/^(map|forEach|filter|reduce)$/.test(name))
        yield problem(
          call,
          `A new array of a given length has only holes, and \`${name}\` skips holes.`,
          "Write `Array.from({ length: n }, (_, index) => …)`.",
        );
    }
  },
};

function isSizedArray(node: Node): boolean {
  const maker = unwrap(node);
  const isMaker =
    (maker.type === "NewExpression" || maker.type === "CallExpression") &&
    maker.callee.type === "Identifier" &&
    maker.callee.name === "Array";
  return isMaker && maker.arguments.length === 1 && (maker.arguments[0] as Node).type !== "SpreadElement";
}

const parseIntUse: Rule = {
  name: "parse-int-callback",
  severity: "error",
  summary: "`map(parseInt)` passes the index as the radix.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const name = call.callee.type === "MemberExpression" ? memberName(call.callee) : undefined;
      const [first] = call.arguments;
      if (name === "map" && first?.type === "Identifier" && first.name === "parseInt")
        yield problem(
          first,
          "`map` passes the index as the second argument, which `parseInt` takes as the radix: the second item gives NaN.",
          "Write `.map(Number)`, or `.map((text) => Number.parseInt(text, 10))`.",
        );
    }
  },
};

const radix: Rule = {
  name: "parse-int-radix",
  severity: "advice",
  summary: "`parseInt` without a radix reads `0x1f` as 31.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression"))
      if (isParseInt(unit, call) && call.arguments.length === 1)
        yield problem(
          call,
          "Without a radix, text that begins with 0x is read as hexadecimal.",
          `Write \`${brief(unit, call.callee)}(${brief(unit, call.arguments[0] as Node)}, 10)\`.`,
        );
  },
};

function isParseInt(unit: Unit, call: NodeOf<"CallExpression">): boolean {
  const { callee } = call;
  if (callee.type === "Identifier") return callee.name === "parseInt" && !unit.scopes.resolve(callee);
  return callee.type === "MemberExpression" && memberName(callee) === "parseInt" && unit.source(callee.object) === "Number";
}

export const arrayRules: readonly Rule[] = [callbackReturn, arrayDelete, forInArray, numberSort, sharedFill, parseIntUse, radix];
