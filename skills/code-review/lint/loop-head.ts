import { isLoop, type Node } from "./ast.ts";
import type { Unit } from "./unit.ts";

/** The loop whose head declares this variable, given its declarator. */
export function loopOf(unit: Unit, definition: Node | undefined): Node | undefined {
  const declaration = definition?.type === "VariableDeclarator" ? unit.tree.parent(definition) : undefined;
  const loop = declaration && unit.tree.parent(declaration);
  return declaration && isLoop(loop) && unit.tree.key(declaration) !== "body" ? loop : undefined;
}
