import { descend, dottedName, isFunction, memberName, type Node, type NodeOf, stringOf } from "../ast.ts";
import { initialValue } from "../facts.ts";
import { problem, quote, type Rule } from "../rule.ts";
import type { Unit } from "../unit.ts";

const request =
  /^(req|request|ctx|ctx\.request|context\.request|event)\.(params|query|body|headers|cookies|queryStringParameters|pathParameters)\b/;

/** What a stranger's request says, as it came: taken straight from it, or through one `const`. */
function isFromRequest(unit: Unit, node: Node): boolean {
  // Whatever a function made of it, it is no longer as it came.
  if (node.type === "CallExpression" || node.type === "AwaitExpression") return false;
  for (const part of descend(node, (inner) => !isFunction(inner) && inner.type !== "CallExpression")) {
    const value = part.type === "Identifier" || part.type === "MemberExpression" ? initialValue(unit, part) : undefined;
    if (value && request.test(dottedName(value) ?? "")) return true;
    if (part.type === "Identifier" && isDestructuredRequest(unit, part)) return true;
  }
  return false;
}

/** `const { file } = req.query`. */
function isDestructuredRequest(unit: Unit, node: NodeOf<"Identifier">): boolean {
  const definition = unit.scopes.resolve(node)?.definitions[0];
  return (
    definition?.type === "VariableDeclarator" &&
    definition.id.type === "ObjectPattern" &&
    definition.init !== null &&
    request.test(dottedName(definition.init) ?? "")
  );
}

interface Sink {
  readonly what: string;
  readonly danger: string;
  readonly fix: string;
}

const sinks: readonly (readonly [RegExp, Sink])[] = [
  [
    /^(readFile|readFileSync|createReadStream|writeFile|writeFileSync|createWriteStream|unlink|unlinkSync|rm|rmSync|sendFile|download)$/,
    {
      what: "a file's path",
      danger: "`../` in it leads to any file of the machine",
      fix: "Resolve the path and check that it lies in the folder that is meant, or look the name up in a table.",
    },
  ],
  [
    /^redirect$/,
    {
      what: "the address of a redirect",
      danger: "it can lead people to a foreign site",
      fix: "Allow only paths of this site, or look the address up in a table.",
    },
  ],
  [/^fetch$/, { what: "an address to fetch", danger: "it can reach services that only this machine can", fix: "Allow only known hosts." }],
  [
    /^(exec|execSync)$/,
    {
      what: "a command",
      danger: "it runs whatever the sender wants",
      fix: "Choose the program yourself and pass values as separate arguments with `execFile`.",
    },
  ],
];

const untrustedInput: Rule = {
  name: "untrusted-input",
  severity: "error",
  summary: "A value of a request is used as a path, an address or a command as it came.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const name = call.callee.type === "Identifier" ? call.callee.name : memberName(call.callee);
      const sink = sinks.find(([pattern]) => pattern.test(name ?? ""))?.[1];
      const given = sink && call.arguments.slice(0, 1).find((argument) => isFromRequest(unit, argument));
      if (sink && given)
        yield problem(given, `${quote(unit, given)} comes from a request and is used as ${sink.what}: ${sink.danger}.`, sink.fix);
    }
    for (const node of unit.tree.all("NewExpression"))
      if (node.callee.type === "Identifier" && node.callee.name === "RegExp" && node.arguments[0] && isFromRequest(unit, node.arguments[0]))
        yield problem(
          node,
          "A pattern from a request can keep this process busy for hours.",
          "Escape the text, or search with `includes`.",
        );
  },
};

const weakHash: Rule = {
  name: "weak-hash",
  severity: "error",
  summary: "A password or token hashed with MD5 or SHA-1.",
  *check(unit) {
    for (const call of unit.tree.all("CallExpression")) {
      const algorithm = /(^|\.)createHash$/.test(dottedName(call.callee) ?? "") ? stringOf(call.arguments[0] ?? call) : undefined;
      if (
        algorithm === undefined ||
        !/^(md5|sha-?1)$/i.test(algorithm) ||
        !/password|passwd|\bpwd?\b|secret|token/i.test(statementText(unit, call))
      )
        continue;
      yield problem(
        call,
        `${algorithm} is broken, and far too quick for secrets: a stolen hash is soon a password.`,
        "For passwords use `crypto.scrypt` with a salt; for tokens SHA-256 or better.",
      );
    }
  },
};

function statementText(unit: Unit, node: Node): string {
  let at: Node = node;
  for (
    let above = unit.tree.parent(at);
    above !== undefined && !/Statement$|Declaration$|^Program$/.test(at.type);
    above = unit.tree.parent(at)
  )
    at = above;
  return unit.source(at).slice(0, 500);
}

export const untrustedRules: readonly Rule[] = [untrustedInput, weakHash];
