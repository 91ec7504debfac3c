import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { describeCommand } from "../../../plugins/workspace-tools/operations/describe-command.ts";
import { parseCommandLine } from "../../../src/session/permissions/command-line-rules.ts";
import { compilePermissionRules } from "../../../src/session/permissions/permission-rules.ts";
import { reachOf } from "../../../src/session/permissions/shell-reach.ts";
import { patience } from "../../slowness.ts";
import { toolOf } from "../session-kit.ts";
import { reachingLines } from "./address-lines.ts";
import { assembleLeaks } from "./assembled-leaks.ts";
import { everydayLines } from "./everyday-lines.ts";
import { leakingLines } from "./leaking-lines.ts";
import { bashTool, openSecrets, runLines, verdictOf } from "./run-lines.ts";
import { hasBash } from "./secret-folder.ts";

const deny = ["read(secret/**)", "read(~/.ssh/**)"];

describe.skipIf(!hasBash)("no command line reads files that rules protect", () => {
  test.each([
    ["written by hand", leakingLines],
    ["assembled", assembleLeaks(60, 7)],
  ] as const)(
    "no line reads protected files: %s",
    (_name, lines) => {
      const { leaks, unasked, shown } = runLines(lines, deny);
      expect(leaks).toEqual([]);
      expect(unasked).toEqual([]);
      // Checks that the lines really leak.
      expect(shown).toBeGreaterThan(lines.length * 0.7);
    },
    patience(120_000),
  );
});

test("no command line in any notation reaches addresses that rules protect", () => {
  const folder = openSecrets();
  const [deny, ask] = [["url(evil.example)", "url(169.254.169.254)"]].flatMap((list) => [{ deny: list }, { ask: list }]);
  const allow = ["shell"];
  const [denying, asking] = [
    compilePermissionRules({ allow, ...deny }, folder.project),
    compilePermissionRules({ allow, ...ask }, folder.project),
  ];
  expect(reachingLines.filter((line) => verdictOf(denying, line) !== "deny")).toEqual([]);
  expect(reachingLines.filter((line) => verdictOf(asking, line) !== "ask")).toEqual([]);
});

// The others run code that is not in the line: `npm test`, `make`, `python3 main.py`.
test.each<[what: string, rules: readonly string[], share: number, request: object]>([
  ["paths", deny, 0.23, {}],
  ["paths by a pattern", ["read(**/.env)", "read(**/*.pem)"], 0.23, {}],
  ["paths that are written", ["write(secret/**)"], 0.28, {}],
  ["addresses", ["url(evil.example)", "url(169.254.169.254)"], 0.26, {}],
  ["paths, where the machine enforces them", [...deny, "write(secret/**)"], 0, { isConfined: true }],
  ["addresses, where the machine enforces them", ["url(evil.example)"], 0, { isConfined: true }],
])("of everyday lines unrelated to a rule for %s, at most this share is denied", (_what, rules, share, request) => {
  const folder = openSecrets();
  spawnSync("git", ["init", "-q", "."], { cwd: folder.project });
  const compiled = compilePermissionRules({ allow: ["shell"], deny: rules }, folder.project);
  const isDenied = (line: string): boolean => verdictOf(compiled, line, request) === "deny";
  expect(everydayLines.length).toBeGreaterThan(200);
  expect(everydayLines.filter(isDenied).length / everydayLines.length).toBeLessThanOrEqual(share);
});

test("a skill's tool cannot claim to be confined", () => {
  const folder = openSecrets();
  const skill = toolOf("skill", "s", { name: "sh", handler: () => "", permission: () => null });
  const rules = compilePermissionRules({ allow: ["shell"], deny }, folder.project);
  const request = { kind: "shell", fullCommandText: "node x.js", isConfined: true };
  expect(rules.judge({ tool: skill, request, args: {} })?.kind).toBe("deny");
  expect(rules.judge({ tool: bashTool, request, args: {} })?.kind).toBe("allow");
});

// Each line names millions of paths or folders.
test.each([
  ["folders", Array.from({ length: 40 }, (_, index) => `cd d${index}`).join(";")],
  ["folders by braces", "cd {a,b}{a,b}{a,b};".repeat(12)],
  ["files by braces", `cat ${"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} ".repeat(3_000)}`],
  ["targets of copies", `cp ${"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} ".repeat(300)} {c,d}{c,d}{c,d}{c,d}{c,d}{c,d}{c,d}`],
  ["addresses", `curl ${"http://{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}.example ".repeat(2_500)}`],
])("of a line with millions of %s, a bounded number is checked, and rules deny it", (_what, line) => {
  const { paths, addresses, pathDoubt } = reachOf(line, tmpdir());
  expect(paths.length + addresses.length).toBeLessThanOrEqual(100_000);
  expect(pathDoubt).toEqual(expect.any(String));
  expect(verdictOf(compilePermissionRules({ allow: ["shell"], deny }, tmpdir()), line)).toBe("deny");
});

test("a line that is too long to parse is matched by every deny and ask rule and allowed by no command rule", () => {
  const line = `echo ${"a ".repeat(80_000)}`;
  const verdict = (rules: object): string | undefined => verdictOf(compilePermissionRules(rules, tmpdir()), line);
  expect(verdict({ deny: ["shell(rm:*)"] })).toBe("deny");
  expect(verdict({ ask: ["shell(rm:*)"] })).toBe("ask");
  expect(verdict({ allow: ["shell(echo:*)"] })).toBeUndefined();
  expect(verdict({ deny: ["read(secret/**)"] })).toBe("deny");
  expect(describeCommand(line)).toMatchObject({ commands: [], canOfferSessionApproval: false, hasWriteFileRedirection: true });
  expect(parseCommandLine(line)).toMatchObject({ isClear: false, isSimple: false, isTooLong: true });
});
