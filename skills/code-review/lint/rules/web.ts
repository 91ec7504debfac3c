import { dottedName, keyName, memberName, type Node } from "../ast.ts";
import { isDynamicText } from "../dynamic-text.ts";
import { initialValue } from "../facts.ts";
import { type Problem, problem, quote, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const htmlInjection: Rule = {
  name: "html-injection",
  severity: "warning",
  summary: "Text with values in it is put into a page as HTML.",
  *check(unit) {
    for (const node of unit.tree.all("AssignmentExpression"))
      if (
        node.left.type === "MemberExpression" &&
        /^(innerHTML|outerHTML)$/.test(memberName(node.left) ?? "") &&
        isRawHtml(unit, node.right)
      )
        yield problem(
          node,
          "A value in this text can bring tags and scripts of its own.",
          "Use `textContent`, build elements, or sanitise the value first.",
        );
    for (const call of unit.tree.all("CallExpression")) {
      const name = dottedName(call.callee) ?? "";
      const html = /(^|\.)insertAdjacentHTML$/.test(name)
        ? call.arguments[1]
        : /^document\.write(ln)?$/.test(name)
          ? call.arguments[0]
          : undefined;
      if (html && isRawHtml(unit, html))
        yield problem(
          call,
          "A value in this text can bring tags and scripts of its own.",
          "Use `textContent`, build elements, or sanitise the value first.",
        );
    }
  },
};

function isRawHtml(unit: Unit, node: Node): boolean {
  return isDynamicText(unit, node) && !/saniti[sz]e|escape|purify|encode/i.test(unit.source(initialValue(unit, node)));
}

const tlsOff: Rule = {
  name: "tls-verification-off",
  severity: "error",
  summary: "Certificates are not checked, so anybody on the way can read and change the traffic.",
  *check(unit): Iterable<Problem> {
    for (const property of unit.tree.all("Property"))
      if (keyName(property) === "rejectUnauthorized" && property.value.type === "Literal" && property.value.value === false)
        yield problem(
          property,
          `${quote(unit, property)} accepts every certificate.`,
          "Remove it; give a private authority's certificate with `ca`.",
        );
    for (const node of unit.tree.all("AssignmentExpression"))
      if (/NODE_TLS_REJECT_UNAUTHORIZED/.test(unit.source(node.left)) && /^["'`]?0["'`]?$/.test(unit.source(node.right)))
        yield problem(
          node,
          "This turns certificate checks off for the whole process.",
          "Remove it; use `NODE_EXTRA_CA_CERTS` for a private authority.",
        );
  },
};

export const webRules: readonly Rule[] = [htmlInjection, tlsOff];
