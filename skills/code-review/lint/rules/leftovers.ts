import { isFunction, memberName, type Node, type NodeOf, numberOf } from "../ast.ts";
import { type Problem, problem, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const debuggerLeft: Rule = {
  name: "debugger-statement",
  severity: "error",
  summary: "A `debugger` statement stops the program when tools are attached.",
  *check(unit): Iterable<Problem> {
    for (const node of unit.tree.all("DebuggerStatement")) yield problem(node, "A `debugger` statement was left in.", "Remove it.");
  },
};

const consoleLeft: Rule = {
  name: "console-leftover",
  severity: "advice",
  summary: "`console.log` in library code. Scripts, command lines, tests and examples are left alone.",
  *check(unit) {
    if (unit.isTest || isProgram(unit)) return;
    for (const call of unit.tree.all("CallExpression")) {
      const { callee } = call;
      const name =
        callee.type === "MemberExpression" &&
        callee.object.type === "Identifier" &&
        callee.object.name === "console" &&
        !unit.scopes.resolve(callee.object)
          ? memberName(callee)
          : undefined;
      if (/^(log|debug|dir|table|trace)$/.test(name ?? ""))
        yield problem(
          call,
          `\`console.${name}\` writes to the standard output of whatever program uses this code.`,
          "Remove it, or use the project's logger.",
        );
    }
  },
};

function isProgram(unit: Unit): boolean {
  return (
    unit.text.startsWith("#!") ||
    /(^|\/)(scripts?|bin|cli|bench(marks?)?|tools?|demos?|tasks?)\/|(^|\/)(cli|main|index\.cli|[\w.-]+\.config|gulpfile)\.[cm]?[jt]s$/.test(
      unit.path,
    )
  );
}

const focusedTest: Rule = {
  name: "focused-test",
  severity: "error",
  summary: "`test.only` keeps every other test of the file from running.",
  *check(unit) {
    if (!unit.isTest) return;
    for (const call of unit.tree.all("CallExpression")) {
      const name = unit.source(call.callee);
      if (call.arguments.some(isFunction) && /^((describe|test|it|suite|context)(\.\w+)?\.only|fdescribe|fit)$/.test(name))
        yield problem(call.callee, `\`${name}\` keeps the other tests from running.`, "Remove `.only`.");
    }
  },
};

const templateInString: Rule = {
  name: "template-in-string",
  severity: "warning",
  summary: "A placeholder for a variable in plain quotes: only back-quoted strings fill it in.",
  *check(unit) {
    if (unit.isTest) return;
    for (const node of unit.tree.all("Literal")) {
      if (typeof node.value !== "string" || !node.value.includes("${")) continue;
      const name = [...node.value.matchAll(/\$\{\s*([A-Za-z_$][\w$]*)(\.[\w$.]+)?\s*\}/g)]
        .map((match) => match[1] ?? "")
        .find((found) => isValue(unit, node, found));
      if (name !== undefined)
        yield problem(node, `\`${name}\` is not filled in here: only back-quoted strings do that.`, "Write the text in back quotes.");
    }
  },
};

function isValue(unit: Unit, node: Node, name: string): boolean {
  const variable = unit.scopes.lookup(node, name);
  return variable !== undefined && variable.kind !== "type";
}

const lostDigits: Rule = {
  name: "lost-precision",
  severity: "error",
  summary: "A number with more digits than a double can hold.",
  *check(unit) {
    for (const node of unit.tree.all("Literal")) {
      const value = numberOf(node);
      if (value !== undefined && value > Number.MAX_SAFE_INTEGER && isInexact(unit.source(node), value))
        yield problem(
          node,
          `This number becomes ${value}: a double holds about 16 digits.`,
          "Write it as a BigInt (`123n`) or as a string.",
        );
    }
  },
};

function isInexact(source: string, value: number): boolean {
  const digits = source.replaceAll("_", "");
  return /^(\d+|0[xob][\da-f]+)$/i.test(digits) && BigInt(/^0\d/.test(digits) ? value : digits) !== BigInt(value);
}

const monthOverflow: Rule = {
  name: "date-overflow",
  severity: "error",
  summary: "`new Date(2024, 12, 1)` is January 2025: months count from 0.",
  *check(unit): Iterable<Problem> {
    for (const creation of unit.tree.all("NewExpression")) {
      const month = isDate(creation) ? creation.arguments[1] : undefined;
      if (month && (numberOf(month) ?? 0) > 11)
        yield problem(
          month,
          `Month ${numberOf(month)} is one of the next year: months count from 0.`,
          'December is 11; or write the date as text, `new Date("2024-12-01")`.',
        );
    }
  },
};

function isDate(creation: NodeOf<"NewExpression">): boolean {
  return creation.callee.type === "Identifier" && creation.callee.name === "Date";
}

export const leftoverRules: readonly Rule[] = [debuggerLeft, consoleLeft, focusedTest, templateInString, lostDigits, monthOverflow];
