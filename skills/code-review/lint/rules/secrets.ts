import { keyName, memberName, type Node, stringOf, unwrap } from "../ast.ts";
import { problem, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

/** Shapes that services give their keys, so that scanners can find them. */
const shapes: readonly (readonly [string, RegExp])[] = [
  ["an AWS access key", /\b(AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["a GitHub token", /\b(ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{60,}\b/],
  ["a GitLab token", /\bglpat-[A-Za-z0-9_-]{20}\b/],
  ["a Slack token", /\bxox[abprs]-[A-Za-z0-9-]{20,}/],
  ["a Stripe key", /\b[sr]k_live_[A-Za-z0-9]{20,}\b/],
  ["a Google API key", /\bAIza[A-Za-z0-9_-]{35}\b/],
  ["an API key", /\bsk-(ant-|proj-|svcacct-)?[A-Za-z0-9_-]{32,}/],
  ["an npm token", /\bnpm_[A-Za-z0-9]{36}\b/],
  ["a private key", /-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\s*[A-Za-z0-9+/=\\]{20}/],
  ["a JSON web token", /\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}/],
  [
    "a password in a URL",
    /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@${}]+:(?!password|pass|secret|\*+|x+@|<)[^\s/:@${}]{6,}@(?!localhost|127\.|example)/i,
  ],
];

/** What tests make up for themselves all the time. */
const usualInTests = new Set(["a JSON web token", "a password in a URL", "a private key"]);

const secretNames =
  /(^|_)(password|passwd|secret|api_?key|access_?key|private_?key|auth_?token|access_?token|client_?secret|secret_?key|bearer_?token)$/i;
const placeholders =
  /example|sample|dummy|fake|mock|test|placeholder|changeme|change_me|your|insert|todo|redacted|secret$|password$|xxx|<|\{|\*\*|\.\.\.|…/i;

const hardcodedSecret: Rule = {
  name: "hardcoded-secret",
  severity: "error",
  summary: "A key, token or password stands in the source.",
  *check(unit) {
    for (const node of [...unit.tree.all("Literal"), ...unit.tree.all("TemplateLiteral")]) {
      const text = stringOf(node);
      const what = text === undefined || text.length > 5000 ? undefined : kindOf(unit, node, text);
      if (what)
        yield problem(
          node,
          `This looks like ${what}; whoever reads the source has it.`,
          "Revoke it, read it from the environment or a secret store, and remove it from the history.",
        );
    }
  },
};

function kindOf(unit: Unit, node: Node, text: string): string | undefined {
  const shape = shapes.find(([, pattern]) => pattern.test(text));
  if (shape && !(unit.isTest && usualInTests.has(shape[0])) && !placeholders.test(text.replace(/-----.*?-----/g, ""))) return shape[0];
  const name = holderName(unit, node);
  return !unit.isTest && name !== undefined && secretNames.test(toSnake(name)) && looksRandom(text)
    ? `the value of \`${name}\``
    : undefined;
}

/** The name of the variable, property or parameter that this literal is the value of. */
function holderName(unit: Unit, node: Node): string | undefined {
  let at = node;
  let parent = unit.tree.parent(at);
  while (parent && unwrap(parent) === unwrap(at)) {
    at = parent;
    parent = unit.tree.parent(at);
  }
  if (parent?.type === "VariableDeclarator" && parent.id.type === "Identifier") return parent.id.name;
  if ((parent?.type === "Property" || parent?.type === "PropertyDefinition") && parent.value === at) return keyName(parent);
  if (parent?.type !== "AssignmentExpression" || parent.right !== at) return undefined;
  return parent.left.type === "Identifier" ? parent.left.name : memberName(parent.left);
}

function toSnake(name: string): string {
  return name
    .replace(/^#/, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();
}

/** Not a word, a path, a message or a placeholder: long enough, without spaces, letters mixed with digits. */
function looksRandom(text: string): boolean {
  return (
    text.length >= 8 &&
    !/\s/.test(text) &&
    /\d/.test(text) &&
    /[A-Za-z]/.test(text) &&
    !placeholders.test(text) &&
    !/^(https?:|\/|\.|[a-z]+(-[a-z0-9]+)*$)/.test(text)
  );
}

const weakRandom: Rule = {
  name: "weak-random",
  severity: "warning",
  summary: "A token, password or nonce made with `Math.random()` can be guessed.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      if (unit.source(call.callee) !== "Math.random" || unit.isTest) continue;
      const name = nearestHolder(unit, call);
      if (name !== undefined && /(^|_)(token|secret|password|passwd|nonce|salt|otp|session_id|csrf|api_key)s?$/.test(toSnake(name)))
        yield problem(
          call,
          `\`${name}\` is made with \`Math.random()\`, whose values can be guessed.`,
          "Use `crypto.randomUUID()` or `crypto.randomBytes(n)`.",
        );
    }
  },
};

function nearestHolder(unit: Unit, node: Node): string | undefined {
  for (let at: Node | undefined = node; at !== undefined && !/Statement$|Function/.test(at.type); at = unit.tree.parent(at)) {
    const name = holderName(unit, at);
    if (name !== undefined) return name;
  }
  return undefined;
}

export const secretRules: readonly Rule[] = [hardcodedSecret, weakRandom];
