import { type Node, type Program, visitorKeys } from "oxc-parser";

export type { Node, Program };
export type NodeType = Node["type"];

/** The node types that can carry this `type` tag; several share a tag, as ESTree has it. */
export type NodeOf<K extends NodeType> = Node extends infer N ? (N extends Node ? (K extends N["type"] ? N : never) : never) : never;

export type FunctionNode = NodeOf<"FunctionDeclaration"> | NodeOf<"ArrowFunctionExpression">;

/** A syntax tree that can be asked upwards, and by node type. */
export interface Tree {
  readonly program: Program;
  /** Every node, parents before children, in source order. */
  readonly nodes: readonly Node[];
  all<K extends NodeType>(type: K): readonly NodeOf<K>[];
  parent(node: Node): Node | undefined;
  /** The property of the parent that holds this node: `test`, `body`, `arguments`. */
  key(node: Node): string;
}

interface Link {
  readonly parent: Node | undefined;
  readonly key: string;
}

/** Indexes a tree without recursion: sources may nest deeper than the stack. */
export function indexTree(program: Program): Tree {
  const nodes: Node[] = [];
  const links = new Map<Node, Link>();
  const byType = new Map<string, Node[]>();
  const open: Node[] = [program];
  links.set(program, { parent: undefined, key: "" });
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    nodes.push(node);
    listFor(byType, node.type).push(node);
    for (const child of childrenOf(node).reverse()) {
      links.set(child.node, { parent: node, key: child.key });
      open.push(child.node);
    }
  }
  return {
    program,
    nodes,
    all: <K extends NodeType>(type: K) => (byType.get(type) ?? []) as NodeOf<K>[],
    parent: (node) => links.get(node)?.parent,
    key: (node) => links.get(node)?.key ?? "",
  };
}

function listFor(byType: Map<string, Node[]>, type: string): Node[] {
  const list = byType.get(type) ?? [];
  byType.set(type, list);
  return list;
}

/** The direct children of a node, in source order. */
function childrenOf(node: Node): { node: Node; key: string }[] {
  const children: { node: Node; key: string }[] = [];
  for (const key of visitorKeys[node.type] ?? []) {
    const value = (node as unknown as Record<string, unknown>)[key];
    for (const item of Array.isArray(value) ? value : [value]) if (isNode(item)) children.push({ node: item, key });
  }
  return children;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

/** Every node below this one, the node included; `enter` may keep it out of a subtree. Iterative, in source order. */
export function* descend(root: Node, enter: (node: Node) => boolean = () => true): Generator<Node> {
  const open: Node[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    if (node !== root && !enter(node)) continue;
    for (const child of childrenOf(node).reverse()) open.push(child.node);
  }
}

/** Like `descend`, but stays in the function that `root` is in (or is): nested functions are shown, not entered. */
export function withinFunction(root: Node): Generator<Node> {
  return descend(root, (node) => !isFunction(node));
}

export function isFunction(node: Node | null | undefined): node is FunctionNode {
  return node?.type === "FunctionDeclaration" || node?.type === "FunctionExpression" || node?.type === "ArrowFunctionExpression";
}

export function isLoop(
  node: Node | undefined,
): node is NodeOf<"ForStatement" | "ForInStatement" | "ForOfStatement" | "WhileStatement" | "DoWhileStatement"> {
  return node !== undefined && /^(For|ForIn|ForOf|While|DoWhile)Statement$/.test(node.type);
}

/** The expression without what only types see and without the wrapper of an optional chain. */
export function unwrap(node: Node): Node {
  let at = node;
  for (;;) {
    if (
      at.type === "TSAsExpression" ||
      at.type === "TSSatisfiesExpression" ||
      at.type === "TSNonNullExpression" ||
      at.type === "TSTypeAssertion" ||
      at.type === "ParenthesizedExpression" ||
      at.type === "ChainExpression"
    )
      at = at.expression;
    else return at;
  }
}

/** The name of a non-computed (or literally computed) member, else undefined. */
export function memberName(node: Node): string | undefined {
  if (node.type !== "MemberExpression") return undefined;
  if (!node.computed) return node.property.type === "Identifier" ? node.property.name : undefined;
  return stringOf(node.property);
}

/** `a.b.c` as text for a chain of plain names, else undefined. */
export function dottedName(node: Node): string | undefined {
  const names: string[] = [];
  let at = unwrap(node);
  while (at.type === "MemberExpression") {
    const name = memberName(at);
    if (name === undefined) return undefined;
    names.unshift(name);
    at = unwrap(at.object);
  }
  if (at.type === "Identifier") names.unshift(at.name);
  else if (at.type === "ThisExpression") names.unshift("this");
  else return undefined;
  return names.join(".");
}

/** The value of a string literal or a template without expressions. */
export function stringOf(node: Node): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0]?.value.cooked ?? undefined;
  return undefined;
}

export function numberOf(node: Node): number | undefined {
  return node.type === "Literal" && typeof node.value === "number" ? node.value : undefined;
}

export function isRegExp(node: Node): node is NodeOf<"Literal"> & { readonly regex: { readonly pattern: string; readonly flags: string } } {
  return node.type === "Literal" && "regex" in node;
}

/** The name of a key of an object or class, when it can be known; private names keep their `#`. */
export function keyName(node: { readonly key: Node; readonly computed: boolean }): string | undefined {
  if (node.key.type === "PrivateIdentifier") return `#${node.key.name}`;
  if (!node.computed && node.key.type === "Identifier") return node.key.name;
  return stringOf(node.key) ?? numberOf(node.key)?.toString();
}
