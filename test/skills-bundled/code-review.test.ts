import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import type { PermissionRequest, ToolResult } from "skillhost";
import { createTestHost } from "skillhost/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import lintTool from "../../skills/code-review/tools/lint.ts";
import { patience } from "../slowness.ts";

const skill = fileURLToPath(new URL("../../skills/code-review/", import.meta.url));
const installed = fileURLToPath(new URL("../../node_modules/", import.meta.url));
const reports = fileURLToPath(new URL("../fixtures/linter-reports/", import.meta.url));
let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "code-review-")));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, text = ""): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

const packages = { biome: "@biomejs/biome", eslint: "eslint", oxlint: "oxlint" };

/** Installs a program under the name of a linter. It finds what it was called with in `args`. */
function install(linter: keyof typeof packages, script: string, at = "."): void {
  const place = join(at, "node_modules", packages[linter]);
  write(join(place, "package.json"), JSON.stringify({ bin: { [linter]: "./bin/run.cjs" } }));
  const args = `require("node:fs").writeFileSync(${JSON.stringify(join(folder, "args.json"))}, JSON.stringify([process.cwd(), ...args]));`;
  write(join(place, "bin/run.cjs"), `const args = process.argv.slice(2); ${args}\n${script}`);
}

/** The arguments that the installed program was called with, after the folder that it ran in. */
const called = (): string[] => JSON.parse(readFileSync(join(folder, "args.json"), "utf8")) as string[];

/** A program that prints a recorded report, in which the project is in /project. */
function printing(report: string, exitCode: number): string {
  const text = readFileSync(join(reports, report), "utf8").replaceAll("/project", folder.replaceAll("\\", "/"));
  return `process.stdout.write(${JSON.stringify(text)}); process.exitCode = ${exitCode};`;
}

async function lint(args: { paths?: string[] } = {}, workingDirectory = folder): Promise<ToolResult> {
  await using server = await createTestHost({ skillDirectories: [skill], workingDirectory, watch: false });
  return await server.call("lint", args);
}

describe("the lint tool with a linter of the project", () => {
  test("runs Biome and reports its findings as text and as data", async () => {
    write("biome.json", "{}");
    write("src/a.js", "export const same = (a) => a === NaN;\ndebugger;\n");
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(join(installed, "@biomejs"), join(folder, "node_modules/@biomejs"), "junction");
    const result = await lint({ paths: ["src"] });
    expect(result.textResultForLlm).toMatchInlineSnapshot(`
      "src/a.js:1:28 error lint/correctness/useIsNan: Use the Number.isNaN function to compare with NaN.
      src/a.js:2:1 error lint/suspicious/noDebugger: This is an unexpected use of the debugger statement.
      Errors: 2, warnings: 0, info: 0. Linters: biome."
    `);
    expect(result).toMatchObject({ resultType: "success", structuredContent: { omitted: 0, linters: ["biome"] } });
  });

  test.each([
    [
      "oxlint",
      "oxlint.json",
      ".oxlintrc.json",
      "src/a.js:1:34 warning eslint(use-isnan): Checking equality with NaN will always return false",
    ],
    ["oxlint", "oxlint.json", ".oxlintrc.json", "src/bad.js:1:12 error oxlint: Unexpected token"],
    ["eslint", "eslint.json", "eslint.config.mjs", "src/a.js:1:28 error use-isnan: Use the isNaN function to compare with NaN."],
    ["eslint", "eslint.json", ".eslintrc.yml", "src/bad.js:1:12 error eslint: Parsing error: Unexpected token ;"],
    ["biome", "biome-2.2.json", "biome.jsonc", "src/a.js:2:1 error lint/suspicious/noDebugger: This is an unexpected use"],
    ["biome", "biome-2.2.json", ".biome.json", "src/bad.js:1:12 error parse: expected `)` but instead found `;`"],
  ] as const)("reads the recorded report of %s in %s, configured in %s", async (linter, report, config, finding) => {
    write(config, "{}");
    install(linter, printing(report, 1));
    const result = await lint();
    expect(result.textResultForLlm).toContain(finding);
    expect(result.resultType).toBe("success");
  });

  test.skipIf(process.platform === "win32")("runs Ruff from the virtual environment and never lets it change files", async () => {
    write("pyproject.toml", "[tool.ruff]\nfix = true\n");
    write("src/a.py");
    write(".venv/bin/ruff", `#!${process.execPath}\nconst args = process.argv.slice(2);\n${printing("ruff.json", 1)}`);
    write("args.json");
    chmodSync(join(folder, ".venv/bin/ruff"), 0o755);
    const result = await lint({ paths: ["src/a.py"] });
    expect(result.textResultForLlm).toContain("src/a.py:4:9 error B006: Do not use mutable data structures for argument defaults");
    expect(result.structuredContent).toMatchObject({ linters: ["ruff"] });
  });

  test("runs every linter that is set up and puts errors first", async () => {
    write("package.json", JSON.stringify({ devDependencies: { oxlint: "1", eslint: "9" } }));
    install("oxlint", printing("oxlint.json", 1));
    install("eslint", printing("eslint.json", 1));
    const { findings, linters } = (await lint()).structuredContent as { findings: { severity: string }[]; linters: string[] };
    expect(linters).toEqual(["oxlint", "eslint"]);
    expect(findings.map(({ severity }) => severity)).toEqual(["error", "error", "error", "error", "warning", "warning"]);
  });

  test("does not run a linter that is installed but that the project does not use", async () => {
    install("eslint", printing("eslint.json", 1));
    expect((await lint()).structuredContent).toMatchObject({ linters: ["syntax"], findings: [] });
    expect(existsSync(join(folder, "args.json"))).toBe(false);
  });

  test("runs a linter of the repository in the folder that it is configured in", async () => {
    mkdirSync(join(folder, ".git"));
    install("oxlint", printing("oxlint.json", 1));
    write("packages/a/.oxlintrc.json", "{}");
    write("packages/a/src/b.ts");
    const result = await lint({ paths: ["src/b.ts"] }, join(folder, "packages/a"));
    expect(called()).toEqual([join(folder, "packages/a"), "--format", "json", "--ignore-pattern=**/node_modules/**", "--", "./src/b.ts"]);
    expect(result.structuredContent).toMatchObject({ linters: ["oxlint"] });
  });

  test("runs no linter from above the repository or, outside of one, from above the working directory", async () => {
    install("oxlint", printing("oxlint.json", 1));
    write(".oxlintrc.json", "{}");
    write("repository/package/a.ts");
    expect((await lint({}, join(folder, "repository"))).structuredContent).toMatchObject({ linters: ["syntax"] });
    mkdirSync(join(folder, "repository/.git"));
    expect((await lint({}, join(folder, "repository/package"))).structuredContent).toMatchObject({ linters: ["syntax"] });
  });

  test("passes the name of a file that looks like an option as a path", async () => {
    write(".oxlintrc.json", "{}");
    write("--fix.js");
    install("oxlint", printing("oxlint.json", 1));
    await lint({ paths: ["--fix.js"] });
    expect(called().slice(-2)).toEqual(["--", "./--fix.js"]);
  });

  test("gives a linter only the files of its languages", async () => {
    for (const path of ["a.ts", "b.py", "c.md", "d.json"]) write(path);
    write("package.json", JSON.stringify({ devDependencies: { eslint: "9" } }));
    install("eslint", printing("eslint.json", 1));
    const result = await lint({ paths: ["a.ts", "b.py", "c.md", "d.json"] });
    expect(called().slice(-2)).toEqual(["--", "./a.ts"]);
    expect(result.textResultForLlm).toContain("Not checked, because the project has no linter for them: b.py, c.md, d.json");
  });

  test("keeps the answer short when there are thousands of findings", async () => {
    write("eslint.config.js");
    install(
      "eslint",
      `const messages = Array.from({ length: 20_000 }, (_, i) => ({ ruleId: "r", severity: i === 19_999 ? 2 : 1, line: i + 1, column: 1, message: "m\\u001b[31m\\n".repeat(100) }));
       process.stdout.write(JSON.stringify([{ filePath: "a.js", messages }])); process.exitCode = 1;`,
    );
    const result = await lint();
    const { findings, omitted } = result.structuredContent as { findings: { line: number; message: string }[]; omitted: number };
    expect(Buffer.byteLength(result.textResultForLlm)).toBeLessThan(33 * 1024);
    expect(findings[0]).toMatchObject({ line: 20_000, severity: "error" });
    expect(findings.length + omitted).toBe(20_000);
    expect(result.textResultForLlm).toContain(`… and ${omitted} more findings`);
    expect(findings[0]?.message).not.toMatch(/\p{Cc}/u);
  });

  test("reads a report that follows lines which the configuration printed", async () => {
    write("eslint.config.js");
    install("eslint", `console.log("[config] {loaded}"); ${printing("eslint.json", 1)}`);
    expect((await lint()).structuredContent).toMatchObject({ linters: ["eslint"], omitted: 0 });
  });

  test("answers as its output schema says", async () => {
    write("package.json", JSON.stringify({ dependencies: { oxlint: "1" } }));
    install("oxlint", printing("oxlint.json", 1));
    const { structuredContent } = await lint();
    expect(new Ajv().validate(lintTool.outputSchema as object, structuredContent)).toBe(true);
    expect((structuredContent as { findings: unknown[] }).findings).not.toEqual([]);
  });
});

describe("the lint tool with a linter that fails", () => {
  test.each([
    [
      "exits with 2",
      `console.error("Oops! in ${"$"}{process.cwd()}/eslint.config.js"); process.exitCode = 2;`,
      "eslint failed (exit code 2):\nOops!",
    ],
    [
      "writes no report",
      `process.stdout.write("No files found to lint."); process.exitCode = 1;`,
      "eslint failed (exit code 1):\nNo files found",
    ],
    ["writes a report of another form", `process.stdout.write('{"results":[]}');`, "eslint failed (exit code 0)"],
    [
      "reports no findings and exits with 1",
      `console.error("Nothing processed."); process.stdout.write("[]"); process.exitCode = 1;`,
      "Nothing",
    ],
    ["writes thousands of lines", `for (let i = 0; i < 9999; i++) console.error("line " + i); process.exitCode = 2;`, "line 9998"],
    ["writes more than is read", `process.stdout.write("[".repeat(65 * 1024 * 1024));`, "eslint reported more than"],
    ["is ended by a signal", `process.kill(process.pid, "SIGKILL"); setTimeout(() => {}, 60_000);`, "eslint failed (exit code none)"],
  ])("reports the reason as a failure when it %s", async (_how, script, reason) => {
    write("eslint.config.js");
    install("eslint", script.replace("${process.cwd()}", "' + process.cwd() + '"));
    const result = await lint();
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toContain(reason);
    expect(result.textResultForLlm.length).toBeLessThan(3000);
    expect(result.textResultForLlm).not.toContain(folder);
  });

  test("still reports the findings of the others", async () => {
    write("package.json", JSON.stringify({ devDependencies: { oxlint: "1", eslint: "9" } }));
    install("oxlint", printing("oxlint.json", 1));
    install("eslint", `console.error("No configuration."); process.exitCode = 2;`);
    const result = await lint();
    expect(result).toMatchObject({ resultType: "success", structuredContent: { linters: ["oxlint"] } });
    expect(result.textResultForLlm).toContain("eslint failed (exit code 2):\nNo configuration.");
  });

  test("says that a linter is set up but not installed", async () => {
    write("eslint.config.js");
    write("ruff.toml");
    write("a.py");
    vi.stubEnv("PATH", folder);
    const result = await lint().finally(() => vi.unstubAllEnvs());
    expect(result.textResultForLlm).toContain("eslint is set up in . but not installed.");
    expect(result.textResultForLlm).toContain("ruff failed: Command ruff was not found.");
    expect(result.structuredContent).toMatchObject({ linters: ["syntax"] });
  });

  test("ends all processes of the linter when the call is cancelled", async () => {
    write("eslint.config.js");
    const child = `setInterval(() => {}, 1000); require("node:fs").writeFileSync("pid", String(process.pid));`;
    install("eslint", `require("node:child_process").spawnSync(process.execPath, ["-e", ${JSON.stringify(child)}]);`);
    await using server = await createTestHost({ skillDirectories: [skill], workingDirectory: folder, watch: false });
    const cancelling = new AbortController();
    const called = server.session.callTool("lint", {}, { signal: cancelling.signal });
    const pid = await vi.waitFor(() => Number(readFileSync(join(folder, "pid"), "utf8") || undefined), patience(20_000));
    cancelling.abort();
    expect((await called).resultType).not.toBe("success");
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false), patience(20_000));
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Until init has collected it, a killed process is a zombie.
  return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}

describe("the lint tool without a linter", () => {
  test("reports the syntax errors of JavaScript and TypeScript, and that nothing else was checked", async () => {
    write("src/bad.ts", "\uFEFFconst a = 1;\nconst b = (;\n");
    write("src/twice.mjs", "/* 😀 */ let a; let a;\n");
    write("src/jsx.js", "export const x = <div/>;\n");
    write("src/types.cts", "const a: number = 1; module.exports = a;\n");
    for (const path of ["node_modules/x/a.js", "dist/a.js", ".cache/a.js", "notes.md"]) write(path, "const (");
    const result = await lint();
    expect(result.textResultForLlm).toMatchInlineSnapshot(`
      "src/bad.ts:2:12 error syntax: Unexpected token
      src/twice.mjs:1:14 error syntax: Identifier \`a\` has already been declared
      Errors: 2, warnings: 0, info: 0. Linters: syntax check only, because the project has no linter for these files."
    `);
  });

  test("says which file is nested too deeply for the parser", async () => {
    write("deep.js", `x = ${"[".repeat(100_000)}${"]".repeat(100_000)};`);
    const result = await lint();
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toContain("syntax failed");
    expect(result.textResultForLlm).toMatch(/Parsing .*deep\.js$/);
  });

  test("names files that are too large to parse", async () => {
    write("big.js", `// ${"x".repeat(1024 * 1024)}`);
    expect((await lint({ paths: ["big.js"] })).textResultForLlm).toContain(
      "big.js:1:1 warning syntax: Not checked: larger than 1048576 bytes.",
    );
  });

  test("says that it checked nothing when no linter is for the files", async () => {
    write("a.py");
    expect(await lint({ paths: ["a.py"] })).toMatchObject({
      resultType: "failure",
      textResultForLlm: "Not checked, because the project has no linter for them: a.py",
    });
  });

  test.each([
    ["..", "is outside the working directory"],
    ["/", "is outside the working directory"],
    ["link", "is outside the working directory"],
    ["missing.ts", '"missing.ts" was not found'],
  ])("refuses the path %s without naming a folder of the host", async (path, reason) => {
    symlinkSync(tmpdir(), join(folder, "link"), "junction");
    const result = await lint({ paths: [path] });
    expect(result).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringContaining(reason) });
    expect(result.textResultForLlm).not.toContain(folder);
  });
});

describe("the permission that the lint tool asks for", () => {
  async function asked(decide: (request: PermissionRequest) => void = () => {}): Promise<readonly [PermissionRequest, ToolResult]> {
    let request: PermissionRequest | undefined;
    await using server = await createTestHost({
      skillDirectories: [skill],
      workingDirectory: folder,
      watch: false,
      session: {
        onPermissionRequest: (given) => {
          request = given;
          decide(given);
          return { kind: "approve-once" };
        },
      },
    });
    const result = await server.call("lint", { paths: ["a b.ts"] });
    return [request as PermissionRequest, result];
  }

  test("is that of a command, with the program and its arguments, when a linter would run", async () => {
    write("a b.ts");
    write("package.json", JSON.stringify({ devDependencies: { eslint: "9" } }));
    install("eslint", printing("eslint.json", 1));
    const [request] = await asked();
    expect(request).toMatchObject({
      kind: "shell",
      fullCommandText: "node_modules/eslint/bin/run.cjs --format json --no-error-on-unmatched-pattern -- './a b.ts'",
      intention: "Lint with eslint",
      warning: expect.stringContaining("code of the project"),
      commands: [{ identifier: "node_modules/eslint/bin/run.cjs", readOnly: false }],
      possiblePaths: [join(folder, "a b.ts")],
    });
  });

  test("is that of reading when only syntax is checked", async () => {
    write("a b.ts");
    const [request] = await asked();
    expect(request).toMatchObject({ kind: "read", path: join(folder, "a b.ts") });
  });

  test("covers no linter that appears while the user decides", async () => {
    write("a b.ts");
    write("package.json", JSON.stringify({ devDependencies: { eslint: "9" } }));
    const [request, result] = await asked(() => install("eslint", printing("eslint.json", 1)));
    expect(request.kind).toBe("read");
    expect(result.structuredContent).toMatchObject({ linters: ["syntax"] });
    expect(existsSync(join(folder, "args.json"))).toBe(false);
  });

  test("is held against the rules for commands", async () => {
    write("a b.ts");
    write("package.json", JSON.stringify({ devDependencies: { eslint: "9" } }));
    install("eslint", printing("eslint.json", 1));
    await using server = await createTestHost({
      skillDirectories: [skill],
      workingDirectory: folder,
      watch: false,
      session: { permissions: { deny: ["shell(run.cjs)"] } },
    });
    expect((await server.call("lint", {})).resultType).toBe("denied");
    expect(existsSync(join(folder, "args.json"))).toBe(false);
  });
});
