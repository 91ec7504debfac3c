import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import { createTestHost } from "skillhost/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Rule } from "../../skills/code-review/lint/rule.ts";
import { lintText } from "../../skills/code-review/lint/run.ts";
import lint from "../../skills/code-review/tools/lint.ts";

const skill = fileURLToPath(new URL("../../skills/code-review/", import.meta.url));
let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "code-review-")));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

const run = (args: Parameters<typeof lint>[0], signal = new AbortController().signal) => lint(args, { workingDirectory: folder, signal });
const textOf = async (args: Parameters<typeof lint>[0]): Promise<string> => (await run(args)).content[0]?.text ?? "";
const bad = "export const f = (a: number) => a === NaN;\n";

describe("the lint tool in a session", () => {
  test("reports place, rule, reason and fix, as text and as data", async () => {
    write("src/a.ts", `export const ok = 1;\n\n${bad}`);
    await using server = await createTestHost({ skillDirectories: [skill], workingDirectory: folder, watch: false });
    const result = await server.call("lint", { path: "src" });
    expect(result.resultType).toBe("success");
    expect(result.textResultForLlm).toMatchInlineSnapshot(`
      "src/a.ts
        3:33  error  nan-comparison  \`a === NaN\` is always false: nothing equals NaN.
            fix: Use \`Number.isNaN(value)\`.

      1 problem (1 error, 0 warnings, 0 advice); 1 file checked."
    `);
    const { outputSchema } = JSON.parse(readFileSync(join(skill, "tools/lint.json"), "utf8")) as { outputSchema: object };
    expect(new Ajv().validate(outputSchema, result.structuredContent)).toBe(true);
    expect(result.structuredContent).toMatchObject({
      files: 1,
      findings: [{ file: "src/a.ts", line: 3, column: 33, rule: "nan-comparison", severity: "error" }],
    });
  });

  test("refuses a rule that does not exist before anything is read", async () => {
    await using server = await createTestHost({ skillDirectories: [skill], workingDirectory: folder, watch: false });
    const result = await server.call("lint", { path: ".", rules: ["no-such-rule"] });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toContain("rules");
  });
});

describe("which files", () => {
  test("checks every source file below a folder, but not what was installed, built or hidden", async () => {
    for (const path of ["a.ts", "b.tsx", "c.mts", "d.cts", "e.js", "f.jsx", "g.mjs", "h.cjs"])
      write(`src/${path}`, path.endsWith(".cjs") ? "exports.f = (a) => a === NaN;" : bad.replace(": number", ""));
    for (const path of ["node_modules/x/a.js", "dist/a.js", "coverage/a.js", ".next/a.js", "src/a.min.js", "src/a.d.ts", "src/notes.md"])
      write(path, bad);
    const { structuredContent } = await run({ path: ".", rules: ["nan-comparison"] });
    expect(structuredContent?.findings.map((finding) => finding.file)).toEqual(
      ["a.ts", "b.tsx", "c.mts", "d.cts", "e.js", "f.jsx", "g.mjs", "h.cjs"].map((name) => `src/${name}`),
    );
    expect(structuredContent?.files).toBe(8);
  });

  test.each([
    ["../", "leads out of the working directory"],
    ["/etc", "leads out of the working directory"],
    ["link", "leads out of the working directory"],
    ["missing.ts", 'There is no file or folder "missing.ts"'],
    ["notes.md", "is not a TypeScript or JavaScript file"],
  ])("refuses %s and names no path of the host", async (path, reason) => {
    write("notes.md", "");
    symlinkSync(tmpdir(), join(folder, "link"));
    const result = await run({ path });
    expect(result.isError).toBe(true);
    expect(result.content[0]?.text).toContain(reason);
    expect(result.content[0]?.text).not.toContain(folder);
  });

  test("does not follow links in the folder", async () => {
    write("a/real.ts", bad);
    symlinkSync(join(folder, "a"), join(folder, "b"));
    symlinkSync(join(folder, "a/real.ts"), join(folder, "c.ts"));
    expect((await run({ path: "." })).structuredContent?.files).toBe(1);
  });

  test("names the files that it left out, and why", async () => {
    write("big.js", `// ${"x".repeat(1024 * 1024)}`);
    write("binary.js", "var a = '\0';");
    expect(await textOf({ path: "." })).toContain(
      "big.js\n  not checked: larger than 1024 KiB\n\nbinary.js\n  not checked: not a text file",
    );
  });

  test("survives sources that nest deeper than any parser's stack, and still checks the others", async () => {
    write("deep.js", `x = ${"[".repeat(100_000)}${"]".repeat(100_000)};`);
    write("long.js", `export const sum = ${"1 + ".repeat(100_000)}1;`);
    write("ok.ts", bad);
    const { structuredContent } = await run({ path: "." });
    expect(structuredContent?.skipped).toEqual([
      { file: "deep.js", reason: "nested too deeply to parse" },
      { file: "long.js", reason: "nested too deeply to parse" },
    ]);
    expect(structuredContent?.findings.map((finding) => finding.file)).toEqual(["ok.ts"]);
  });

  test("checks large files that are merely long", async () => {
    write(
      "long.ts",
      `${"export const list = [[1], [2]];\n".replace("list", "first")}${Array.from({ length: 3000 }, (_, i) => `export const v${i} = [(${i})];\n`).join("")}${bad}`,
    );
    expect((await run({ path: "." })).structuredContent?.findings.map((finding) => finding.line)).toEqual([3002]);
  });

  test("stops when the call is cancelled", async () => {
    write("a.ts", bad);
    await expect(run({ path: "." }, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
  });
});

describe("findings", () => {
  test("what does not parse is a finding with its place", async () => {
    write("a.ts", "const a = 1;\nconst b = (;\n");
    const { structuredContent } = await run({ path: "a.ts" });
    expect(structuredContent?.findings).toMatchObject([{ rule: "syntax-error", line: 2, column: 12, severity: "error" }]);
  });

  test("a name declared twice is reported, and the rest of the file is still checked", () => {
    const { findings } = lintText("a.ts", `const a = 1; const a = 2; ${bad} export { a };`);
    expect(findings.map((finding) => finding.rule)).toEqual(expect.arrayContaining(["syntax-error", "nan-comparison"]));
  });

  test.each([
    ["a byte order mark", `\uFEFF${bad}`, 1],
    ["CRLF", `const a = 1;\r\nexport { a };\r\n${bad}`, 3],
    ["letters beyond the basic plane", `/* 😀é */ ${bad}`, 1],
  ])("places are right with %s", (_what, text, line) => {
    const found = lintText("a.ts", text).findings.find((finding) => finding.rule === "nan-comparison");
    const wanted = text.replace("\uFEFF", "").split(/\r?\n/)[line - 1]?.indexOf("a === NaN");
    expect(found).toMatchObject({ line, column: (wanted ?? 0) + 1 });
  });

  test("keeps the most severe findings when there are too many, and says how many it left out", async () => {
    write("a.ts", `export function f(s: string) {\n${"  parseInt(s);\n".repeat(5)}  return s === NaN;\n}\n`);
    const { structuredContent, content } = await run({ path: "a.ts", maxFindings: 2 });
    expect(structuredContent).toMatchObject({ counts: { error: 1, warning: 0, advice: 5 }, omitted: 4 });
    expect(structuredContent?.findings.map((finding) => finding.rule)).toEqual(["parse-int-radix", "nan-comparison"]);
    expect(content[0]?.text).toContain("4 findings not shown");
  });

  test("a comment with a reason allows one rule on the next line; without a reason it does not", () => {
    const rulesOf = (comment: string): string[] => lintText("a.ts", `${comment}\n${bad}`).findings.map((finding) => finding.rule);
    expect(rulesOf("// lint-ignore nan-comparison: the point of this example")).toEqual([]);
    expect(rulesOf("// lint-ignore nan-comparison")).toEqual(["nan-comparison"]);
    expect(rulesOf("// lint-ignore loose-equality: another rule")).toEqual(["nan-comparison"]);
  });

  test("only the rules that are asked for are applied", async () => {
    write("a.ts", `${bad}export const g = (a: unknown) => a == 1;\n`);
    expect((await run({ path: "a.ts", rules: ["loose-equality"] })).structuredContent?.findings.map((finding) => finding.rule)).toEqual([
      "loose-equality",
    ]);
  });

  test("follows an import to learn that a function of another module is async", async () => {
    write("store.ts", "export async function save() {}\nexport function log() {}\nconst put = async () => 1;\nexport { put as store };\n");
    write("a.ts", 'import { log, save, store as keep } from "./store.js";\nexport function f() {\n  save();\n  log();\n  keep();\n}\n');
    expect((await run({ path: "a.ts" })).structuredContent?.findings).toMatchObject([
      { rule: "floating-promise", line: 3 },
      { rule: "floating-promise", line: 5 },
    ]);
  });

  test("never shows the secret it found", () => {
    const secret = `ghp_${"a1B2c3D4e5F6".repeat(3)}`;
    const { findings } = lintText("a.ts", `export const token = "${secret}";`);
    expect(findings.map((finding) => finding.rule)).toEqual(["hardcoded-secret"]);
    expect(JSON.stringify(findings)).not.toContain(secret);
  });

  test("finds nothing in code that is in order", async () => {
    const own = dirname(skill);
    const result = await lint({ path: "code-review" }, { workingDirectory: own, signal: new AbortController().signal });
    expect(result.structuredContent?.files).toBeGreaterThan(25);
    expect(result.structuredContent?.findings).toEqual([]);
  });
});

describe("hostile code", () => {
  test("no text makes a rule throw", () => {
    const pieces = [
      "{",
      "}",
      "(",
      ")",
      "[",
      "]",
      "=>",
      "async ",
      "await ",
      "class A ",
      "extends B ",
      "switch (a) ",
      "case 1: ",
      "/(a*)*$/",
      "`${",
      "}`",
      "x",
      " = ",
      ";",
      "for (var i of ",
      "try ",
      "catch ",
      "finally ",
      "return ",
      "import * as a from 'b'",
      "<T>",
      "enum E ",
      "@d ",
      "#p",
      "?.",
      "??",
      "...",
      "\n",
    ];
    let seed = 7;
    const random = (limit: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % limit;
    };
    let parsed = 0;
    for (let round = 0; round < 3000; round++) {
      const text = Array.from({ length: 1 + random(12) }, () => pieces[random(pieces.length)]).join("");
      const { findings } = lintText(random(2) ? "a.tsx" : "a.js", text);
      if (!findings.some((finding) => finding.rule === "syntax-error")) parsed++;
    }
    expect(parsed).toBeGreaterThan(20);
  });

  test("a name that is defined by itself ends no analysis in a loop", () => {
    const text = "const a = a.map(b).filter(c); const b = b; for (const k in a) { delete a[k]; a.sort(); } export const c = `${c}`;";
    expect(lintText("a.ts", text).findings.map((finding) => finding.rule)).toContain("use-before-declaration");
  });

  test("code nested beyond the stack is left out, not fatal", () => {
    const deepest = (): never => deepest();
    const rule: Rule = {
      name: "deep",
      severity: "error",
      summary: "",
      *check() {
        yield deepest();
      },
    };
    expect(lintText("a.js", "x;", { rules: [rule] })).toEqual({ findings: [], skipped: "nested too deeply to analyse" });
  });

  test("nesting that the parser does survive is analysed or left out", () => {
    for (const depth of [100, 1000, 4000]) {
      const { findings, skipped } = lintText("a.js", `export function f(a) { ${"if (a) { ".repeat(depth)}debugger;${"}".repeat(depth)} }`);
      expect(skipped ?? findings.map((finding) => finding.rule)).toEqual(
        skipped === undefined ? ["debugger-statement"] : "nested too deeply to analyse",
      );
    }
  });
});
