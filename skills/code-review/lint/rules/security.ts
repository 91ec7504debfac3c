import { keyName, memberName, type Node, type NodeOf, stringOf, unwrap } from "../ast.ts";
import { isDynamicText } from "../dynamic-text.ts";
import { importSource, initialValue, soleDefinition } from "../facts.ts";
import { problem, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const evalUse: Rule = {
  name: "code-from-text",
  severity: "error",
  summary: "`eval`, `new Function` or a timer given text: whoever supplies the text runs code.",
  *check(unit) {
    for (const node of [...unit.tree.all("CallExpression"), ...unit.tree.all("NewExpression")]) {
      const name = node.callee.type === "Identifier" && !unit.scopes.resolve(node.callee) ? node.callee.name : undefined;
      const [first] = node.arguments;
      if ((name === "eval" && node.type === "CallExpression" && first) || (name === "Function" && first))
        yield problem(
          node,
          `\`${name}\` runs text as code, with all the rights of this program.`,
          "Use a table of functions, `JSON.parse`, or a real parser for what the text may say.",
        );
      else if (/^(setTimeout|setInterval)$/.test(name ?? "") && first && (stringOf(first) !== undefined || isDynamicText(unit, first)))
        yield problem(node, `\`${name}\` is given text, which it runs as code.`, "Pass a function.");
    }
  },
};

const shells = /^(exec|execSync)$/;
const spawns = /^(spawn|spawnSync|execFile|execFileSync)$/;

const shellInjection: Rule = {
  name: "shell-injection",
  severity: "error",
  summary: "A shell command put together from values: a value with `;` or `$(…)` in it becomes a command.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const name = childProcessFunction(unit, call);
      const [command] = call.arguments;
      if (name === undefined || command === undefined) continue;
      const isShell = shells.test(name) || (spawns.test(name) && usesShell(call));
      if (isShell && isDynamicText(unit, command))
        yield problem(
          command,
          `\`${name}\` hands this text to a shell; a value in it can add commands of its own.`,
          "Use `execFile(program, [argument, …])` without `shell`: arguments then stay arguments.",
        );
    }
  },
};

/** The name in node:child_process of what is called here, however it was imported. */
function childProcessFunction(unit: Unit, call: NodeOf<"CallExpression">): string | undefined {
  const callee = unwrap(call.callee);
  const root = callee.type === "MemberExpression" ? callee.object : callee;
  const name = callee.type === "MemberExpression" ? memberName(callee) : undefined;
  const definition = soleDefinition(unit, root);
  if (definition?.type === "ImportSpecifier")
    return isChildProcess(importSource(unit, definition)) && definition.imported.type === "Identifier"
      ? definition.imported.name
      : undefined;
  if (definition?.type === "ImportNamespaceSpecifier" || definition?.type === "ImportDefaultSpecifier")
    return isChildProcess(importSource(unit, definition)) ? name : undefined;
  if (definition?.type !== "VariableDeclarator" || !isRequireOfChildProcess(definition.init))
    return isRequireOfChildProcess(root) ? name : undefined;
  return name ?? (root.type === "Identifier" ? root.name : undefined);
}

function isChildProcess(source: string): boolean {
  return /^(node:)?child_process$/.test(source);
}

function isRequireOfChildProcess(node: Node | null): boolean {
  return (
    node?.type === "CallExpression" &&
    node.callee.type === "Identifier" &&
    node.callee.name === "require" &&
    isChildProcess(stringOf(node.arguments[0] ?? node) ?? "")
  );
}

function usesShell(call: NodeOf<"CallExpression">): boolean {
  return call.arguments.some(
    (argument) =>
      argument.type === "ObjectExpression" &&
      argument.properties.some(
        (p) => p.type === "Property" && keyName(p) === "shell" && p.value.type === "Literal" && Boolean(p.value.value),
      ),
  );
}

const sqlStart = /^\s*(select\s.+\sfrom|insert\s+into|update\s.+\sset|delete\s+from|drop\s+table|alter\s+table)\b/is;

const sqlInjection: Rule = {
  name: "sql-injection",
  severity: "error",
  summary: "An SQL statement put together from values.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const name = call.callee.type === "MemberExpression" ? (memberName(call.callee) ?? "") : "";
      const text = call.arguments[0];
      if (
        text &&
        /^(query|execute|exec|raw|prepare|run|all|get|each|\$queryRawUnsafe|\$executeRawUnsafe|unsafe)$/.test(name) &&
        sqlStart.test(leadingText(unit, text)) &&
        isDynamicText(unit, text)
      )
        yield problem(
          text,
          "A value in this statement can change what the statement does.",
          "Use placeholders (`?` or `$1`) and pass the values separately.",
        );
    }
  },
};

/** The text of a template or sum with its changing parts shown as `?`. */
function leadingText(unit: Unit, node: Node): string {
  const value = initialValue(unit, node);
  if (value.type === "TemplateLiteral") return value.quasis.map((part) => part.value.raw).join(" ? ");
  if (value.type === "BinaryExpression") return `${leadingText(unit, value.left)} ${leadingText(unit, value.right)}`;
  return stringOf(value) ?? "?";
}

export const securityRules: readonly Rule[] = [evalUse, shellInjection, sqlInjection];
