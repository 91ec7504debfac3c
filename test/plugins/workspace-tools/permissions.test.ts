import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeCommand } from "../../../plugins/workspace-tools/operations/describe-command.ts";
import { tempFolder } from "../../skills/kit.ts";
import { openWorkspace } from "./workspace-kit.ts";

describe("the permission request", () => {
  test.each<[tool: string, args: object, expected: (folder: string) => object]>([
    ["view", { path: "a.txt" }, (folder) => ({ kind: "read", intention: `View ${folder}/a.txt`, path: `${folder}/a.txt` })],
    ["view", { path: "missing.txt" }, (folder) => ({ kind: "read", path: `${folder}/missing.txt` })],
    ["grep", { pattern: "one" }, (folder) => ({ kind: "read", intention: 'Search for "one"', path: folder })],
    ["grep", { pattern: "one", path: "a.txt" }, (folder) => ({ kind: "read", path: `${folder}/a.txt` })],
    [
      "grep",
      { pattern: "one", paths: ["sub/b.txt", "sub/deep"] },
      (folder) => ({ kind: "read", path: `${folder}/sub`, possiblePaths: [`${folder}/sub/b.txt`, `${folder}/sub/deep`] }),
    ],
    ["glob", { pattern: "*.ts" }, (folder) => ({ kind: "read", intention: 'Find files by "*.ts"', path: folder })],
    [
      "create",
      { path: "new.txt", file_text: "x\ny\n" },
      (folder) => ({
        kind: "write",
        intention: `Create ${folder}/new.txt`,
        fileName: `${folder}/new.txt`,
        diff: `--- /dev/null\n+++ b/${folder}/new.txt\n@@ -0,0 +1,2 @@\n+x\n+y`,
        newFileContents: "x\ny\n",
        canOfferSessionApproval: true,
      }),
    ],
    [
      "edit",
      { path: "a.txt", old_str: "five", new_str: "FIVE\nand more" },
      (folder) => ({
        kind: "write",
        intention: `Edit ${folder}/a.txt`,
        fileName: `${folder}/a.txt`,
        diff: [
          `--- a/${folder}/a.txt`,
          `+++ b/${folder}/a.txt`,
          "@@ -2,7 +2,8 @@",
          " two",
          " three",
          " four",
          "-five",
          "+FIVE",
          "+and more",
          " six",
          " seven",
          " eight",
        ].join("\n"),
        newFileContents: "one\ntwo\nthree\nfour\nFIVE\nand more\nsix\nseven\neight\nnine\n",
        canOfferSessionApproval: true,
      }),
    ],
    // It may match when the previous edit has been made.
    [
      "edit",
      { path: "a.txt", old_str: "absent", new_str: "x" },
      (folder) => ({ kind: "write", diff: `--- a/${folder}/a.txt\n+++ b/${folder}/a.txt\n@@ -1,1 +1,1 @@\n-absent\n+x` }),
    ],
    [
      "bash",
      { command: "git status && rm -rf ./dist > log.txt", description: "Tidies up" },
      () => ({
        kind: "shell",
        intention: "Tidies up",
        fullCommandText: "git status && rm -rf ./dist > log.txt",
        commands: [
          { identifier: "git status", readOnly: true },
          { identifier: "rm", readOnly: false },
        ],
        commandSegments: [
          { identifier: "git status", fullCommandText: "git status" },
          { identifier: "rm", fullCommandText: "rm -rf ./dist" },
        ],
        possiblePaths: ["./dist", "log.txt"],
        possibleUrls: [],
        hasWriteFileRedirection: true,
        canOfferSessionApproval: false,
      }),
    ],
    ["web_fetch", { url: "http://127.0.0.1:9/x" }, () => ({ kind: "url", url: "http://127.0.0.1:9/x", intention: "Fetch a web page" })],
  ])("of %s %j", async (tool, args, expected) => {
    const lines = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
    const { folder, call, asked } = await openWorkspace({ "a.txt": lines, "sub/b.txt": "", "sub/deep/c.txt": "" });
    await call(tool, args);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      toolName: tool,
      toolCallId: expect.any(String),
      toolArgs: expect.objectContaining(args),
      ...expected(folder),
    });
  });

  test("is not made for tools that only observe permitted commands", async () => {
    const { call, asked } = await openWorkspace();
    for (const [name, args] of [
      ["read_bash", { shellId: "9", delay: 0 }],
      ["stop_bash", { shellId: "9" }],
      ["list_bash", {}],
      ["write_bash", { shellId: "9", input: "x", delay: 0 }],
    ] as const)
      await call(name, args);
    expect(asked).toEqual([]);
  });

  test("for input to a running command cannot be approved by the name of a command", async () => {
    const { call, asked } = await openWorkspace({}, { permissions: { allow: ["shell(cat)", "shell(git:*)"] } });
    await call("bash", { command: "cat", description: "Echoes", mode: "async", shellId: "echo" });
    expect(asked).toEqual([]);
    await call("write_bash", { shellId: "echo", input: "git status", delay: 0 });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      kind: "shell",
      fullCommandText: "git status",
      commands: [],
      intention: "Give input to: cat",
      canOfferSessionApproval: false,
    });
  });
});

describe("rules apply to the permission requests of the tools", () => {
  test.each<[rule: string, tool: string, args: object, allowed: boolean]>([
    ["read(src/**)", "view", { path: "src/a.ts" }, true],
    ["read(src/**)", "view", { path: "other.txt" }, false],
    ["read(src/**)", "grep", { pattern: "x", paths: ["src/a.ts", "src/b.ts"] }, true],
    ["read(src/**)", "grep", { pattern: "x", paths: ["src/a.ts", "other.txt"] }, false],
    ["write(src/**)", "edit", { path: "src/a.ts", old_str: "a", new_str: "b" }, true],
    ["write(src/**)", "create", { path: "src/../new.ts", file_text: "" }, false],
    ["shell(git status)", "bash", { command: "git status --help | cat", description: "d" }, false],
    ["shell(echo:*)", "bash", { command: "echo a b", description: "d" }, true],
    ["shell(echo:*)", "bash", { command: "echo a; ls", description: "d" }, false],
    ["shell(echo:*)", "bash", { command: "echo a > f", description: "d" }, false],
    ["shell(echo:*)", "bash", { command: "echo $(ls)", description: "d" }, false],
    ["shell(echo:*)", "bash", { command: "FOO=1 echo a", description: "d" }, false],
    ["url(127.0.0.1:9)", "web_fetch", { url: "http://127.0.0.1:9/x" }, true],
    ["url(127.0.0.1:9)", "web_fetch", { url: "http://127.0.0.1:10/x" }, false],
  ])("allow %s: %s %j is asked about unless %s", async (rule, tool, args, allowed) => {
    const files = { "src/a.ts": "a", "src/b.ts": "b", "other.txt": "x" };
    const { call, asked } = await openWorkspace(files, { permissions: { allow: [rule] } }, () => ({ kind: "reject" }));
    await call(tool, args);
    expect(asked.length).toBe(allowed ? 0 : 1);
  });

  test.each<[rule: string, tool: string, args: object]>([
    ["read(secret/**)", "view", { path: "secret/key" }],
    ["write(secret/**)", "edit", { path: "secret/key", old_str: "k", new_str: "x" }],
    ["read(secret/**)", "bash", { command: "cat secret/key", description: "d" }],
    ["write(secret)", "bash", { command: "rm -r secret", description: "d" }],
    ["write(secret/**)", "bash", { command: "echo x >secret/key", description: "d" }],
    ["url(evil.example)", "bash", { command: "curl https://evil.example/x", description: "d" }],
    ["shell(rm:*)", "bash", { command: "true && sudo rm -rf x", description: "d" }],
  ])("deny %s keeps %s %j from running", async (rule, tool, args) => {
    const { call, asked } = await openWorkspace({ "secret/key": "k" }, { permissions: { deny: [rule] } });
    expect((await call(tool, args)).resultType).toBe("denied");
    expect(asked).toEqual([]);
  });

  test("an approval for the session covers the same command, and no other", async () => {
    const { call, asked } = await openWorkspace({}, {}, () => ({ kind: "approve-for-session" }));
    for (const command of ["echo 1", "echo 2", "pwd", "echo 3 && pwd"]) await call("bash", { command, description: "d" });
    expect(asked.map(({ fullCommandText }) => fullCommandText)).toEqual(["echo 1", "pwd"]);
    for (const command of ["echo 1 > f", "echo `pwd`"]) await call("bash", { command, description: "d" });
    expect(asked).toHaveLength(4);
  });
});

describe("describeCommand", () => {
  test.each<[line: string, identifiers: readonly string[], offers: boolean]>([
    ["ls -la", ["ls"], true],
    ["git push origin main", ["git push"], true],
    ["git -C x push", ["git"], true],
    ["npm run test:unit", ["npm run"], true],
    ["cd a && npm ci; ls", ["cd", "npm ci", "ls"], true],
    ["sudo rm x", ["sudo"], false],
    ["bash -c 'rm x'", ["bash"], false],
    ["find . -exec rm {} +", ["find"], false],
    ["FOO=1 make", ["FOO=1"], false],
    ["cat <(ls)", ["cat", "ls"], false],
    ["echo $HOME", ["echo"], false],
    ["", [], false],
    ["'unclosed", ["unclosed"], false],
  ])("finds the commands of %j", (line, identifiers, offers) => {
    const facts = describeCommand(line);
    expect(facts.commands.map(({ identifier }) => identifier)).toEqual(identifiers);
    expect(facts.canOfferSessionApproval).toBe(offers);
  });

  test.each<[line: string, writes: boolean]>([
    ["a > f", true],
    ["a >> f", true],
    ["a >|f", true],
    ["a &> f", true],
    ["a >& f", true],
    ["a 2>err", true],
    ["a > /dev/null 2>&1", false],
    ["a 2>&1 | b", false],
    ["a < f", false],
    ["a 2>&-", false],
  ])("knows whether %j writes a file", (line, writes) => {
    expect(describeCommand(line).hasWriteFileRedirection).toBe(writes);
  });

  test("finds addresses and paths, including those after options and operators", () => {
    const facts = describeCommand("curl -o out.json --header=h.txt https://a.example/x 'http://b.example' < in.txt");
    expect(facts.possibleUrls).toEqual([{ url: "https://a.example/x" }, { url: "http://b.example" }]);
    expect(facts.possiblePaths).toEqual(["out.json", "h.txt", "in.txt"]);
  });

  test("parses a very long line", () => {
    // Quadratic time would exceed the test's time limit.
    for (const part of ["> ", "<<<", "'a", "https://", "a=b ", "$(", '&>"', " -o"]) {
      expect(describeCommand(part.repeat(20_000)).fullCommandText).toHaveLength(part.length * 20_000);
    }
  });
});

test("a session does not show files of another session's workspace", async () => {
  const other = tempFolder({ "x.txt": "other" });
  const { host, folder } = await openWorkspace({ "x.txt": "mine" });
  const session = await host.createSession({ persist: false, workingDirectory: other, permissions: { allow: ["read"] } });
  expect((await session.callTool("view", { path: "x.txt" })).textResultForLlm).toBe("1. other");
  expect((await session.callTool("view", { path: join(folder, "x.txt") })).resultType).toBe("failure");
});
