import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { findTestRun } from "../../../../plugins/workspace-tools/operations/test-runners.ts";
import { put, tempFolder } from "../../../skills/kit.ts";
import { patience } from "../../../slowness.ts";
import { closeEditors, openEditor } from "../workspace-kit.ts";

afterAll(closeEditors);

afterEach(() => void vi.unstubAllEnvs());

describe("run_in_terminal", () => {
  test.each<[command: string, says: string]>([
    ["echo a; echo b >&2; echo c", "a\nb\nc\n"],
    ["true", "Command exited with code 0"],
    ["printf x; exit 3", "x\nCommand exited with code 3"],
    ["cat", "Command exited with code 0"],
    ["pwd", "."],
  ])("returns the output of %j", async (command, says) => {
    const { folder, call } = await openEditor();
    const result = await call("run_in_terminal", { command, explanation: "x" });
    expect([result.resultType, result.textResultForLlm]).toEqual(["success", says === "." ? `${folder}\n` : says]);
  });

  test("stops a command that takes too long, and returns its output", async () => {
    const { call } = await openEditor();
    const result = await call("run_in_terminal", { command: "echo first; sleep 60", timeout: patience(500) });
    expect(result).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringMatching(
        /^first\n\[The command was stopped after [\d.]+ seconds\. Give a longer timeout, or run it with isBackground\.\]$/,
      ),
    });
  });

  test("keeps a background command running until the session ends", async () => {
    const { text, session } = await openEditor();
    const said = await text("run_in_terminal", { command: "echo up; exec sleep 60", isBackground: true });
    const [, pid = ""] = /^up\n\[The command continues in the background\. Its process id is (\d+)\.\]$/.exec(said) ?? [];
    expect(existsSync(`/proc/${pid}`) || process.platform !== "linux").toBe(true);
    await session.disconnect();
    await expect.poll(() => isRunning(Number(pid))).toBe(false);
  });

  test("reports a background command that fails at once", async () => {
    const { text } = await openEditor();
    expect(await text("run_in_terminal", { command: "echo no; exit 1", isBackground: true })).toBe("no\nCommand exited with code 1");
  });

  test("does not pass secrets on", async () => {
    vi.stubEnv("MY_API_TOKEN", "SECRET");
    const { text } = await openEditor();
    expect(await text("run_in_terminal", { command: "env" })).not.toContain("SECRET");
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // No process has this id any more.
    return false;
  }
}

describe("the command for tests", () => {
  const manifest = (fields: object): string => JSON.stringify(fields);
  const ofScript = manifest({ scripts: { test: "vitest run" }, devDependencies: { vitest: "4" } });

  test.each<[what: string, files: Record<string, string>, only: readonly string[], line: string]>([
    ["a test script", { "package.json": ofScript }, [], "npm test"],
    ["some files by it", { "package.json": ofScript }, ["a.test.ts"], "npm test -- a.test.ts"],
    ["it with pnpm", { "package.json": ofScript, "pnpm-lock.yaml": "" }, [], "pnpm test"],
    ["it with yarn", { "package.json": ofScript, "yarn.lock": "" }, ["a.ts"], "yarn test a.ts"],
    ["it with bun", { "package.json": ofScript, "bun.lock": "" }, [], "bun run test"],
    ["it with what is named", { "package.json": manifest({ packageManager: "pnpm@9.1.0", scripts: { test: "x" } }) }, [], "pnpm test"],
    ["vitest without a script", { "package.json": manifest({ devDependencies: { vitest: "4" } }) }, ["a.ts"], "npx --no vitest run a.ts"],
    [
      "jest, past npm's own script",
      { "package.json": manifest({ scripts: { test: 'echo "Error: no test specified" && exit 1' }, dependencies: { jest: "1" } }) },
      [],
      "npx --no jest",
    ],
    ["pytest by its file", { "pytest.ini": "" }, ["tests/test_a.py"], "python3 -m pytest tests/test_a.py"],
    ["pytest by the project's", { "pyproject.toml": "[tool.pytest.ini_options]\n" }, [], "python3 -m pytest"],
    ["pytest in a project with tests", { "pyproject.toml": "", "tests/test_a.py": "" }, [], "python3 -m pytest"],
    ["Maven", { "pom.xml": "" }, ["src/test/java/ATest.java"], "mvn --batch-mode --no-transfer-progress test -Dtest=ATest"],
    ["Gradle", { "build.gradle.kts": "" }, ["src/test/java/ATest.java"], "gradle test --console=plain --tests *ATest"],
    ["Go", { "go.mod": "" }, [], "go test ./..."],
    ["a package of Go", { "go.mod": "" }, ["sub/a_test.go", "sub/b_test.go"], "go test ./sub"],
    ["Cargo", { "Cargo.toml": "" }, ["tests/api.rs"], "cargo test --test api"],
    ["Python beside a package.json without tests", { "package.json": "{}", "pytest.ini": "" }, [], "python3 -m pytest"],
    ["past a package.json that is broken", { "package.json": "{", "go.mod": "" }, [], "go test ./..."],
    [
      "past one that is something else",
      { "package.json": '{"scripts":[1],"dependencies":"x","__proto__":{"scripts":{"test":"x"}}}', "go.mod": "" },
      [],
      "go test ./...",
    ],
  ])("is detected: %s", async (_what, files, only, line) => {
    const run = await findTestRun(tempFolder(files), only);
    expect([run?.command, ...(run?.args ?? [])].join(" ")).toBe(line);
  });

  test("uses the wrapper of the project", async () => {
    const folder = tempFolder({ "pom.xml": "", mvnw: "" });
    expect((await findTestRun(folder, []))?.command).toBe(join(folder, process.platform === "win32" ? "mvnw.cmd" : "mvnw"));
  });
});

describe("run_tests", () => {
  const manifest = JSON.stringify({ scripts: { test: "node --test" } });

  test("runs the given files, and reports failures", async () => {
    const files = { "package.json": manifest, "good.test.js": "", "bad.test.js": "throw new Error('broken here');\n" };
    const { folder, call, asked } = await openEditor(files);
    const result = await call("run_tests", { files: [join(folder, "bad.test.js")] });
    expect(result.resultType).toBe("success");
    expect(result.textResultForLlm).toMatch(
      /^Exit code: 1\n\$ npm test -- bad\.test\.js \(because of the script "test" of package\.json\)\n[\s\S]*broken here[\s\S]*fail 1/,
    );
    expect(asked).toMatchObject([{ kind: "shell", fullCommandText: "npm test -- bad.test.js", commands: [{ identifier: "npm test" }] }]);
  });

  test("runs a given command instead, and stops it if it takes too long", async () => {
    const { text, call } = await openEditor();
    expect(await text("run_tests", { command: "echo fine | cat" })).toBe("Exit code: 0\n$ echo fine | cat\nfine");
    expect(await call("run_tests", { command: "echo slow; sleep 60", timeout: patience(500) })).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringMatching(/^The tests were stopped after [\d.]+ seconds\.\n\$ echo slow; sleep 60\nslow$/),
    });
  });

  test("cuts long output in the middle", async () => {
    const { text } = await openEditor();
    const said = await text("run_tests", { command: "seq 1 20000; echo the end" });
    expect(said.length).toBeLessThan(31_000);
    expect(said).toMatch(
      /^Exit code: 0\n\$ seq 1 20000; echo the end\n1\n2\n[\s\S]*\[\d+ characters of output omitted\.\][\s\S]*20000\nthe end$/,
    );
  });

  test.each<[what: string, args: object, says: RegExp]>([
    [
      "without a known test runner",
      {},
      /^How the tests are run could not be found out: there is none of package\.json .* Give a command\.$/,
    ],
    ["both files and a command", { files: ["a.js"], command: "x" }, /^Give either files or a command\.$/],
  ])("refuses %s without asking the user", async (_what, args, says) => {
    const { call, asked } = await openEditor({ "a.js": "" });
    expect(await call("run_tests", args)).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringMatching(says) });
    expect(asked).toEqual([]);
  });

  test("says what is missing on the machine", async () => {
    vi.stubEnv("PATH", tempFolder());
    const { call } = await openEditor({ "go.mod": "" });
    expect(await call("run_tests")).toMatchObject({
      resultType: "failure",
      textResultForLlm: "The tests could not be run: there is no go on this machine.\n$ go test ./... (because of go.mod)",
    });
  });

  test("runs the permitted command, even if the project changes meanwhile", async () => {
    let change = (): void => {};
    const { folder, text } = await openEditor({ "pom.xml": "", mvnw: "#!/bin/sh\necho by the wrapper\n" }, {}, () => {
      change();
      return { kind: "approve-once" };
    });
    chmodSync(join(folder, "mvnw"), 0o755);
    change = () => put(join(folder, "package.json"), manifest);
    expect(await text("run_tests")).toMatch(/^Exit code: 0\n\$ .*mvnw .*\(because of pom\.xml\)\nby the wrapper$/);
  });

  test("does not pass a file name as an option", async () => {
    const { asked, call } = await openEditor({ "package.json": manifest, "--version": "" }, {}, () => ({ kind: "reject" }));
    await call("run_tests", { files: ["./--version"] });
    expect(asked[0]?.["fullCommandText"]).toBe("npm test -- ./--version");
  });
});
