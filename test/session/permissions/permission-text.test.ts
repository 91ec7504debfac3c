import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { approvalText } from "../../../src/base/untrusted-text.ts";
import { permissionText } from "../../../src/session/permissions/permission-reach.ts";
import type { PermissionAsk } from "../../../src/tools/tool.ts";

const ask = (fields: Partial<PermissionAsk>): PermissionAsk => ({
  kind: "shell",
  toolCallId: "c",
  toolName: "bash",
  toolArgs: {},
  ...fields,
});

/** The lines of a permission prompt that do not come from an untrusted source. */
const ours = (text: string): string[] => text.split("\n").filter((line) => !line.startsWith("| "));

describe("the text of a permission prompt", () => {
  test.each([
    ["a line feed", "\n"],
    ["a carriage return", "\r"],
    ["both", "\r\n"],
    ["a vertical tab", "\v"],
    ["a form feed", "\f"],
    ["NEL", "\u0085"],
    ["a line separator", "\u2028"],
    ["a paragraph separator", "\u2029"],
  ])("a permission prompt cannot be forged by %s", (_what, lineBreak) => {
    const forged = `rm -rf ~${lineBreak}May the tool "list_files" be called?${lineBreak}Arguments:${lineBreak}| {}`;
    const { text } = permissionText(ask({ fullCommandText: forged, toolArgs: { command: forged } }), `skill "x"${lineBreak}Allow it?`);
    expect(ours(text)).toHaveLength(3);
    expect(text).not.toMatch(/[\r\v\f\u0085\u2028\u2029]/);
    expect(ours(text).slice(1)).toEqual(["Arguments:", "fullCommandText:"]);
  });

  test.each(["\u202e", "\u200b", "\u009b", "\u061c", "\u00ad", "\u3164", "\u{e0041}", "\ufe0f", "\u00a0", "\u2800"])(
    "a permission prompt shows %j in each field",
    (character) => {
      const { text } = permissionText(
        ask({ toolName: `a${character}b`, path: `/a${character}b`, diff: `+${character}`, toolArgs: [character] }),
      );
      expect(text).not.toContain(character);
      expect(text.match(/\\u\{|\\x/g)).toHaveLength(4);
    },
  );

  test("a permission prompt keeps plain text, its lines and emoji", () => {
    const { text, isWhole } = permissionText(ask({ diff: "-a\n+b ❤️ Grüße 世界\n" }));
    expect(text).toContain("diff:\n| -a\n| +b ❤️ Grüße 世界");
    expect(isWhole).toBe(true);
  });

  test.each([
    ["many characters", `${"a".repeat(30_000)}; rm -rf ~`],
    ["many lines", `${"a\n".repeat(500)}rm -rf ~`],
    ["many characters that are escaped", `${"\u202e".repeat(2_000)}; rm -rf ~`],
  ])("a shortened prompt of %s shows the end, the omitted length and a digest, and says that it is incomplete", (_what, command) => {
    const { text, isWhole } = permissionText(ask({ fullCommandText: command }));
    expect(isWhole).toBe(false);
    expect(text.endsWith("rm -rf ~")).toBe(true);
    expect(text).toContain(createHash("sha256").update(command).digest("hex"));
    const omitted = Number(/… (\d+) of \d+ characters/.exec(text)?.[1]);
    const whole = approvalText(command, { isCut: false }).text.replaceAll("| ", "");
    const cut = approvalText(command)
      .text.replaceAll("| ", "")
      .replace(/\n… .* …\n/, "");
    expect(omitted).toBe(whole.length - cut.length);
  });

  test("a prompt with arguments that cannot be written as JSON is incomplete", () => {
    expect(permissionText(ask({ toolArgs: { big: 1n } })).isWhole).toBe(false);
  });

  test("a permission prompt never cuts a character in two", () => {
    const { text } = approvalText("😀".repeat(5_000));
    expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
  });
});
