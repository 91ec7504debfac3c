import { type Node, type NodeOf, unwrap, withinFunction } from "./ast.ts";
import { enclosingFunction, type Unit } from "./unit.ts";

/** Whether execution can go on after a statement. `never` tells which calls do not come back. */
export class Flow {
  readonly #unit: Unit;
  readonly #never: (call: NodeOf<"CallExpression">) => boolean;
  readonly #known = new Map<Node, boolean>();

  constructor(unit: Unit, never: (call: NodeOf<"CallExpression">) => boolean = () => false) {
    this.#unit = unit;
    this.#never = never;
  }

  completes(statement: Node): boolean {
    const known = this.#known.get(statement) ?? this.#decide(statement);
    this.#known.set(statement, known);
    return known;
  }

  #decide(statement: Node): boolean {
    switch (statement.type) {
      case "ReturnStatement":
      case "ThrowStatement":
      case "BreakStatement":
      case "ContinueStatement":
        return false;
      case "BlockStatement":
      case "StaticBlock":
        return this.allComplete(statement.body);
      case "ExpressionStatement":
        return !this.#isEndless(statement.expression);
      case "IfStatement":
        return !statement.alternate || this.completes(statement.consequent) || this.completes(statement.alternate);
      case "LabeledStatement":
        return this.completes(statement.body) || this.#breaksTo(statement.body, statement.label.name);
      case "TryStatement":
        return this.#tryCompletes(statement);
      case "SwitchStatement":
        return this.#switchCompletes(statement);
      case "WhileStatement":
      case "DoWhileStatement":
      case "ForStatement":
        return this.#loopCompletes(statement);
      default:
        return true;
    }
  }

  allComplete(statements: readonly Node[]): boolean {
    return statements.every((statement) => this.completes(statement));
  }

  #isEndless(expression: Node): boolean {
    const inner = unwrap(expression);
    const call = unwrap(inner.type === "AwaitExpression" ? inner.argument : inner);
    return call.type === "CallExpression" && this.#never(call);
  }

  #tryCompletes(statement: NodeOf<"TryStatement">): boolean {
    if (statement.finalizer && !this.completes(statement.finalizer)) return false;
    return this.completes(statement.block) || (statement.handler !== null && this.completes(statement.handler.body));
  }

  #switchCompletes(statement: NodeOf<"SwitchStatement">): boolean {
    const last = statement.cases.at(-1);
    if (last === undefined || !statement.cases.some((branch) => branch.test === null)) return true;
    return (
      this.allComplete(last.consequent) || statement.cases.some((branch) => branch.consequent.some((s) => this.#breaksTo(s, undefined)))
    );
  }

  #loopCompletes(loop: NodeOf<"WhileStatement" | "DoWhileStatement" | "ForStatement">): boolean {
    if (this.#breaksTo(loop.body, undefined)) return true;
    if (isAlways(loop.test)) return false;
    return loop.type !== "DoWhileStatement" || this.completes(loop.body) || continues(loop.body);
  }

  /** A break in here that leaves the statement around: one without a label that no inner loop takes, or one with its label. */
  #breaksTo(body: Node, label: string | undefined): boolean {
    for (const node of withinFunction(body)) {
      if (node.type !== "BreakStatement") continue;
      if (node.label ? node.label.name === label : label === undefined && !this.#isTakenInside(node, body)) return true;
      // A labelled break also leaves every loop on its way; the label's own statement decides where it lands.
    }
    return false;
  }

  #isTakenInside(node: Node, body: Node): boolean {
    for (let at = node; at !== body; at = this.#unit.tree.parent(at) ?? body) if (takesBreak(at)) return true;
    return takesBreak(body);
  }
}

function takesBreak(node: Node): boolean {
  return /^(For|ForIn|ForOf|While|DoWhile|Switch)Statement$/.test(node.type);
}

function continues(body: Node): boolean {
  for (const node of withinFunction(body)) if (node.type === "ContinueStatement") return true;
  return false;
}

/** A loop test that never ends the loop: absent or a literal that is always true. */
function isAlways(test: Node | null): boolean {
  return test === null || (test.type === "Literal" && Boolean(test.value));
}

const neverNames = /^(process\.exit|process\.abort|assertNever|assertUnreachable|unreachable|exhaustive\w*|fail|panic|bail|die|abort)$/;

/** A call that does not come back, by its well-known name or because the function says `never`. */
export function neverReturns(unit: Unit): (call: NodeOf<"CallExpression">) => boolean {
  return (call) => {
    const callee = unwrap(call.callee);
    if (neverNames.test(unit.source(callee))) return true;
    const definition = callee.type === "Identifier" ? unit.scopes.resolve(callee)?.definitions[0] : undefined;
    return definition !== undefined && "returnType" in definition && definition.returnType?.typeAnnotation.type === "TSNeverKeyword";
  };
}

/** The statements that share a list with this one, itself included; undefined when it stands alone. */
export function statementList(unit: Unit, statement: Node): readonly Node[] | undefined {
  const parent = unit.tree.parent(statement);
  if (parent === undefined) return undefined;
  if (parent.type === "BlockStatement" || parent.type === "Program" || parent.type === "StaticBlock" || parent.type === "TSModuleBlock")
    return parent.body;
  return parent.type === "SwitchCase" ? parent.consequent : undefined;
}

/** The `return` statements of a function, not those of functions within. */
export function returnsOf(body: Node): readonly NodeOf<"ReturnStatement">[] {
  return [...withinFunction(body)].filter((node) => node.type === "ReturnStatement");
}

/** A try around this node, in the same function, whose rejection handling a returned promise would miss. */
export function guardingTry(unit: Unit, node: Node): NodeOf<"TryStatement"> | undefined {
  const limit = enclosingFunction(unit, node);
  let below = node;
  for (let at = unit.tree.parent(node); at !== undefined && at !== limit; at = unit.tree.parent(at)) {
    if (at.type === "TryStatement" && (at.block === below || (at.finalizer !== null && at.handler === below))) return at;
    below = at;
  }
  return undefined;
}
