import dns from "node:dns";
import { mkdirSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionOptions } from "skillhost";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { findConfinement } from "../../src/io/process/confine-process.ts";
import type { PermissionAsk, ToolResult } from "../../src/tools/tool.ts";
import { asUserSkills, type Files, openKit, putAll, skillMd, tempFolder } from "./kit.ts";

const canConfine = (await findConfinement()).kind === "enforced";

interface Opened {
  call(args: object): Promise<ToolResult>;
  readonly asked: readonly PermissionAsk[];
  /** The recorded decisions. */
  readonly decided: readonly unknown[];
  readonly folder: string;
  readonly workspace: string;
}

type Rules = NonNullable<SessionOptions["permissions"]>;

interface OpenOptions extends Omit<SessionOptions, "permissions"> {
  readonly inHome?: boolean;
  readonly files?: Files;
  readonly workspace?: Files;
}

/** A host over a skill with the JSON tool `t`, and a session with rules in which every question is approved. */
async function open(handler: object, permissions: Rules, options: OpenOptions = {}, more: object = {}): Promise<Opened> {
  const { inHome = false, files = {}, workspace: inside = {}, ...session } = options;
  const folder = join(inHome ? asUserSkills() : tempFolder(), "s");
  const tool = { name: "t", description: "For a test.", parameters: { type: "object", additionalProperties: true }, handler, ...more };
  putAll(folder, {
    "SKILL.md": skillMd("s"),
    "skill.json": JSON.stringify({ name: "s", description: "For a test.", permissions: { env: ["PLANTED"] } }),
    "tools/t.json": JSON.stringify(tool),
    ...files,
  });
  const workspace = tempFolder(inside);
  const kit = await openKit([folder], { watch: false });
  expect(kit.host.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  const asked: PermissionAsk[] = [];
  const decided: unknown[] = [];
  const opened = await kit.host.createSession({
    workingDirectory: workspace,
    ...session,
    permissions,
    persist: false,
    onPermissionRequest: (request) => {
      asked.push(request);
      return { kind: "approve-once" };
    },
  });
  opened.on("permission.completed", ({ data }) => decided.push(data.result));
  await opened.ready();
  return { call: (args) => opened.callTool("t", args), asked, decided, folder, workspace };
}

/** A local service; `/hop/<path>` redirects to `/<path>`. */
async function serve(): Promise<{ readonly origin: string; readonly port: number; readonly seen: string[] }> {
  const seen: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    seen.push(url);
    if (url.startsWith("/hop/")) response.writeHead(302, { location: url.slice(4) }).end();
    else response.end("done");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, port, seen };
}

function resolveTo(address: string): void {
  const { lookup } = dns;
  dns.lookup = ((_name: string, options: { all?: boolean }, done: (error: null, ...found: unknown[]) => void) => {
    process.nextTick(() => (options.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4)));
  }) as unknown as typeof lookup;
  syncBuiltinESMExports();
  onTestFinished(() => {
    dns.lookup = lookup;
    syncBuiltinESMExports();
  });
}

describe("the address of a JSON tool under rules", () => {
  const get = (url: string): object => ({ http: { url } });

  test.each<[rule: (origin: string) => string, at: string, args: object, expected: "denied" | "success"]>([
    [() => "url", "/x", {}, "denied"],
    [() => "url(127.0.0.1)", "/x", {}, "denied"],
    [() => "url(localhost)", "/x", {}, "denied"],
    [() => "url(2130706433)", "/x", {}, "denied"],
    [() => "url(*.example)", "/x", {}, "success"],
    [() => "shell", "/x", {}, "success"],
    [() => "shell(curl:*)", "/x", {}, "success"],
    [() => "read(**)", "/x", {}, "success"],
    [(origin) => `url(${origin}/admin/*)`, "/${part}/x", { part: "admin" }, "denied"],
    [(origin) => `url(${origin}/admin/*)`, "/${part}/x", { part: "public" }, "success"],
    [(origin) => `url(${origin}/x*)`, "/x?of=${part}", { part: "all" }, "denied"],
    [(origin) => `url(${origin}/*=all)`, "/x?of=${part}", { part: "all" }, "denied"],
    [(origin) => `url(${origin}/*=all)`, "/x?of=${part}", { part: "one" }, "success"],
  ])("an address is checked against deny rules: case %#", async (rule, at, args, expected) => {
    const { origin, seen } = await serve();
    const deny = [rule(origin)];
    const { call, asked, decided } = await open(get(origin + at), { deny });
    expect((await call(args)).resultType).toBe(expected);
    expect(seen.length).toBe(expected === "denied" ? 0 : 1);
    expect(asked.length).toBe(expected === "denied" ? 0 : 1);
    if (expected === "denied") expect(decided).toMatchObject([{ kind: "denied-by-rules", rules: [{ kind: "url" }] }]);
  });

  test("an address is checked with the values of variables, which are never shown", async () => {
    const { origin, seen } = await serve();
    vi.stubEnv("PLANTED", `${origin}/planted-secret`);
    const { call, decided } = await open(get("${env:PLANTED}/x"), { deny: ["url(127.0.0.1)"] }, { inHome: true });
    expect((await call({})).resultType).toBe("denied");
    expect(JSON.stringify(decided)).not.toContain("planted-secret");
    expect(seen).toEqual([]);
  });

  test.each([
    ["a rule that allows the tool", { allow: ["t"] }, {}, {}],
    ["a rule that allows everything", { allow: ["*", "url"] }, {}, {}],
    ["a rule that allows the address", { allow: ["t", "url(127.0.0.1)"] }, {}, {}],
    ["a hook", {}, { hooks: { onPreToolUse: () => ({ permissionDecision: "allow" as const }) } }, {}],
    ["skipPermission", {}, { inHome: true }, { skipPermission: true }],
  ])("an address is denied although %s allows the call", async (_what, rules, options, more) => {
    const { origin, seen } = await serve();
    const { call, asked } = await open(get(`${origin}/x`), { ...rules, deny: ["url(127.0.0.1)"] }, options, more);
    expect((await call({})).resultType).toBe("denied");
    expect([seen, asked]).toEqual([[], []]);
  });

  test.each([
    ["a rule that allows the tool", { allow: ["t"] }, {}, {}],
    ["nothing", {}, {}, {}],
    ["skipPermission", {}, { inHome: true }, { skipPermission: true }],
  ])("an address is asked about once if %s allows the call and a rule requires asking", async (_what, rules, options, more) => {
    const { origin, seen } = await serve();
    const { call, asked } = await open(get(`${origin}/x`), { ...rules, ask: [`url(${origin}/*)`, "url"] }, options, more);
    expect((await call({})).resultType).toBe("success");
    expect(asked).toMatchObject([{ kind: "custom-tool", toolName: "t", method: "GET", url: `${origin}/x` }]);
    expect(seen).toEqual(["/x"]);
  });

  test.each<[allow: (port: number) => readonly string[], questions: number]>([
    [() => ["t"], 1],
    [() => ["*"], 1],
    [() => ["t", "url"], 1],
    [() => ["t", "url(example.com)"], 1],
    [(port) => ["t", `url(127.0.0.1:${port + 1})`], 1],
    [(port) => [`url(127.0.0.1:${port})`], 1],
    [(port) => ["t", `url(127.0.0.1:${port})`], 0],
    [(port) => ["t", `url(http://127.0.0.1:${port}/x)`], 0],
  ])("an address in a private network is asked about unless a rule names it: case %#", async (allow, questions) => {
    const { origin, port, seen } = await serve();
    const { call, asked } = await open(get(`${origin}/x`), { allow: allow(port) });
    expect((await call({})).resultType).toBe("success");
    expect(asked.length).toBe(questions);
    expect(seen).toEqual(["/x"]);
  });

  test("redirects are followed only as far as rules allow", async () => {
    const { origin, seen } = await serve();
    const deny = [`url(${origin}/admin/*)`];
    const { call } = await open(get(`${origin}/hop/\${part}/x`), { deny });
    expect(await call({ part: "public" })).toMatchObject({ resultType: "success", textResultForLlm: "done" });
    expect(await call({ part: "admin" })).toMatchObject({ resultType: "failure" });
    expect(seen).toEqual(["/hop/public/x", "/public/x", "/hop/admin/x"]);
  });

  test("a redirect within an approved ask rule is followed, one to another host is not", async () => {
    const { origin, seen } = await serve();
    const within = await open(get(`${origin}/hop/x`), { ask: ["url(127.0.0.1)"] });
    expect((await within.call({})).resultType).toBe("success");
    expect(within.asked.length).toBe(1);
    const beyond = await open(get(`${origin}/hop/y`), { ask: [`url(${origin}/y)`] });
    expect((await beyond.call({})).resultType).toBe("failure");
    expect(seen).toEqual(["/hop/x", "/x", "/hop/y"]);
  });

  test("a public name of a private address is refused unless a rule names the host or the skill is the user's own", async () => {
    const { port, seen } = await serve();
    resolveTo("127.0.0.1");
    const url = `http://public.example:${port}/x`;
    const refused = await (await open(get(url), {})).call({});
    expect(refused).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringContaining("url(<host>)") });
    expect(seen).toEqual([]);
    const named = await open(get(url), { allow: [`url(public.example:${port})`] });
    expect((await named.call({})).resultType).toBe("success");
    expect((await (await open(get(url), {}, { inHome: true })).call({})).resultType).toBe("success");
    const denied = await open(get(url), { allow: [`url(public.example:${port})`], deny: ["url(127.0.0.1)"] }, { inHome: true });
    expect((await denied.call({})).resultType).toBe("failure");
    expect(seen).toEqual(["/x", "/x"]);
  });
});

describe("the program of a JSON tool under rules", () => {
  const cat = { command: "cat", args: ["--", "${file}"] };
  const files = { "secret/key": "TOP\n", "open.txt": "TODO\n", "it's/a b.txt": "TODO\n" };

  test.each<[rule: string, handler: object, args: object, expected: "denied" | "success" | "failure"]>([
    ["read(secret/**)", cat, { file: "secret/key" }, "denied"],
    ["read(secret/**)", cat, { file: "./x/../secret//key" }, "denied"],
    ["read(secret/**)", cat, { file: "link/key" }, "denied"],
    // Only running the command shows which folder that is: it runs where the system hides the file from it.
    ["read(secret/**)", cat, { file: "/proc/self/cwd/secret/key" }, canConfine ? "failure" : "denied"],
    ["read(secret/**)", cat, { file: "open.txt" }, "success"],
    ["read(secret/**)", cat, { file: "it's/a b.txt" }, "success"],
    // Without a shell the pattern is not expanded, so no such file exists.
    ["read(secret/**)", cat, { file: "sec*/key" }, "failure"],
    ["read(secret/**)", cat, { file: "$(cat secret/key)" }, "failure"],
    ["read(secret/**)", { command: "/bin/cat", args: ["secret/key"] }, {}, "denied"],
    ["read(secret/**)", { command: "env", args: ["A=b", "cat", "secret/key"] }, {}, "denied"],
    ["read(secret/**)", { command: "sh", args: ["-c", "cat sec*/key"] }, {}, "denied"],
    ["read(secret/**)", { command: "grep", args: ["-rh", "TOP", "secret"] }, {}, "denied"],
    ["write(secret/**)", cat, { file: "secret/key" }, "success"],
    ["write(secret/**)", { command: "touch", args: ["secret/new"] }, {}, "denied"],
    ["shell", cat, { file: "open.txt" }, "denied"],
    ["shell(cat:*)", cat, { file: "open.txt" }, "denied"],
    ["shell(cat)", { command: "/usr/bin/env", args: ["cat", "open.txt"] }, {}, "denied"],
    ["shell(git push:*)", { command: "git", args: ["-C", ".", "${part}", "--help"] }, { part: "push" }, "denied"],
    ["shell(git push:*)", { command: "git", args: ["${part}"] }, { part: "version" }, "success"],
    ["shell(rm:*)", { command: "sh", args: [], stdin: "rm -f open.txt" }, {}, "denied"],
    ["shell(rm:*)", cat, { file: "open.txt; rm -f open.txt" }, "failure"],
    ["shell(dog:*)", cat, { file: "open.txt" }, "success"],
    ["url(evil.example)", { command: "curl", args: ["${host}"] }, { host: "evil.example" }, "denied"],
    ["url(evil.example)", { command: "curl", args: ["-x", "evil.example:80", "http://a.example"] }, {}, "denied"],
    ["url(evil.example)", cat, { file: "open.txt" }, "success"],
    ["url", cat, { file: "open.txt" }, "success"],
  ])("a program is checked against the rule %s: case %#", async (rule, handler, args, expected) => {
    const { call, asked, decided, workspace } = await open(handler, { deny: [rule] }, { workspace: files });
    symlinkSync(join(workspace, "secret"), join(workspace, "link"));
    mkdirSync(join(workspace, "x"));
    const result = await call(args);
    expect(result.resultType).toBe(expected);
    if (expected !== "success") expect(result.textResultForLlm).not.toContain("TOP");
    expect(asked.length).toBe(expected === "denied" ? 0 : 1);
    if (expected === "denied") expect(decided).toMatchObject([{ kind: "denied-by-rules", rules: [{ kind: rule.replace(/\(.*/, "") }] }]);
  });

  test("a program is checked relative to the folder in which it runs", async () => {
    const handler = { ...cat, cwd: "data" };
    const deny = [`read(${tmpdir()}/*/s/data/secret/**)`];
    const { call } = await open(handler, { deny }, { files: { "data/secret/key": "TOP\n", "data/open.txt": "TODO\n" } });
    expect((await call({ file: "secret/key" })).resultType).toBe("denied");
    expect((await call({ file: "open.txt" })).textResultForLlm).toBe("TODO\n");
  });

  test.each([
    ["a rule that allows the tool", { allow: ["t", "shell", "shell(cat:*)"] }, {}, {}],
    ["skipPermission", {}, { inHome: true }, { skipPermission: true }],
  ])("a program is asked about once if %s allows the call and rules require asking", async (_what, rules, options, more) => {
    const ask = ["read(secret/**)", "shell(cat:*)"];
    const { call, asked } = await open(cat, { ...rules, ask }, { ...options, workspace: files }, more);
    expect((await call({ file: "secret/key" })).textResultForLlm).toBe("TOP\n");
    expect(asked).toMatchObject([{ kind: "custom-tool", toolName: "t", fullCommandText: "cat -- secret/key" }]);
  });

  test("a program is allowed by rules for the tool, not by rules for commands", async () => {
    const byTool = await open(cat, { allow: ["t"] }, { workspace: files });
    expect((await byTool.call({ file: "open.txt" })).resultType).toBe("success");
    const byCommand = await open(cat, { allow: ["shell", "shell(cat:*)", "read"] }, { workspace: files });
    expect((await byCommand.call({ file: "open.txt" })).resultType).toBe("success");
    expect([byTool.asked.length, byCommand.asked.length]).toEqual([0, 1]);
  });

  const unknown = { command: "./show.sh", args: [] };
  const script = { "show.sh": "#!/bin/sh\ncat open.txt ecret/key sec*/key\nexit 0\n" };
  const shown = async (permissions: Rules): Promise<ToolResult> => {
    const handler = { command: "sh", args: ["{baseDir}/show.sh"] };
    const { call } = await open(handler, permissions, { files: script, workspace: files });
    return call({});
  };

  test("a program that may access anything is denied where the system cannot confine it", async () => {
    // Limits cannot express this: the file does not exist yet.
    const { call } = await open(unknown, { deny: ["write(new/*.txt)"] }, { files: script, workspace: files });
    expect((await call({})).resultType).toBe("denied");
    expect((await shown({ deny: ["write(new/*.txt)"] })).resultType).toBe("denied");
  });

  test.skipIf(!canConfine)("a program that may access anything runs confined to what the rules allow", async () => {
    const result = await shown({ deny: ["read(secret/**)"] });
    expect(result.resultType).toBe("success");
    expect(result.textResultForLlm).toContain("TODO");
    expect(result.textResultForLlm).not.toContain("TOP");
  });

  test.skipIf(!canConfine)("a program that may connect to anything runs without network under rules for addresses", async () => {
    const { origin, seen } = await serve();
    const fetching = `fetch("${origin}/x").then(() => console.log("IN"), () => console.log("OUT"))`;
    const handler = { command: process.execPath, args: ["-e", fetching] };
    expect((await (await open(handler, { deny: ["url(evil.example)"] })).call({})).textResultForLlm).toBe("OUT\n");
    expect((await (await open(handler, {})).call({})).textResultForLlm).toBe("IN\n");
    expect(seen).toEqual(["/x"]);
  });
});
