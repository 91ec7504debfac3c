import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { toCallCommand, toCallTest, toCurlCommand, toPowerShellCommand } from "../../../src/formats/calls/export-call.ts";

const hostile = { text: 'it\'s "$(id)" `id` $HOME \\ % !!\n; rm -rf / # \u2019 é 😀' };

/** The words that a shell gives a program. */
function wordsOf(program: string, command: string): readonly string[] {
  const env = { PATH: process.env["PATH"], SKILLHOST_INSPECTOR_TOKEN: "a-token" };
  const script = `${program}() { printf '%s\\0' "$@"; }\n${command}`;
  return execFileSync("sh", ["-c", script], { encoding: "utf8", env }).split("\0").slice(0, -1);
}

test.skipIf(process.platform === "win32")("a shell passes the arguments of exported commands on as they were", () => {
  const words = wordsOf("skillhost", toCallCommand("weather", hostile));
  expect(words.slice(0, 2)).toEqual(["call", "weather"]);
  expect(JSON.parse(words[2] as string)).toEqual(hostile);
  expect(words).toHaveLength(3);

  const request = wordsOf("curl", toCurlCommand("http://127.0.0.1:4100/request", "weather", hostile));
  expect(request.slice(0, -1)).toEqual([
    "-sS",
    "http://127.0.0.1:4100/request",
    "-H",
    "Authorization: Bearer a-token",
    "-H",
    "Content-Type: application/json",
    "--data-raw",
  ]);
  expect(JSON.parse(request.at(-1) as string)).toEqual({ method: "call", params: { tool: "weather", arguments: hostile, wait: true } });
});

test("for PowerShell the arguments are ASCII in a text that nothing in them can end, and are piped in", () => {
  expect(toPowerShellCommand("a-b", { text: "it's \u2018x\u2019 $y `z" })).toBe(
    `'{"text":"it''s \\u2018x\\u2019 $y \`z"}' | skillhost call a-b -`,
  );
  const command = toPowerShellCommand("weather", hostile);
  // In such a text PowerShell reads nothing but doubled quotes.
  const [, quoted] = /^'((?:[^']|'')*)' \| skillhost call weather -$/.exec(command)!;
  expect(quoted).toMatch(/^[ -~]+$/);
  expect(JSON.parse(quoted!.replaceAll("''", "'"))).toEqual(hostile);
});

test("an exported test has the arguments as code, also a key that would set the prototype", () => {
  expect(toCallTest("weather", { city: "Oslo" })).toContain('skill.call("weather", {\n    "city": "Oslo"\n  });');
  const args = JSON.parse('{"__proto__":{"a":1}}');
  const code = /skill\.call\("weather", (.*)\);/.exec(toCallTest("weather", args))?.[1];
  expect(Object.hasOwn(new Function(`return ${code}`)(), "__proto__")).toBe(true);
});
