import { type Node, stringOf, unwrap } from "./ast.ts";
import { initialValue } from "./facts.ts";
import type { Unit } from "./unit.ts";

/** Text put together at run time from something that is not written out in the file. */
export function isDynamicText(unit: Unit, node: Node): boolean {
  const value = initialValue(unit, node);
  if (value.type === "TemplateLiteral") return value.expressions.some((part) => !isFixed(unit, part));
  if (value.type === "BinaryExpression" && value.operator === "+")
    return isDynamicPart(unit, value.left) || isDynamicPart(unit, value.right);
  return false;
}

function isDynamicPart(unit: Unit, node: Node): boolean {
  const inner = unwrap(node);
  return inner.type === "BinaryExpression" ? isDynamicText(unit, inner) : !isFixed(unit, inner);
}

/** A literal, or a constant whose value is one. */
function isFixed(unit: Unit, node: Node): boolean {
  const value = initialValue(unit, node);
  if (value.type === "Literal" || stringOf(value) !== undefined) return true;
  return (
    (value.type === "Identifier" && /^[A-Z][A-Z0-9_]+$/.test(value.name)) ||
    (value.type === "ConditionalExpression" && isFixed(unit, value.consequent) && isFixed(unit, value.alternate))
  );
}
