import { isRegExp, memberName, type Node, type NodeOf } from "../ast.ts";
import { soleDefinition } from "../facts.ts";
import { findExponentialLoop } from "../regex/ambiguity.ts";
import { parsePattern } from "../regex/pattern.ts";
import { brief, type Problem, problem, type Rule } from "../rule.ts";
import { ancestorInFunction, enclosingFunction, type Unit } from "../unit.ts";

type RegExpNode = NodeOf<"Literal"> & { readonly regex: { readonly pattern: string; readonly flags: string } };

/** As many as one file can be judged by in reasonable time. */
const maxPerFile = 500;

function regularExpressions(unit: Unit): readonly RegExpNode[] {
  return (unit.tree.all("Literal").filter(isRegExp) as RegExpNode[]).slice(0, maxPerFile);
}

const backtracking: Rule = {
  name: "regex-backtracking",
  severity: "error",
  summary: "A regular expression such as `^(a+)+$` that can take exponential time on text that almost matches.",
  *check(unit) {
    for (const node of regularExpressions(unit)) {
      const pattern = parsePattern(node.regex.pattern, node.regex.flags);
      const loop = pattern && findExponentialLoop(pattern);
      if (loop)
        yield problem(
          node,
          `The part \`${node.regex.pattern.slice(loop.start, loop.end)}\` can match the same text in more than one way, so a text that fails at its end takes exponential time.`,
          "Let each turn of the repetition begin with something that cannot also continue the one before; or use one repetition instead of two.",
        );
    }
  },
};

const letterRange: Rule = {
  name: "regex-letter-range",
  severity: "error",
  summary: "`[A-z]` also holds the six characters between Z and a: `[ \\ ] ^ _` and the back quote.",
  *check(unit) {
    for (const node of regularExpressions(unit))
      if (/\[[^\]]*A-z/.test(node.regex.pattern))
        yield problem(node, "`A-z` also matches `[`, `\\`, `]`, `^`, `_` and the back quote.", "Write `A-Za-z`.");
  },
};

const emptyClass: Rule = {
  name: "regex-empty-class",
  severity: "error",
  summary: "`[]` in a regular expression matches nothing.",
  *check(unit) {
    for (const node of regularExpressions(unit))
      if (/^([^\\[]|\\.|\[([^\\\]]|\\.)+\])*\[\]/.test(node.regex.pattern))
        yield problem(
          node,
          "`[]` matches no character at all, so this can never match here.",
          "Put the characters into the class, or escape the bracket: `\\[`.",
        );
  },
};

const statefulTest: Rule = {
  name: "regex-stateful-test",
  severity: "warning",
  summary: "`test` on a shared regular expression with the g or y flag goes on where the last match ended, so every other answer is wrong.",
  *check(unit): Iterable<Problem> {
    if (/\.lastIndex\b/.test(unit.text)) return;
    for (const call of unit.tree.all("CallExpression")) {
      const target = call.callee.type === "MemberExpression" && memberName(call.callee) === "test" ? call.callee.object : undefined;
      const definition = target && soleDefinition(unit, target);
      if (!target || definition?.type !== "VariableDeclarator" || !definition.init || !isRegExp(definition.init)) continue;
      if (/[gy]/.test(definition.init.regex.flags) && isShared(unit, definition, call))
        yield problem(
          call,
          `\`${brief(unit, target)}\` has the flag ${definition.init.regex.flags.match(/[gy]/)?.[0]}, so \`test\` begins where its last match ended.`,
          "Remove the flag; `test` does not need it.",
        );
    }
  },
};

/** Made outside the function, or outside the loop, in which it is tested. */
function isShared(unit: Unit, definition: Node, call: Node): boolean {
  if (enclosingFunction(unit, definition) !== enclosingFunction(unit, call)) return true;
  const loop = ancestorInFunction(unit, call, (node) => /^(For|ForIn|ForOf|While|DoWhile)Statement$/.test(node.type));
  return (
    loop !== undefined &&
    definition.start < loop.start &&
    ancestorInFunction(unit, call, (node) => node.type === "WhileStatement" && node.test === call) === undefined
  );
}

export const regexRules: readonly Rule[] = [backtracking, letterRange, emptyClass, statefulTest];
