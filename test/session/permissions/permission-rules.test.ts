import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { compilePermissionRules, type PermissionRuleOptions } from "../../../src/session/permissions/permission-rules.ts";
import type { PermissionRequest, Tool, ToolKind } from "../../../src/tools/tool.ts";
import { rounds } from "../../rounds.ts";
import { toolOf } from "../session-kit.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "rules-test-")));
const cwd = join(root, "project");
mkdirSync(join(cwd, "src", "deep"), { recursive: true });
mkdirSync(join(cwd, "secrets"));
mkdirSync(join(root, "outside"));
writeFileSync(join(cwd, "src", "a.ts"), "");
symlinkSync(join(root, "outside"), join(cwd, "src", "way-out"), "junction");
symlinkSync(join(cwd, "src"), join(cwd, "alias"), "junction");
symlinkSync(join(cwd, "secrets"), join(cwd, "src", "harmless"), "junction");
symlinkSync(join(root, "nowhere"), join(cwd, "src", "dangling"), "junction");
symlinkSync(cwd, join(root, "project-link"), "junction");
afterAll(() => rmSync(root, { recursive: true, force: true }));

const plain = (name: string, kind: ToolKind = "skill", source = "s", nativeName = name): Tool =>
  toolOf(kind, source, { name, handler: () => "ran" }, nativeName);
const describing = (name = "t"): Tool => toolOf("skill", "s", { name, handler: () => "ran", permission: () => null });

/** The verdict of rules on a call: `deny`, `ask`, `allow` or undefined. */
function judge(
  options: PermissionRuleOptions,
  tool: Tool,
  call: { request?: PermissionRequest | undefined; args?: unknown } = {},
  from = cwd,
): string | undefined {
  return compilePermissionRules(options, from).judge({ tool, request: call.request, args: call.args ?? {} })?.kind;
}

/** The verdict of one rule in each of the lists. */
function effects(rule: string, tool: Tool, call: { request?: PermissionRequest; args?: unknown } = {}, from = cwd): string {
  const [allows, denies] = [judge({ allow: [rule] }, tool, call, from) === "allow", judge({ deny: [rule] }, tool, call, from) === "deny"];
  expect(judge({ ask: [rule] }, tool, call, from)).toBe(denies ? "ask" : undefined);
  return `${allows ? "allows" : "-"} ${denies ? "denies" : "-"}`;
}

const both = "allows denies";
const neither = "- -";
const onlyDenies = "- denies";

describe("rules by tool name", () => {
  test.each<[string, string, string]>([
    ["lint", "lint", both],
    [" lint ", "lint", both],
    ["lint", "lint2", neither],
    ["lint", "Lint", neither],
    ["lint*", "lint2", both],
    ["*", "anything", both],
    ["lin?", "lint", both],
    ["tool(lint)", "lint", both],
    ["tool(read)", "read", both],
    ["lint(*)", "lint", both],
    ["lint(**)", "lint", both],
    // A tool may have the name of a kind, which alone does not allow it.
    ["read", "read", onlyDenies],
    ["shell", "shell", onlyDenies],
    ["mcp", "mcp", onlyDenies],
    ["tool", "tool", both],
    ["constructor", "lint", neither],
    ["__proto__", "lint", neither],
  ])("the tool rule %s on %s gives %s", (rule, name, expected) => {
    expect(effects(rule, plain(name))).toBe(expected);
  });
});

describe("rules for tools of servers", () => {
  const search = plain("github-search", "mcp", "github", "search");
  test.each<[string, Tool, string]>([
    ["mcp", search, both],
    ["mcp(*)", search, both],
    ["mcp(github)", search, both],
    ["mcp(github:*)", search, both],
    ["mcp(github/*)", search, both],
    ["mcp(github/search)", search, both],
    ["mcp(github/sea*)", search, both],
    ["github-search", search, both],
    ["mcp(github/searc)", search, neither],
    ["mcp(git:*)", search, neither],
    ["mcp(git*)", search, neither],
    ["mcp(github/other)", search, neither],
    // Neither a server's name nor a tool that is not a server's can match rules of another server.
    ["mcp(github/*)", plain("x", "mcp", "github/evil", "search"), neither],
    ["mcp(github:*)", plain("x", "mcp", "github:evil", "search"), neither],
    ["mcp(github)", plain("x", "mcp", "github2", "search"), neither],
    ["mcp(github/*)", plain("search", "skill", "github"), neither],
    ["mcp", plain("search", "skill", "github"), neither],
    ["mcp(github/repo/*)", plain("x", "mcp", "github", "repo/list"), both],
  ])("the server rule %s: case %#", (rule, tool, expected) => {
    expect(effects(rule, tool)).toBe(expected);
  });
});

describe("rules for commands", () => {
  const run = (fullCommandText: string, more: object = {}): PermissionRequest => ({ kind: "shell", fullCommandText, ...more });
  test.each<[string, string, string]>([
    ["shell(git status)", "git status", both],
    ["shell(git status)", "git  \t status ", both],
    ["shell(git status)", "'git' st\"at\"us", both],
    ["shell(git status)", "git status --short", onlyDenies],
    ["shell(git status)", "git statusx", neither],
    ["shell(git:*)", "git push origin main", both],
    ["shell(git:*)", "git", both],
    ["shell(git *)", "git push", both],
    ["shell(git:*)", "gitea push", neither],
    ["shell(git push:*)", "git push --force", both],
    ["shell(npm run test:*)", "npm run test -- -t x", both],
    ["shell(npm run test:*)", "npm run testall", neither],
    ["shell", "anything | at all > x", both],
    ["shell(*)", "anything && at all", both],
    // Nothing may be added to an allowed command.
    ["shell(git status)", "git status && rm -rf /", onlyDenies],
    ["shell(git status)", "rm -rf / ; git status", onlyDenies],
    ["shell(git:*)", "git status; rm -rf /", onlyDenies],
    ["shell(git:*)", "git status | sh", onlyDenies],
    ["shell(git:*)", "git status & rm x", onlyDenies],
    ["shell(git:*)", "git status\nrm x", onlyDenies],
    ["shell(git:*)", "git status\rrm x", onlyDenies],
    ["shell(git:*)", "git log $(rm -rf /)", onlyDenies],
    ["shell(git:*)", 'git log "$(rm -rf /)"', onlyDenies],
    ["shell(git:*)", "git log `rm x`", onlyDenies],
    ["shell(git:*)", "git diff <(rm x)", onlyDenies],
    ["shell(git:*)", "git log > /etc/passwd", onlyDenies],
    ["shell(git:*)", "git log 2>/etc/passwd", onlyDenies],
    ["shell(git:*)", "git log < x", onlyDenies],
    ["shell(git:*)", "git log $HOME", onlyDenies],
    ["shell(git:*)", "GIT_PAGER='rm -rf /' git log", onlyDenies],
    ["shell(git:*)", "git log # and more", onlyDenies],
    ["shell(git:*)", "git log 'unclosed", onlyDenies],
    ["shell(git:*)", 'git log "unclosed', onlyDenies],
    ["shell(git:*)", "git log \\", onlyDenies],
    ["shell(git:*)", "(git log)", onlyDenies],
    ["shell(echo:*)", "echo 'a && b; $(c) > d'", both],
    ["shell(echo:*)", 'echo "a && b; > d"', both],
    ["shell(echo:*)", "echo a\\ \\&\\& b", both],
    // A forbidden command is found in any notation.
    ["shell(rm:*)", "git status && rm -rf /", onlyDenies],
    ["shell(rm)", "rm -rf /", onlyDenies],
    ["shell(rm:*)", "/bin/rm -rf /", onlyDenies],
    ["shell(rm:*)", "\\rm x", both],
    ["shell(rm:*)", "r'm' x", both],
    ["shell(rm:*)", "A=1 B=2 rm x", onlyDenies],
    ["shell(rm:*)", "sudo -u root rm x", onlyDenies],
    ["shell(rm:*)", "env A=1 rm x", onlyDenies],
    ["shell(rm:*)", "find . | xargs -n 1 rm", onlyDenies],
    ["shell(rm:*)", "bash -c 'cd / && rm -rf .'", onlyDenies],
    ["shell(rm:*)", "sh -c \"sh -c 'rm x'\"", onlyDenies],
    ["shell(rm:*)", "echo $(rm x)", onlyDenies],
    ["shell(rm:*)", 'echo "`rm x`"', onlyDenies],
    ["shell(rm:*)", ">out rm x", onlyDenies],
    ["shell(rm:*)", "if true; then rm x; fi", onlyDenies],
    ["shell(rm:*)", "{ rm x; }", onlyDenies],
    ["shell(rm:*)", "! rm x", onlyDenies],
    ["shell(rm:*)", "r\\\nm x", both],
    ["shell(git push)", "git -C /elsewhere push origin", onlyDenies],
    ["shell(git push)", "git --no-pager -c a=b push", onlyDenies],
    // Other commands are not affected.
    ["shell(rm:*)", "echo rm", neither],
    ["shell(rm:*)", "grep 'rm -rf' file", neither],
    ["shell(rm:*)", "rmdir x", neither],
    ["shell(git push)", "git commit -m push", neither],
    ["shell(git push)", "git stash push", neither],
    ["shell(rm:*)", "", neither],
  ])("the command rule %s on %j gives %s", (rule, text, expected) => {
    expect(effects(rule, describing(), { request: run(text) })).toBe(expected);
  });

  test("if the tool lists its commands, rules must cover the whole list", () => {
    const commands = (...identifiers: string[]): object => ({
      commands: identifiers.map((identifier) => ({ identifier, readOnly: false })),
    });
    const push = run("git push origin main", commands("git push"));
    expect(effects("shell(git push)", describing(), { request: push })).toBe(both);
    expect(effects("shell(git status)", describing(), { request: push })).toBe(neither);

    const series = run("git status && ls -l", commands("git status", "ls"));
    expect(effects("shell(git status)", describing(), { request: series })).toBe(onlyDenies);
    expect(judge({ allow: ["shell(git status)", "shell(ls)"] }, describing(), { request: series })).toBe("allow");
    expect(judge({ allow: ["shell(git status)", "shell(ls)"], deny: ["shell(ls)"] }, describing(), { request: series })).toBe("deny");
  });

  test("a list that omits part of the text allows nothing", () => {
    const allow = ["shell(git status)", "shell(git:*)"];
    const listed = { commands: [{ identifier: "git status", readOnly: true }] };
    for (const text of ["git status && rm -rf /", "git status $(rm x)", "git status > x", "rm x"]) {
      expect(judge({ allow }, describing(), { request: run(text, listed) })).toBeUndefined();
    }
    expect(judge({ allow }, describing(), { request: run("git status", { ...listed, hasWriteFileRedirection: true }) })).toBeUndefined();
    expect(judge({ allow }, describing(), { request: run("git status", { commands: [] }) })).toBeUndefined();
    expect(judge({ allow }, describing(), { request: run("git status", { commands: [{ identifier: 7 }, null] }) })).toBeUndefined();
    expect(judge({ deny: ["shell(rm:*)"] }, describing(), { request: run("rm x", listed) })).toBe("deny");
  });

  test("a request without a command is denied by every command rule and allowed by none", () => {
    expect(effects("shell(git:*)", describing(), { request: { kind: "shell" } })).toBe(onlyDenies);
    expect(effects("shell(git:*)", describing(), { request: { kind: "shell", fullCommandText: 7 } })).toBe(onlyDenies);
  });

  test("only the tool's own description determines the kind, not its name or arguments", () => {
    expect(effects("shell(rm:*)", plain("bash"), { args: { command: "rm x" } })).toBe(neither);
    expect(effects("shell(rm:*)", describing(), { request: { kind: "custom-tool", fullCommandText: "rm x" } })).toBe(neither);
  });

  test("possible paths and URLs of a command can be denied by their rules but not allowed", () => {
    const request = run("cat secrets/key", { possiblePaths: ["secrets/key"], possibleUrls: [{ url: "https://evil.example/x" }] });
    expect(effects("read(secrets/**)", describing(), { request })).toBe(onlyDenies);
    expect(effects("write(src/**)", describing(), { request })).toBe(neither);
    expect(effects("url(evil.example)", describing(), { request })).toBe(onlyDenies);
  });

  test("long hostile lines are judged in linear time", () => {
    const lines = [
      `sudo ${"git - ".repeat(30_000)}`,
      "'".repeat(60_001),
      "$(".repeat(50_000),
      `sudo '${"a ".repeat(50_000)}'`,
      "\\".repeat(60_000),
    ];
    for (const text of lines) {
      expect(judge({ allow: ["shell(git:*)"] }, describing(), { request: run(text) })).toBeUndefined();
      expect(["deny", undefined]).toContain(judge({ deny: ["shell(git push)"] }, describing(), { request: run(text) }));
    }
  });
});

describe("rules for paths", () => {
  const write = (fileName: unknown): PermissionRequest => ({ kind: "write", fileName });
  test.each<[string, unknown, string]>([
    ["write(src/**)", "src/a.ts", both],
    ["write(src/**)", "./src/../src/a.ts", both],
    ["write(src/**)", "src/new/file.ts", both],
    ["write(src/**)", join(cwd, "src/a.ts"), both],
    ["write(src/)", "src/deep/b.ts", both],
    ["write(src/*)", "src/a.ts", both],
    ["write(src/*)", "src/deep/b.ts", onlyDenies],
    ["write(**/*.ts)", "src/deep/b.ts", both],
    ["write(**/*.ts)", "b.ts", both],
    ["write(src/?.ts)", "src/a.ts", both],
    ["write(**)", "src/.hidden", both],
    ["write", "anything", both],
    ["write(src/a.ts)", "src/a.ts", both],
    ["write(src)", "src/a.ts", onlyDenies],
    ["write(src)", "src", both],
    ["write(src/**)", "srcs/a.ts", neither],
    ["write(src/**)", "secrets/a", neither],
    ["write(../outside/**)", "../outside/x", both],
    [`write(${root.replaceAll("\\", "/")}/outside/**)`, "../outside/x", both],
    ["write(~/notes/*)", join(homedir(), "notes", "x"), both],
    ["write(~/notes/*)", "~/notes/x", neither],
    // Neither notation nor links escape the rule.
    ["write(src/**)", "src/../secrets/a", neither],
    ["write(src/**)", "src/../../outside/x", neither],
    ["write(**)", "../outside/x", neither],
    ["write(**)", join(root, "outside", "x"), neither],
    ["write(src/**)", "src/way-out/x", onlyDenies],
    ["write(src/**)", "src/harmless/key", onlyDenies],
    ["write(secrets/**)", "src/harmless/key", both],
    ["write(src/**)", "alias/a.ts", both],
    ["write(alias/**)", "alias/a.ts", onlyDenies],
    ["write(alias/**)", "src/a.ts", onlyDenies],
    ["write(src/way-out/**)", "../outside/x", onlyDenies],
    ["write(src/**)", "src/dangling/x", onlyDenies],
    // An invalid path may be any path.
    ["write(src/**)", undefined, onlyDenies],
    ["write(src/**)", 7, onlyDenies],
    ["write(src/**)", "", onlyDenies],
    ["write(src/**)", "src/a\0.ts", onlyDenies],
  ])("the path rule %s on %j gives %s", (rule, file, expected) => {
    expect(effects(rule, describing(), { request: write(file) })).toBe(expected);
  });

  test("reading and writing are separate", () => {
    expect(effects("read(src/**)", describing(), { request: write("src/a.ts") })).toBe(neither);
    expect(effects("read(src/**)", describing(), { request: { kind: "read", path: "src/a.ts" } })).toBe(both);
    expect(effects("read(**)", describing(), { request: { kind: "read", path: "." } })).toBe(both);
  });

  test("a working directory behind a link or with pattern characters is an ordinary folder", () => {
    expect(effects("write(src/**)", describing(), { request: write("src/a.ts") }, join(root, "project-link"))).toBe(both);
    expect(effects("write(src/**)", describing(), { request: write(join(cwd, "src/a.ts")) }, join(root, "project-link"))).toBe(both);
    if (process.platform === "win32") return;
    const odd = join(root, "pro*");
    mkdirSync(odd);
    expect(effects("write(**)", describing(), { request: write("a") }, odd)).toBe(both);
    expect(effects("write(**)", describing(), { request: write(join(cwd, "a")) }, odd)).toBe(neither);
  });
});

describe("rules for URLs", () => {
  test.each<[string, unknown, string]>([
    ["url(https://example.com/*)", "https://example.com/docs/a?b=c", both],
    ["url(https://example.com)", "https://example.com/", both],
    ["url(https://example.com/)", "https://example.com/deep/path", both],
    ["url(example.com)", "http://example.com/x", both],
    ["url(example.com)", "https://EXAMPLE.com./x", both],
    ["url(*.example.com)", "https://a.b.example.com/", both],
    ["url(*.example.com)", "https://example.com/", onlyDenies],
    ["url(localhost:8080)", "http://localhost:8080/x", both],
    ["url(localhost:80)", "http://localhost/x", both],
    ["url(https://example.com/docs/*)", "https://example.com/docs/a", both],
    ["url(https://example.com/docs)", "https://example.com/docs?x=1", onlyDenies],
    ["url(https://example.com/find?q=*)", "https://example.com/find?q=a", both],
    ["url", "ftp://anything.example/", both],
    ["url(127.0.0.1)", "http://2130706433/", both],
    ["url([::1])", "http://[::1]/", both],
    ["url(https://example.com/*)", "http://example.com/x", neither],
    ["url(example.com)", "https://example.com:8443/x", onlyDenies],
    ["url(example.com)", "https://example.com.evil.org/", neither],
    ["url(example.com)", "https://evil-example.com/", neither],
    ["url(*.example.com)", "https://evilexample.com/", neither],
    ["url(example.com)", "https://example.com@evil.org/", neither],
    ["url(example.com)", "https://user:pass@example.com/", onlyDenies],
    ["url(example.com)", "file://example.com/x", onlyDenies],
    ["url(https://example.com/docs/*)", "https://example.com/docs/../admin", neither],
    ["url(https://example.com/docs/*)", "https://example.com/docs/%2e%2e/admin", neither],
    ["url(https://example.com/docs/*)", "https://example.com/docs/..%2fadmin", onlyDenies],
    ["url(example.com)", "not an address", onlyDenies],
    ["url(example.com)", undefined, onlyDenies],
  ])("the URL rule %s on %j gives %s", (rule, url, expected) => {
    expect(effects(rule, describing(), { request: { kind: "url", url } })).toBe(expected);
  });

  test.each<[string, string]>([
    ["url(169.254.169.254)", "http://[::ffff:a9fe:a9fe]/"],
    ["url(169.254.169.254)", "http://[::ffff:169.254.169.254]/latest"],
    ["url(169.254.169.254)", "http://2852039166/"],
    ["url(169.254.169.254)", "http://0xa9.0376.169.254/"],
    ["url([::ffff:a9fe:a9fe])", "http://169.254.169.254/"],
    ["url(127.0.0.1)", "http://localhost/"],
    ["url(localhost)", "http://[::1]/"],
    ["url(localhost)", "http://127.1.2.3/"],
    ["url(localhost)", "http://0.0.0.0/"],
    ["url(evil.example)", "http://EVIL.example./"],
    ["url(evil.example)", "http://ｅｖｉｌ。example/"],
  ])("the URL rule %s denies %s", (rule, url) => {
    expect(judge({ deny: [rule] }, describing(), { request: { kind: "url", url } })).toBe("deny");
  });

  test("private networks are allowed only by rules that name them", () => {
    for (const url of [
      "http://127.0.0.1:8080/",
      "http://localhost/",
      "http://192.168.1.1/",
      "http://[fe80::1]/",
      "http://intranet/",
      "http://[::ffff:a00:1]/",
    ]) {
      const of = (...allow: readonly string[]) => judge({ allow }, describing(), { request: { kind: "url", url } });
      expect(of("url"), url).toBeUndefined();
      expect(of("url(*)", "t", "*"), url).toBeUndefined();
      expect(of(`url(${new URL(url).host})`), url).toBe("allow");
    }
    const mixed = { kind: "url", url: "https://example.com/", possibleUrls: [{ url: "http://10.0.0.1/" }] };
    expect(judge({ allow: ["url"] }, describing(), { request: mixed })).toBeUndefined();
    expect(judge({ allow: ["url"] }, describing(), { request: { kind: "url", url: "https://example.com/" } })).toBe("allow");
  });

  test("memory is a kind of its own", () => {
    expect(effects("memory", describing(), { request: { kind: "memory", fact: "x" } })).toBe(both);
    expect(effects("memory", describing(), { request: { kind: "read", path: "x" } })).toBe(neither);
  });
});

describe("rules for a tool's arguments", () => {
  test.each<[string, unknown, string]>([
    ["t(path=src/**)", { path: "src/a.ts" }, both],
    ["t(path=src/**)", { path: "src/a.ts", other: 1 }, both],
    ["t(path=src/**)", { path: "./src/a.ts" }, onlyDenies],
    ["t(path=src/**)", { path: "x/../src/a.ts" }, onlyDenies],
    ["t(path=src/**)", { path: join(cwd, "src/a.ts") }, onlyDenies],
    ["t(path=src/**)", { path: "src/../secrets" }, onlyDenies],
    ["t(path=secrets/*)", { path: "src/../secrets/a" }, onlyDenies],
    ["t(path=src/**)", { path: "src/../src/a" }, onlyDenies],
    ["t(path=src/**)", { path: ["src/a", "src/b"] }, both],
    ["t(path=src/**)", { path: ["src/a", "secrets/b"] }, onlyDenies],
    ["t(path=src/**)", { path: [] }, neither],
    ["t(path=src/**)", {}, neither],
    ["t(path=src/**)", { path: { deep: "src/a" } }, onlyDenies],
    ["t(path=src/**, mode=read)", { path: "src/a", mode: "read" }, both],
    ["t(path=src/**, mode=read)", { path: "src/a", mode: "write" }, neither],
    ["t(range.start=1*)", { range: { start: 17 } }, both],
    ["t(force=true)", { force: true }, both],
    ["t(force=true)", { force: "yes" }, neither],
    ["t(url=https://example.com/**)", { url: "https://example.com/a/b" }, both],
    ["t(src/*)", { whatever: "src/a" }, both],
    ["t(src/*)", { one: "src/a", two: "x" }, onlyDenies],
    ["t(src/*)", { one: { two: ["x", "src/a"] } }, onlyDenies],
    ["t(production)", { target: "production" }, both],
    ["t(production)", { target: "staging" }, neither],
    ["t(toString=*)", {}, neither],
    ["t(__proto__=*)", {}, neither],
    ["t(path=*)", "text", neither],
    ["t(path=*)", null, neither],
  ])("the argument rule %s on %j gives %s", (rule, args, expected) => {
    expect(effects(rule, plain("t"), { args })).toBe(expected);
  });

  test("unreadable arguments are denied by argument rules and allowed by none", () => {
    const trap = Object.defineProperty({}, "path", {
      enumerable: true,
      get() {
        throw new Error("secret");
      },
    });
    expect(effects("t(path=src/**)", plain("t"), { args: trap })).toBe(onlyDenies);
    expect(effects("t(a*)", plain("t"), { args: { list: Array.from({ length: 20_000 }, String) } })).toBe(onlyDenies);
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(effects("t(a*)", plain("t"), { args: cycle })).toBe(onlyDenies);
  });

  test("more values than the limit are denied", () => {
    expect(judge({ deny: ["lint(secrets/**)"] }, plain("lint"), { args: { items: Array.from({ length: 250_000 }, () => "a") } })).toBe(
      "deny",
    );
  });
});

describe("invalid rules", () => {
  test.each([
    "",
    "  ",
    "()",
    "(x)",
    "lint(",
    "lint)",
    "lint()",
    "my tool",
    "github/search",
    "shell(git && rm)",
    "shell(git 'x')",
    "shell(*rm)",
    "shell(:* x)",
    "write(src/*.{ts,js})",
    "write(src/[ab].ts)",
    "write(!src/**)",
    "read(a\0b)",
    "url(https://)",
    "url(exam*ple.com)",
    "memory(x)",
    "tool(a b)",
    `shell(${"x".repeat(2000)})`,
  ])("the invalid rule %j is refused", (rule) => {
    for (const list of ["allow", "deny", "ask"]) {
      expect(() => compilePermissionRules({ [list]: [rule] }, cwd)).toThrow(
        expect.objectContaining({
          code: "PERMISSION_RULE",
          message: expect.stringMatching(/cannot be read.*Valid forms.*shell\(<command>\)/),
        }),
      );
    }
  });

  test("the message names the rule and the mistake", () => {
    expect(() => compilePermissionRules({ allow: ["lint", "shell(git | sh)"] }, cwd)).toThrow(
      /"shell\(git \| sh\)" cannot be read: a command must consist of plain words/,
    );
  });
});

describe("several rules", () => {
  test("deny takes precedence over ask, and ask over allow, in any order", () => {
    const all = { deny: ["t(x=1)"], ask: ["t(y=1)"], allow: ["t"] };
    expect(judge(all, plain("t"), { args: { x: 1, y: 1 } })).toBe("deny");
    expect(judge(all, plain("t"), { args: { y: 1 } })).toBe("ask");
    expect(judge(all, plain("t"), { args: { x: 2, y: 2 } })).toBe("allow");
    expect(judge(all, plain("u"), { args: { x: 1 } })).toBeUndefined();
  });

  test("rules that cannot apply to a tool are excluded before it is called", () => {
    const rules = compilePermissionRules({ deny: ["lint", "shell(rm:*)"], allow: ["free"] }, cwd);
    expect([plain("lint"), plain("free"), plain("other"), describing("other")].map((tool) => rules.mayStop(tool))).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  const anyRule = fc.constantFrom(
    ...[
      "t",
      "*",
      "tool(t)",
      "t(*)",
      "t(path=src/**)",
      "t(src/a.ts)",
      "shell",
      "shell(git:*)",
      "shell(git status)",
      "shell(rm)",
      "read",
      "read(**)",
    ],
    ...[
      "read(src/**)",
      "write(**)",
      "write(src/*)",
      "url",
      "url(example.com)",
      "url(https://example.com/*)",
      "memory",
      "mcp",
      "mcp(s:*)",
      "mcp(s/t)",
    ],
  );
  const anyCall = fc.record({
    tool: fc.constantFrom(plain("t"), describing("t"), plain("t", "mcp", "s", "t"), plain("other")),
    args: fc.constantFrom<unknown>({}, { path: "src/a.ts" }, { path: "src/../x" }, { a: ["src/a.ts"] }),
    request: fc.constantFrom<PermissionRequest | undefined>(
      undefined,
      { kind: "shell", fullCommandText: "git status" },
      { kind: "shell", fullCommandText: "git status && rm x", commands: [{ identifier: "git status" }, { identifier: "rm" }] },
      { kind: "read", path: "src/a.ts" },
      { kind: "write", fileName: "src/way-out/x" },
      { kind: "url", url: "https://example.com/x" },
      { kind: "memory" },
    ),
  });
  const someRules = fc.array(anyRule, { maxLength: 4 });

  test("a rule that denies a call denies it beside any others and covers what it would allow", () => {
    fc.assert(
      fc.property(anyRule, someRules, someRules, someRules, anyCall, (rule, deny, ask, allow, call) => {
        const alone = judge({ deny: [rule] }, call.tool, call);
        const among = judge({ deny: [...deny, rule], ask: [...ask, rule], allow: [...allow, rule] }, call.tool, call);
        if (alone === "deny") expect(among).toBe("deny");
        // A rule never allows a call that it would not also deny.
        if (judge({ allow: [rule] }, call.tool, call) === "allow") expect(alone).toBe("deny");
        if (judge({ ask: [rule] }, call.tool, call) === "ask") expect(["ask", "deny"]).toContain(among);
      }),
      { numRuns: rounds(400, 2_000) },
    );
  });
});
