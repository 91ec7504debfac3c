import { extname } from "node:path";
import { type Node, type ParserOptions, parseSync, visitorKeys } from "oxc-parser";
import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { looksDeep } from "../../io/module-loader/guards.ts";
import { createTextReport } from "../skills/text-report.ts";

export type SyntaxNode = Node;
export type NodeOf<K extends Node["type"]> = Node extends infer N ? (N extends Node ? (K extends N["type"] ? N : never) : never) : never;
export type FunctionNode = NodeOf<"ArrowFunctionExpression"> | NodeOf<"FunctionDeclaration">;

/** A parsed module with access to its nodes and their parents. */
export interface ModuleSource {
  readonly file: string;
  /** All nodes in source order, parents before children. */
  readonly nodes: readonly SyntaxNode[];
  parentOf(node: SyntaxNode): SyntaxNode | undefined;
  positionOf(offset: number): Position;
  /** The top-level variables and functions of the module, by name. */
  readonly topLevel: ReadonlyMap<string, SyntaxNode>;
  /** Whether a comment `skillhost-ignore CODE` on this line or the one before suppresses this advice. */
  ignores(code: string, line: number): boolean;
}

const languages: Readonly<Record<string, ParserOptions["lang"]>> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  ".js": "jsx",
  ".mjs": "jsx",
  ".cjs": "jsx",
  ".jsx": "jsx",
};

/**
 * Parses a module. Undefined: it does not parse, is not a module, or nests so deeply that parsing could end the process. The
 * loader reports these, so advice does not.
 */
export function parseModule(file: string, source: string): ModuleSource | undefined {
  const lang = languages[extname(file)];
  const text = source.startsWith("\uFEFF") ? source.slice(1) : source;
  if (lang === undefined || looksDeep(text)) return undefined;
  const { program, comments, errors } = parseSync(file, text, { lang, astType: "ts", sourceType: "module", preserveParens: false });
  if (errors.some((error) => error.severity === "Error")) return undefined;
  const parents = new Map<SyntaxNode, SyntaxNode>();
  const nodes = collectNodes(program, parents);
  const { position } = createTextReport(text, file);
  const ignored = ignoredLines(comments, position);
  return {
    file,
    nodes,
    parentOf: (node) => parents.get(node),
    positionOf: position,
    topLevel: topLevelOf(program),
    ignores: (code, line) => ignored.has(`${line} ${code}`) || ignored.has(`${line - 1} ${code}`),
  };
}

/** A node and its descendants in source order; if `enters` returns false for a node, its descendants are skipped. */
export function* descend(root: SyntaxNode, enters: (node: SyntaxNode) => boolean = () => true): Generator<SyntaxNode> {
  const open: SyntaxNode[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    if (node !== root && !enters(node)) continue;
    for (const child of childrenOf(node).reverse()) open.push(child);
  }
}

/** The nodes of a function's own body. Nested functions are included but not entered. */
export function withinFunction(root: SyntaxNode): Generator<SyntaxNode> {
  return descend(root, (node) => !isFunction(node));
}

export function isFunction(node: SyntaxNode | null | undefined): node is FunctionNode {
  return node?.type === "FunctionDeclaration" || node?.type === "FunctionExpression" || node?.type === "ArrowFunctionExpression";
}

/** Creates a diagnostic at a node's position, unless a comment there suppresses it. */
export function adviseAt(
  module: ModuleSource,
  node: SyntaxNode,
  code: string,
  message: string,
  severity: Diagnostic["severity"] = "warning",
): Diagnostic[] {
  const start = module.positionOf(node.start);
  if (module.ignores(code, start.line)) return [];
  return [{ severity, code, message, file: module.file, range: { start, end: module.positionOf(node.end) } }];
}

// Iterative, because a parsed module may nest deeper than the JavaScript stack.
function collectNodes(program: SyntaxNode, parents: Map<SyntaxNode, SyntaxNode>): SyntaxNode[] {
  const nodes: SyntaxNode[] = [];
  for (const node of descend(program)) {
    nodes.push(node);
    for (const child of childrenOf(node)) parents.set(child, node);
  }
  return nodes;
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  return (visitorKeys[node.type] ?? []).flatMap((key) => {
    const value = (node as unknown as Record<string, unknown>)[key];
    return (Array.isArray(value) ? value : [value]).filter(isNode);
  });
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}

function topLevelOf(program: NodeOf<"Program">): Map<string, SyntaxNode> {
  const names = new Map<string, SyntaxNode>();
  for (const statement of program.body) {
    const exported =
      statement.type === "ExportNamedDeclaration" || statement.type === "ExportDefaultDeclaration" ? statement.declaration : statement;
    if (exported?.type === "FunctionDeclaration" && exported.id) names.set(exported.id.name, exported);
    if (exported?.type !== "VariableDeclaration") continue;
    for (const { id, init } of exported.declarations) if (id.type === "Identifier" && init) names.set(id.name, init);
  }
  return names;
}

function ignoredLines(
  comments: readonly { readonly value: string; readonly end: number }[],
  position: (offset: number) => Position,
): Set<string> {
  const ignored = new Set<string>();
  for (const { value, end } of comments) {
    const codes = /\bskillhost-ignore\s+([A-Z_,\s]+)/.exec(value)?.[1] ?? "";
    for (const code of codes.split(/[,\s]+/).filter((word) => word !== "")) ignored.add(`${position(end).line} ${code}`);
  }
  return ignored;
}

/** The value of an expression, if it is certain without running code. */
type StaticValue = { readonly isKnown: true; readonly value: unknown } | { readonly isKnown: false };

const unknownValue: StaticValue = { isKnown: false };
const mostDepth = 100;

/** Evaluates literals, objects and arrays of them, concatenated strings, and the module's own constants. */
export function staticValue(node: SyntaxNode, module: ModuleSource, depth = 0): StaticValue {
  if (depth > mostDepth) return unknownValue;
  const at = resolveNode(node, module);
  if (at.type === "Literal") return "regex" in at && at.regex ? unknownValue : known(at.value);
  if (at.type === "Identifier") return at.name === "undefined" ? known(undefined) : unknownValue;
  if (at.type === "TemplateLiteral" || at.type === "BinaryExpression") {
    const text = staticText(at, module, depth);
    return text === undefined ? unknownValue : known(text);
  }
  if (at.type === "UnaryExpression" && at.operator === "-") {
    const negated = staticValue(at.argument, module, depth + 1);
    return negated.isKnown && typeof negated.value === "number" ? known(-negated.value) : unknownValue;
  }
  if (at.type === "ArrayExpression") {
    const values: unknown[] = [];
    for (const element of at.elements) {
      const item = element === null || element.type === "SpreadElement" ? unknownValue : staticValue(element, module, depth + 1);
      if (!item.isKnown) return unknownValue;
      values.push(item.value);
    }
    return known(values);
  }
  return at.type === "ObjectExpression" ? staticObject(at, module, depth) : unknownValue;
}

/** The value of a string, of a template without expressions, and of concatenations of these. */
export function staticText(node: SyntaxNode, module: ModuleSource, depth = 0): string | undefined {
  if (depth > mostDepth) return undefined;
  const at = resolveNode(node, module);
  if (at.type === "Literal") return typeof at.value === "string" ? at.value : undefined;
  if (at.type === "TemplateLiteral") return at.expressions.length === 0 ? (at.quasis[0]?.value.cooked ?? undefined) : undefined;
  if (at.type !== "BinaryExpression" || at.operator !== "+") return undefined;
  const [left, right] = [staticText(at.left, module, depth + 1), staticText(at.right, module, depth + 1)];
  return left === undefined || right === undefined ? undefined : left + right;
}

/** Strips type-only syntax, and resolves a top-level name to its value. */
export function resolveNode(node: SyntaxNode, module: ModuleSource): SyntaxNode {
  let at = unwrap(node);
  for (let steps = 0; at.type === "Identifier" && steps < 10; steps++) {
    const target = module.topLevel.get(at.name);
    if (target === undefined) break;
    at = unwrap(target);
  }
  return at;
}

export function unwrap(node: SyntaxNode): SyntaxNode {
  let at = node;
  while (
    at.type === "TSAsExpression" ||
    at.type === "TSSatisfiesExpression" ||
    at.type === "TSNonNullExpression" ||
    at.type === "ChainExpression" ||
    at.type === "AwaitExpression"
  ) {
    at = at.type === "AwaitExpression" ? at.argument : at.expression;
  }
  return at;
}

/** A property of an object literal; undefined also if a spread may provide it. */
export function propertyOf(object: NodeOf<"ObjectExpression">, name: string): NodeOf<"Property"> | undefined {
  return object.properties.find(
    (property): property is NodeOf<"Property"> & typeof property => property.type === "Property" && keyOf(property) === name,
  ) as NodeOf<"Property"> | undefined;
}

export function hasSpread(object: NodeOf<"ObjectExpression">): boolean {
  return object.properties.some((property) => property.type === "SpreadElement");
}

export function keyOf(property: NodeOf<"Property">): string | undefined {
  const { key, computed } = property;
  if (!computed && key.type === "Identifier") return key.name;
  return key.type === "Literal" && typeof key.value === "string" ? key.value : undefined;
}

/** The last name of `a.b.c`, or the name itself. */
export function calleeName(node: SyntaxNode): string | undefined {
  const at = unwrap(node);
  if (at.type === "Identifier") return at.name;
  return at.type === "MemberExpression" && at.property.type === "Identifier" && !at.computed ? at.property.name : undefined;
}

function staticObject(object: NodeOf<"ObjectExpression">, module: ModuleSource, depth: number): StaticValue {
  const values: Record<string, unknown> = {};
  for (const property of object.properties) {
    const key = property.type === "Property" ? keyOf(property as NodeOf<"Property">) : undefined;
    if (property.type !== "Property" || key === undefined || key === "__proto__") return unknownValue;
    const field = staticValue(property.value as SyntaxNode, module, depth + 1);
    if (!field.isKnown) return unknownValue;
    if (field.value !== undefined) values[key] = field.value;
  }
  return known(values);
}

function known(value: unknown): StaticValue {
  return { isKnown: true, value };
}
