import type { Json } from "../../base/json.ts";
import { shellQuoted } from "../../base/text.ts";

/** A call as a `skillhost call` command for a POSIX shell. Nothing in the arguments is interpreted by the shell. */
export function toCallCommand(tool: string, args: Json): string {
  return `skillhost call ${quotePosix(tool)} ${quotePosix(JSON.stringify(args))}`;
}

/**
 * A call as a `skillhost call` command for PowerShell. The arguments are piped in, as ASCII: before version 7.3 PowerShell removes quotes
 * from the arguments of programs, and Windows PowerShell pipes other characters as question marks.
 */
export function toPowerShellCommand(tool: string, args: Json): string {
  return `${quotePowerShell(toAscii(JSON.stringify(args)))} | skillhost call ${quotePowerShell(tool)} -`;
}

/** A call as a `curl` command for a POSIX shell, which has the token of the inspector in the variable `SKILLHOST_INSPECTOR_TOKEN`. */
export function toCurlCommand(url: string, tool: string, args: Json): string {
  const body = JSON.stringify({ method: "call", params: { tool, arguments: args, wait: true } });
  const token = '"Authorization: Bearer $SKILLHOST_INSPECTOR_TOKEN"';
  return `curl -sS ${quotePosix(url)} -H ${token} -H 'Content-Type: application/json' --data-raw ${quotePosix(body)}`;
}

function quotePosix(word: string): string {
  return /^[\w./:=@%+-]+$/.test(word) ? word : shellQuoted(word);
}

/** PowerShell also closes a text at the typographic forms of the quote. */
function quotePowerShell(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replace(/['\u2018-\u201b]/g, "$&$&")}'`;
}

function toAscii(json: string): string {
  return json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A call as a test file for the `test` folder of its skill, which `skillhost test` runs. */
export function toCallTest(tool: string, args: Json): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

test(${JSON.stringify(`calls ${tool}`)}, async () => {
  await using skill = await testSkill(new URL("..", import.meta.url));
  const result = await skill.call(${JSON.stringify(tool)}, ${argumentsAsCode(args)});
  assert.equal(result.ok, true, result.text);
});
`;
}

function argumentsAsCode(args: Json): string {
  const text = JSON.stringify(args, null, 2);
  // In an object literal this key sets the prototype; in JSON it is a key like any other.
  if (text.includes('"__proto__"')) return `JSON.parse(${JSON.stringify(JSON.stringify(args))})`;
  return text.replaceAll("\n", "\n  ");
}
