import { isFunction, type Node, type NodeOf, withinFunction } from "../ast.ts";
import { Flow, neverReturns, statementList } from "../flow.ts";
import { type Problem, problem, type Rule } from "../rule.ts";
import { ancestorInFunction, hasComment, type Unit } from "../unit.ts";

const unreachable: Rule = {
  name: "unreachable-code",
  severity: "error",
  summary: "Code that nothing can reach: it stands after return, throw, break, continue or an endless loop.",
  *check(unit) {
    const flow = new Flow(unit);
    for (const first of unit.tree.nodes) {
      const list = statementList(unit, first);
      if (list?.[0] !== first) continue;
      const end = list.findIndex((statement) => !flow.completes(statement));
      const dead = end === -1 ? undefined : list.slice(end + 1).find(hasEffect);
      if (dead)
        yield problem(
          dead,
          `Nothing reaches this: line ${unit.place(list[end]?.start ?? 0).line} always leaves first.`,
          "Remove it, or move it before the statement that leaves.",
        );
    }
  },
};

/** Hoisted functions, types and a `break` kept for form are no loss when they cannot be reached. */
function hasEffect(statement: Node): boolean {
  if (/^(FunctionDeclaration|EmptyStatement|BreakStatement|TS\w+Declaration|TSDeclareFunction|Import\w*|Export\w*)$/.test(statement.type))
    return false;
  return (
    statement.type !== "VariableDeclaration" ||
    statement.kind !== "var" ||
    statement.declarations.some((declarator) => declarator.init !== null)
  );
}

const fallthrough: Rule = {
  name: "switch-fallthrough",
  severity: "warning",
  summary: "A case that runs on into the next. A comment `falls through` says that it is meant.",
  *check(unit) {
    const flow = new Flow(unit, neverReturns(unit));
    for (const node of unit.tree.all("SwitchStatement"))
      for (const [at, branch] of node.cases.entries()) {
        const next = node.cases[at + 1];
        if (!next || branch.consequent.length === 0 || !flow.allComplete(branch.consequent) || isMarked(unit, branch, next)) continue;
        yield problem(
          next,
          `The case in line ${unit.place(branch.start).line} runs on into this one.`,
          "End it with `break` or `return`; if it is meant, write `// falls through` before the next case.",
        );
      }
  },
};

function isMarked(unit: Unit, branch: NodeOf<"SwitchCase">, next: Node): boolean {
  return hasComment(unit, branch.consequent[0]?.start ?? branch.start, next.start, /falls?[\s-]?through|fallthrough|no\s?break/i);
}

const unsafeFinally: Rule = {
  name: "unsafe-finally",
  severity: "error",
  summary: "Leaving `finally` by return, throw, break or continue throws away the error or result on its way.",
  *check(unit) {
    for (const statement of unit.tree.all("TryStatement")) {
      if (!statement.finalizer) continue;
      for (const node of withinFunction(statement.finalizer))
        if (leaves(unit, node, statement.finalizer))
          yield problem(
            node,
            "This leaves `finally` and with it drops the error or the value that was on its way out.",
            "Move it behind the try statement.",
          );
    }
  },
};

function leaves(unit: Unit, node: Node, finalizer: Node): boolean {
  if (node.type === "ReturnStatement") return true;
  if (node.type === "ThrowStatement")
    return (
      ancestorInFunction(unit, node, (above) => above === finalizer || (above.type === "TryStatement" && above.handler !== null)) ===
      finalizer
    );
  if (node.type !== "BreakStatement" && node.type !== "ContinueStatement") return false;
  const { label } = node;
  const target = ancestorInFunction(
    unit,
    node,
    (above) => above === finalizer || (label ? above.type === "LabeledStatement" && above.label.name === label.name : takes(node, above)),
  );
  return target === finalizer;
}

function takes(jump: Node, above: Node): boolean {
  return (
    /^(For|ForIn|ForOf|While|DoWhile)Statement$/.test(above.type) || (jump.type === "BreakStatement" && above.type === "SwitchStatement")
  );
}

const accessorReturn: Rule = {
  name: "accessor-return",
  severity: "error",
  summary: "A getter that gives nothing, or gives something only on some paths.",
  *check(unit) {
    const flow = new Flow(unit, neverReturns(unit));
    for (const node of [...unit.tree.all("MethodDefinition"), ...unit.tree.all("Property")]) {
      const body = node.kind === "get" && isFunction(node.value) ? node.value.body : null;
      if (body?.type === "BlockStatement" && flow.completes(body))
        yield problem(node.key, "This getter can end without a `return`, so it gives undefined.", "Return a value on every path.");
    }
  },
};

const constructorSuper: Rule = {
  name: "missing-super",
  severity: "error",
  summary: "A constructor of a derived class that never calls `super(…)` throws as soon as it is used.",
  *check(unit) {
    for (const node of [...unit.tree.all("ClassDeclaration"), ...unit.tree.all("ClassExpression")]) {
      if (!node.superClass || (node.superClass.type === "Literal" && node.superClass.value === null)) continue;
      const maker = node.body.body.find((member) => member.type === "MethodDefinition" && member.kind === "constructor");
      if (maker?.type === "MethodDefinition" && maker.value.body && !callsSuper(maker.value.body))
        yield problem(
          maker.key,
          "A derived class must call `super(…)` in its constructor before it ends.",
          "Add `super(…)` as the first statement.",
        );
    }
  },
};

function callsSuper(body: Node): boolean {
  const flowsOut = [...withinFunction(body)];
  // Arrow functions share `super`; a returned object or a throw makes the call unnecessary.
  return flowsOut.some(
    (node) =>
      isSuperCall(node) ||
      node.type === "ArrowFunctionExpression" ||
      node.type === "ThrowStatement" ||
      (node.type === "ReturnStatement" && node.argument !== null),
  );
}

function isSuperCall(node: Node): boolean {
  return node.type === "CallExpression" && node.callee.type === "Super";
}

const noEffect: Rule = {
  name: "no-effect",
  severity: "error",
  summary: "A statement that computes something and drops it: `a === b;`, `done;`.",
  *check(unit): Iterable<Problem> {
    for (const statement of unit.tree.all("ExpressionStatement")) {
      const { expression } = statement;
      if ("directive" in statement && statement.directive) continue;
      if (expression.type === "BinaryExpression")
        yield problem(
          expression,
          "The result of this expression is not used.",
          /^===?$/.test(expression.operator)
            ? "Was `=` meant? Otherwise use the result or remove the line."
            : "Use the result, or remove the line.",
        );
      else if (expression.type === "Identifier" && isFunction(functionOf(unit, expression)))
        yield problem(
          expression,
          `\`${expression.name}\` is a function that is named here but not called.`,
          `Write \`${expression.name}()\`.`,
        );
      else if (expression.type === "Identifier" && !unit.isTest && unit.scopes.resolve(expression))
        yield problem(expression, "This statement does nothing.", "Use the value, or remove the line.");
      else if (
        expression.type === "NewExpression" &&
        expression.callee.type === "Identifier" &&
        /^(\w*Error|\w*Exception)$/.test(expression.callee.name)
      )
        yield problem(expression, "This error is made but not thrown.", "Write `throw` before it.");
    }
  },
};

function functionOf(unit: Unit, node: Node): Node | undefined {
  return unit.scopes.resolve(node)?.definitions[0];
}

export const controlFlowRules: readonly Rule[] = [unreachable, fallthrough, unsafeFinally, accessorReturn, constructorSuper, noEffect];
