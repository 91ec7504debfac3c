import type { Node } from "../ast.ts";
import { nearestWord } from "../compare.ts";
import { problem, type Rule } from "../rule.ts";
import type { Variable } from "../scope.ts";
import { isDeclarationFile, type Unit } from "../unit.ts";

/** Names that are there without a declaration: those of this runtime, of browsers, of test runners. */
const known = new Set([
  ...Object.getOwnPropertyNames(globalThis),
  ..."require module exports arguments window document self location history name event status parent frames screen origin closed length opener top".split(
    " ",
  ),
  ..."alert confirm prompt print open close stop focus blur scroll navigator localStorage sessionStorage Image Audio Option Element Node Range Text Comment".split(
    " ",
  ),
  ..."HTMLElement XMLHttpRequest WebSocket FormData FileReader Worker SharedWorker caches indexedDB getComputedStyle matchMedia".split(" "),
  ..."requestAnimationFrame cancelAnimationFrame postMessage importScripts Deno Bun jQuery chrome browser".split(" "),
  ..."describe suite test it expect jest vi before after beforeEach afterEach beforeAll afterAll".split(" "),
]);

const unknownName: Rule = {
  name: "unknown-name",
  severity: "error",
  summary: "A name that nothing declares and that is one slip away from one that is declared; or an assignment to such a name in a module.",
  *check(unit) {
    if (!unit.isModule || isDeclarationFile(unit) || unit.tree.all("WithStatement").length > 0) return;
    for (const { node, isType, isWrite, isRead } of unit.scopes.unresolved) {
      if (isType || known.has(node.name) || isTypeofOperand(unit, node)) continue;
      const near = node.name.length < 4 ? undefined : nearestWord(node.name, visibleNames(unit, node), 1);
      // `Worker` beside a variable `worker` is a type or global of that name, not a slip.
      if (near && near.slice(1) !== node.name.slice(1))
        yield problem(node, `Nothing declares \`${node.name}\`: using it throws a ReferenceError.`, `Did you mean \`${near}\`?`);
      else if (isWrite && !isRead && !/^on[a-z]+$/.test(node.name))
        yield problem(
          node,
          `\`${node.name}\` is assigned but never declared; in a module this throws a ReferenceError.`,
          `Declare it: \`let ${node.name} = …\`.`,
        );
    }
  },
};

function isTypeofOperand(unit: Unit, node: Node): boolean {
  const parent = unit.tree.parent(node);
  return parent?.type === "UnaryExpression" && parent.operator === "typeof";
}

function* visibleNames(unit: Unit, node: Node): Generator<string> {
  for (let scope = unit.scopes.scopeOf(node) as Variable["scope"] | undefined; scope; scope = scope.parent) yield* scope.variables.keys();
}

export const unknownNameRules: readonly Rule[] = [unknownName];
