import { isFunction, type Node, type NodeOf } from "../ast.ts";
import { type Problem, problem, type Rule } from "../rule.ts";
import type { Reference, Variable } from "../scope.ts";
import { isDeclarationFile, type Unit } from "../unit.ts";

const unusedVariable: Rule = {
  name: "unused-variable",
  severity: "warning",
  summary: "A local variable, function or class that nothing reads. A name that begins with `_` says that it is meant.",
  *check(unit) {
    if (isDeclarationFile(unit)) return;
    for (const variable of unit.scopes.variables) {
      if (!/^(var|let|const|function|class)$/.test(variable.kind) || isUsed(unit, variable)) continue;
      const isWritten = variable.references.some((reference) => reference.isWrite);
      yield problem(
        variable.declarations[0] as Node,
        `\`${variable.name}\` is ${isWritten ? "assigned but never read" : "never used"}.`,
        "Remove it, use it, or begin its name with `_`.",
      );
    }
  },
};

const unusedImport: Rule = {
  name: "unused-import",
  severity: "warning",
  summary: "An import that nothing in the file uses.",
  *check(unit) {
    if (isDeclarationFile(unit)) return;
    const hasJsx = unit.tree.all("JSXElement").length + unit.tree.all("JSXFragment").length > 0;
    for (const variable of unit.scopes.variables) {
      const definition = variable.definitions[0];
      if (variable.kind !== "import" || variable.references.length > 0 || (hasJsx && isJsxFactory(unit, variable.name))) continue;
      if (definition && definition.type !== "TSImportEqualsDeclaration" && !variable.name.startsWith("_"))
        yield problem(definition, `\`${variable.name}\` is imported and never used.`, "Remove it from the import.");
    }
  },
};

function isJsxFactory(unit: Unit, name: string): boolean {
  return (
    name === "React" || unit.comments.some((comment) => new RegExp(`@jsx(Frag)?\\s+${name.replace(/\W/g, "\\$&")}\\b`).test(comment.value))
  );
}

function isUsed(unit: Unit, variable: Variable): boolean {
  if (variable.name.startsWith("_") || variable.references.some((reference) => reference.isRead && !isWithinOwn(variable, reference)))
    return true;
  if (variable.definitions.some((definition) => isExempt(unit, variable, definition))) return true;
  // The top level of a script is shared with other scripts; CommonJS is told by what it calls.
  return (
    variable.scope.parent === undefined &&
    !unit.isModule &&
    !unit.scopes.unresolved.some((r) => /^(require|module|exports)$/.test(r.node.name))
  );
}

/** A function that only calls itself, a class that only names itself. */
function isWithinOwn(variable: Variable, reference: Reference): boolean {
  return variable.definitions.some(
    (own) => (isFunction(own) || own.type === "ClassDeclaration") && reference.node.start >= own.start && reference.node.end <= own.end,
  );
}

function isExempt(unit: Unit, variable: Variable, definition: Node): boolean {
  if (definition.type === "FunctionExpression" || definition.type === "ClassExpression") return true;
  if (definition.type === "ClassDeclaration" && definition.decorators.length > 0) return true;
  for (let at: Node | undefined = definition; at !== undefined; at = unit.tree.parent(at)) {
    if (
      at.type === "ExportNamedDeclaration" ||
      at.type === "ExportDefaultDeclaration" ||
      (at.type === "TSModuleDeclaration" && at.kind === "global")
    )
      return true;
    if ("declare" in at && at.declare === true) return true;
    if (at !== definition && (isFunction(at) || at.type === "BlockStatement")) break;
  }
  return definition.type === "VariableDeclarator" && isByProduct(unit, definition, variable);
}

/** `const { a, ...rest }` takes `a` out of `rest`; in `[a, b]` and in a loop's head a name is there for its place. */
function isByProduct(unit: Unit, definition: NodeOf<"VariableDeclarator">, variable: Variable): boolean {
  const { id } = definition;
  if (
    id.type === "ObjectPattern" &&
    id.properties.some((property) => property.type === "RestElement") &&
    unit.source(id.properties.at(-1) as Node) !== `...${variable.name}`
  )
    return true;
  const declaration = unit.tree.parent(definition);
  const loop = declaration && unit.tree.parent(declaration);
  if (declaration && /^For(Of|In)Statement$/.test(loop?.type ?? "") && unit.tree.key(declaration) === "left") return true;
  return (
    id.type === "ArrayPattern" &&
    unit.tree.parent(variable.declarations[0] as Node) === id &&
    id.elements.at(-1) !== variable.declarations[0]
  );
}

const earlyUse: Rule = {
  name: "use-before-declaration",
  severity: "error",
  summary: "A `let`, `const` or class is used before its line has run: a ReferenceError.",
  *check(unit) {
    for (const variable of unit.scopes.variables) {
      const definition = variable.definitions[0];
      if (!/^(let|const|class)$/.test(variable.kind) || !definition || isAmbient(unit, definition)) continue;
      const early = variable.references.find((reference) => isTooEarly(unit, reference, definition));
      if (early)
        yield problem(
          early.node,
          `\`${variable.name}\` is declared in line ${unit.place(definition.start).line}, after this use of it: this throws a ReferenceError.`,
          "Move the declaration before its first use.",
        );
    }
  },
};

function isTooEarly(unit: Unit, reference: Reference, definition: Node): boolean {
  if (reference.isType) return false;
  const start = definition.type === "VariableDeclarator" && definition.init ? definition.init.end : definition.start;
  const isInOwnInit = definition.type === "VariableDeclarator" && reference.node.start > definition.id.end && reference.node.end <= start;
  const isBefore = reference.node.start < definition.start || (isInOwnInit && !isLoopHead(unit, definition));
  return isBefore && runsWith(unit, reference.node) === runsWith(unit, definition);
}

function isLoopHead(unit: Unit, definition: Node): boolean {
  const declaration = unit.tree.parent(definition);
  return /^For(Of|In)Statement$/.test((declaration && unit.tree.parent(declaration)?.type) ?? "");
}

/** What runs this code: the function or field initialiser around it. Code of another one may run later. */
function runsWith(unit: Unit, node: Node): Node | undefined {
  let below = node;
  for (let at = unit.tree.parent(node); at !== undefined; at = unit.tree.parent(at)) {
    if (isFunction(at) || at.type === "Program" || at.type === "TSModuleBlock") return at;
    if (at.type === "PropertyDefinition" && at.value === below && !at.static) return at;
    below = at;
  }
  return undefined;
}

function isAmbient(unit: Unit, node: Node): boolean {
  for (let at: Node | undefined = node; at !== undefined; at = unit.tree.parent(at))
    if ("declare" in at && at.declare === true) return true;
  return isDeclarationFile(unit);
}

const constantWrite: Rule = {
  name: "constant-write",
  severity: "error",
  summary: "An assignment to a `const`, an import or a class: a TypeError when it runs.",
  *check(unit): Iterable<Problem> {
    for (const variable of unit.scopes.variables) {
      if (!/^(const|using|await using|import|enum)$/.test(variable.kind)) continue;
      for (const reference of variable.references)
        if (reference.isWrite)
          yield problem(
            reference.node,
            `\`${variable.name}\` is ${variable.kind === "import" ? "an import" : `declared with ${variable.kind}`} and cannot be assigned to.`,
            variable.kind === "const" ? "Declare it with `let`, or use a new name." : "Use a variable of your own.",
          );
    }
  },
};

export const variableRules: readonly Rule[] = [unusedVariable, unusedImport, earlyUse, constantWrite];
