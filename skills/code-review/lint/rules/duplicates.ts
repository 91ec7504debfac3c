import { keyName, type Node, type NodeOf } from "../ast.ts";
import { isPure, squeeze } from "../compare.ts";
import { brief, type Problem, problem, quote, type Rule } from "../rule.ts";
import { isExplained, type Unit } from "../unit.ts";

const duplicateKey: Rule = {
  name: "duplicate-key",
  severity: "error",
  summary: "The same key twice in an object literal: the earlier value is lost.",
  *check(unit) {
    for (const object of unit.tree.all("ObjectExpression")) {
      const seen = new Map<string, NodeOf<"Property">>();
      for (const property of object.properties) {
        // A spread may be there to be overridden, and what follows it starts anew.
        if (property.type !== "Property") seen.clear();
        else yield* repeated(unit, property, seen);
      }
    }
  },
};

function* repeated(unit: Unit, property: NodeOf<"Property">, seen: Map<string, NodeOf<"Property">>): Generator<Problem> {
  const name = keyName(property);
  if (name === undefined || (property.kind as string) === "get" || (property.kind as string) === "set") return;
  const first = seen.get(name);
  if (first)
    yield problem(
      property.key,
      `The key \`${name}\` is already set in line ${unit.place(first.start).line} of this object; that value is lost.`,
      "Remove one of the two, or correct its name.",
    );
  seen.set(name, property);
}

const duplicateMember: Rule = {
  name: "duplicate-class-member",
  severity: "error",
  summary: "Two members of one name in a class: the later replaces the earlier.",
  *check(unit) {
    for (const body of unit.tree.all("ClassBody")) {
      const seen = new Map<string, Node>();
      for (const member of body.body) {
        if (member.type !== "MethodDefinition" || member.value.body === null || member.kind === "constructor") continue;
        const name = keyName(member);
        const id = `${member.static ? "static " : ""}${member.kind} ${name}`;
        const first = seen.get(id);
        if (name !== undefined && first)
          yield problem(
            member.key,
            `\`${name}\` is already defined in line ${unit.place(first.start).line} of this class; that one is lost.`,
            "Remove one of the two, or correct its name.",
          );
        seen.set(id, member);
      }
    }
  },
};

const duplicateCase: Rule = {
  name: "duplicate-case",
  severity: "error",
  summary: "Two cases of a switch with the same test: the second is never reached.",
  *check(unit) {
    for (const node of unit.tree.all("SwitchStatement")) {
      const tests = node.cases.flatMap((branch) => (branch.test ? [branch.test] : []));
      yield* repeats(unit, tests, (test, line) =>
        problem(
          test,
          `This switch already has a case ${quote(unit, test)} in line ${line}; this one is never reached.`,
          "Correct the value, or merge the two cases.",
        ),
      );
    }
  },
};

const duplicateCondition: Rule = {
  name: "duplicate-condition",
  severity: "error",
  summary: "An `else if` with a test that an earlier branch already made.",
  *check(unit) {
    for (const first of unit.tree.all("IfStatement")) {
      if (unit.tree.key(first) === "alternate") continue;
      const tests = chainOf(first).map((branch) => branch.test);
      yield* repeats(unit, tests, (test, line) =>
        problem(
          test,
          `${quote(unit, test)} was already tested in line ${line}; this branch is never taken.`,
          "Correct the condition, or remove the branch.",
        ),
      );
    }
  },
};

function chainOf(first: NodeOf<"IfStatement">): NodeOf<"IfStatement">[] {
  const chain = [first];
  for (let next = first.alternate; next?.type === "IfStatement"; next = next.alternate) chain.push(next);
  return chain;
}

function* repeats(unit: Unit, tests: readonly Node[], report: (test: Node, line: number) => Problem): Generator<Problem> {
  const seen = new Map<string, Node>();
  for (const test of tests) {
    if (!isPure(test)) continue;
    const text = squeeze(unit.source(test));
    const first = seen.get(text);
    if (first) yield report(test, unit.place(first.start).line);
    else seen.set(text, test);
  }
}

const sameBranches: Rule = {
  name: "same-branches",
  severity: "warning",
  summary: "Both branches of a condition do the same.",
  *check(unit) {
    for (const node of unit.tree.all("IfStatement")) {
      const { consequent, alternate } = node;
      const isTooLittle = consequent.type === "BlockStatement" && consequent.body.length === 0;
      if (
        alternate &&
        alternate.type !== "IfStatement" &&
        unit.tree.key(node) !== "alternate" &&
        !isTooLittle &&
        isSame(unit, consequent, alternate)
      )
        yield problem(
          node.test,
          `Both branches of ${quote(unit, node.test)} do the same.`,
          "Drop the condition, or correct the branch that was meant to differ.",
        );
    }
    for (const node of unit.tree.all("ConditionalExpression"))
      if (isSame(unit, node.consequent, node.alternate))
        yield problem(
          node,
          `Both sides of this conditional are ${quote(unit, node.consequent)}.`,
          "Drop the condition, or correct the side that was meant to differ.",
        );
  },
};

function isSame(unit: Unit, a: Node, b: Node): boolean {
  return squeeze(unit.source(a)) === squeeze(unit.source(b));
}

const selfAssignment: Rule = {
  name: "self-assignment",
  severity: "error",
  summary: "A value is assigned to itself; `n = n++` is one of the ways.",
  *check(unit) {
    for (const node of unit.tree.all("AssignmentExpression")) {
      const { right } = node;
      if (node.operator === "=" && right.type === "UpdateExpression" && !right.prefix && isSame(unit, node.left, right.argument))
        yield problem(
          node,
          `${quote(unit, right)} gives the old value, and that is what is assigned: nothing changes.`,
          `Write \`${brief(unit, right)}\` alone.`,
        );
      if (node.operator === "=" && isPure(node.right) && isSame(unit, node.left, node.right) && !isSetterCall(unit, node))
        yield problem(
          node,
          `${quote(unit, node.left)} is assigned to itself.`,
          node.left.type === "Identifier"
            ? `One side was meant to be something else, perhaps \`this.${node.left.name}\`.`
            : "One side was meant to be something else.",
        );
    }
  },
};

/** Setting a property to itself runs its setter; whoever means that says so in a comment. */
function isSetterCall(unit: Unit, node: NodeOf<"AssignmentExpression">): boolean {
  return node.left.type === "MemberExpression" && isExplained(unit, node);
}

export const duplicateRules: readonly Rule[] = [
  duplicateKey,
  duplicateMember,
  duplicateCase,
  duplicateCondition,
  sameBranches,
  selfAssignment,
];
