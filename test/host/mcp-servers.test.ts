import { describe, expect, test } from "vitest";
import { emptyFolder } from "../io/temp-folder.ts";
import { recordEvents, settleMicrotasks } from "../session/session-kit.ts";
import {
  hostIn,
  isAlive,
  nextEvent,
  openSession,
  pidOf,
  say,
  serverNamed,
  sessionWith,
  silentServer,
  until,
  writeFiles,
} from "./servers-kit.ts";

describe("the servers of a session", () => {
  test("servers add their tools with a prefix, and a call may use either name", async () => {
    const session = await sessionWith({ mcpServers: { notes: serverNamed("n") } });
    expect(session.listTools().find(({ name }) => name === "notes-echo")).toMatchObject({
      namespacedName: "notes/echo",
      source: { kind: "mcp", name: "notes" },
    });
    expect(await say(session, "notes-echo", { text: "hi" })).toBe("hi");
    expect(await say(session, "notes/echo", { text: "ho" })).toBe("ho");
    expect(session.mcp.list()).toMatchObject([
      {
        name: "notes",
        origin: { kind: "session" },
        transport: "stdio",
        status: "connected",
        instructions: "I am n.",
        pid: expect.any(Number),
      },
    ]);
    expect(session.mcp.tools("notes").map(({ nativeName }) => nativeName)).toContain("who");
  });

  test("createSession does not wait for servers, but a call of one of their tools does", async () => {
    const host = await hostIn(emptyFolder());
    const session = await openSession(host, { mcpServers: { notes: serverNamed("n") } });
    expect(session.mcp.list()).toMatchObject([{ name: "notes", status: "pending" }]);
    expect(await say(session, "notes/echo", { text: "waited" })).toBe("waited");
  });

  test("servers receive only the environment variables that their configuration gives them", async () => {
    process.env["PLANTED_SECRET"] = "hunter2";
    const direct = await sessionWith({ mcpServers: { notes: serverNamed("n", { env: { OWN: "PLANTED_SECRET" } }) } });
    const environment = (await say(direct, "notes/env")) as Record<string, string>;
    expect(environment).toMatchObject({ OWN: "PLANTED_SECRET", PATH: expect.any(String) });
    expect(JSON.stringify(environment)).not.toContain("hunter2");
    const indirect = await sessionWith({
      envValueMode: "indirect",
      mcpServers: { notes: serverNamed("n", { env: { OWN: "PLANTED_SECRET" } }) },
    });
    expect(await say(indirect, "notes/env")).toMatchObject({ OWN: "hunter2" });
    delete process.env["PLANTED_SECRET"];
  });

  test("servers start in the session's working directory, and a relative cwd is resolved against it", async () => {
    const folder = emptyFolder();
    writeFiles(folder, { "project/inner/file": "" });
    const host = await hostIn(folder);
    const mcpServers = { here: serverNamed("h"), there: serverNamed("t", { cwd: "inner" }) };
    const session = await openSession(host, { workingDirectory: "project", mcpServers });
    await session.ready();
    expect(await say(session, "here/who")).toMatchObject({ cwd: `${folder}/project` });
    expect(await say(session, "there/who")).toMatchObject({ cwd: `${folder}/project/inner` });
  });

  test("an invalid server is reported once and listed with the reason, and the others work", async () => {
    const host = await hostIn(emptyFolder());
    const session = await openSession(host, {
      mcpServers: { wrong: { command: 7 }, empty: { type: "http", url: "" }, good: serverNamed("g") },
    });
    const infos = recordEvents(session, "session.info");
    await session.ready();
    await session.ready();
    expect(session.mcp.list()).toMatchObject([
      { name: "wrong", status: "not_configured", error: expect.stringContaining("command") },
      { name: "empty", status: "not_configured" },
      { name: "good", status: "connected" },
    ]);
    expect(infos.filter(({ data }) => String(data["message"]).includes("wrong"))).toHaveLength(1);
    expect(await say(session, "good/echo", { text: "x" })).toBe("x");
  });

  test("a server that never answers delays a session once, up to the limit", async () => {
    const host = await hostIn(emptyFolder(), { mcp: { startupWait: 300 } });
    const session = await openSession(host, { mcpServers: { mute: silentServer(), good: serverNamed("g") } });
    await session.ready();
    await session.ready();
    // The wait may also end before the other server has started.
    await expect.poll(() => say(session, "good/echo", { text: "x" })).toBe("x");
    expect(session.mcp.list()).toMatchObject([
      { name: "mute", status: "pending" },
      { name: "good", status: "connected" },
    ]);
    expect((await session.callTool("mute/anything")).textResultForLlm).toContain("does not exist");
  });

  test("events report servers and their changes of state", async () => {
    const host = await hostIn(emptyFolder());
    const session = await openSession(host, { mcpServers: { notes: serverNamed("n"), off: serverNamed("o", { disabled: true }) } });
    const events = recordEvents(session, "session.mcp_servers_loaded", "session.mcp_server_status_changed", "mcp.tools.list_changed");
    await session.ready();
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ["session.mcp_server_status_changed", { serverName: "notes", status: "connected" }],
      [
        "session.mcp_servers_loaded",
        {
          servers: [
            { name: "notes", status: "connected", transport: "stdio", source: "user" },
            expect.objectContaining({ name: "off", status: "disabled", source: "user" }),
          ],
        },
      ],
    ]);
    const changed = nextEvent(session, "mcp.tools.list_changed");
    const updated = nextEvent(session, "session.tools_updated", () => session.catalog.executables.has("notes-grown"));
    await say(session, "notes/grow");
    expect((await changed).data).toEqual({ serverName: "notes" });
    await updated;
    expect(await say(session, "notes/grown")).toBe("grown");
  });

  test("servers can be stopped, started, restarted and disabled for one session", async () => {
    const host = await hostIn(emptyFolder());
    const mcpServers = { notes: serverNamed("n") };
    const [one, other] = [await openSession(host, { mcpServers }), await openSession(host, { mcpServers })];
    await Promise.all([one.ready(), other.ready()]);
    const pid = await pidOf(one, "notes");
    expect(await pidOf(other, "notes")).toBe(pid);
    one.mcp.stop("notes");
    expect(one.mcp.list()).toMatchObject([{ status: "stopped" }]);
    expect(one.catalog.executables.has("notes-echo")).toBe(false);
    expect(await pidOf(other, "notes")).toBe(pid);
    one.mcp.start("notes");
    expect(await pidOf(one, "notes")).toBe(pid);
    await one.mcp.disable("notes");
    expect(one.mcp.list()).toMatchObject([{ status: "disabled" }]);
    expect(one.config.options.disabledMcpServers).toEqual(["notes"]);
    await one.mcp.enable("notes");
    expect(await pidOf(one, "notes")).toBe(pid);
    await one.mcp.restart("notes");
    expect(await pidOf(other, "notes")).not.toBe(pid);
    await until(() => !isAlive(pid));
    expect(() => one.mcp.stop("strange")).toThrow('no MCP server "strange"');
  });

  test("servers and their processes end with the host", async () => {
    const host = await hostIn(emptyFolder());
    const session = await openSession(host, { mcpServers: { notes: serverNamed("n") } });
    const pid = await pidOf(session, "notes");
    await host.close();
    await until(() => !isAlive(pid));
  });

  test("a thousand sessions share one process and one catalog", async () => {
    const host = await hostIn(emptyFolder(), { mcpServers: { notes: serverNamed("n") } });
    const sessions = await Promise.all(Array.from({ length: 1_000 }, () => host.createSession({ persist: false })));
    await Promise.all(sessions.map((session) => session.ready()));
    expect(new Set(sessions.map(({ catalog }) => catalog)).size).toBe(1);
    expect(sessions[0]!.catalog.executables.has("notes-echo")).toBe(true);
    expect(new Set(sessions.map(({ mcp }) => mcp.list()[0]!.pid)).size).toBe(1);
  });
});

describe("servers with the same name", () => {
  test("a session's server takes precedence over an agent's, a plugin's, a skill's and the host's", async () => {
    const folder = emptyFolder();
    writeFiles(folder, {
      "skills/s/skill.json": { name: "s", description: "d", mcpServers: { a: serverNamed("skill-a"), b: serverNamed("skill-b") } },
    });
    const host = await hostIn(folder, {
      skillDirectories: ["skills"],
      mcpServers: { a: serverNamed("host-a"), h: serverNamed("host-h") },
    });
    const session = await openSession(host, { mcpServers: { b: serverNamed("session-b") } });
    await session.ready();
    expect(session.mcp.list().map(({ name, origin }) => [name, origin])).toEqual([
      ["h", { kind: "host" }],
      ["a", { kind: "skill", source: "s" }],
      ["b", { kind: "session" }],
    ]);
    expect(await Promise.all(["h", "a", "b"].map((name) => say(session, `${name}/who`)))).toMatchObject([
      { name: "host-h" },
      { name: "skill-a" },
      { name: "session-b" },
    ]);
    host.disableSkill("s");
    expect(await say(session, "a/who")).toMatchObject({ name: "host-a" });
    expect(session.catalog.executables.get("b-who")?.origin.source).toBe("b");
  });
});

describe("the servers of a resumed or updated session", () => {
  test("a given map replaces the previous one, an omitted map keeps it, and unchanged servers are not restarted", async () => {
    const host = await hostIn(emptyFolder());
    const [a, b, c] = [serverNamed("a"), serverNamed("b"), serverNamed("c")];
    const session = await openSession(host, { mcpServers: { a, b } });
    await session.ready();
    const pids = [await pidOf(session, "a"), await pidOf(session, "b")];
    await session.update({ excludedTools: ["a-echo"] });
    expect([await pidOf(session, "a"), await pidOf(session, "b")]).toEqual(pids);
    const updates = recordEvents(session, "session.tools_updated");
    await settleMicrotasks();
    updates.length = 0;
    await session.update({ mcpServers: { a: { ...a, tools: ["who"] }, c } });
    expect(updates).toHaveLength(1);
    expect(await pidOf(session, "a")).toBe(pids[0]);
    expect(session.mcp.list().map(({ name }) => name)).toEqual(["a", "c"]);
    expect(session.listTools().filter(({ name }) => name.startsWith("a-"))).toHaveLength(1);
    expect(session.catalog.executables.has("b-who")).toBe(false);
    expect(await say(session, "c/who")).toMatchObject({ name: "c" });
    await session.update({ disabledMcpServers: ["c"] });
    expect(session.mcp.list()).toMatchObject([{ status: "connected" }, { name: "c", status: "disabled" }]);
    expect(session.catalog.executables.has("c-who")).toBe(false);
  });

  test("a warm resume changes the open session", async () => {
    const host = await hostIn(emptyFolder());
    const session = await openSession(host, { mcpServers: { a: serverNamed("a") } });
    await session.ready();
    const same = await host.resumeSession(session.id, { mcpServers: { b: serverNamed("b") } });
    expect(same).toBe(session);
    expect(session.mcp.list().map(({ name }) => name)).toEqual(["b"]);
    expect(await say(session, "b/who")).toMatchObject({ name: "b" });
  });

  test("a cold resume in the same host restores the servers, one in another host does not, and no secret is stored on disk", async () => {
    const folder = emptyFolder();
    const host = await hostIn(folder);
    const session = await openSession(host, {
      mcpServers: { a: serverNamed("a", { env: { TOKEN: "hunter2" } }) },
      disabledMcpServers: ["z"],
    });
    await session.ready();
    await session.disconnect();
    const again = await host.resumeSession(session.id);
    expect(again.mcp.list().map(({ name }) => name)).toEqual(["a"]);
    expect(JSON.stringify(await again.getMessages())).not.toContain("hunter2");
    await host.close();
    const other = await hostIn(folder);
    const cold = await other.resumeSession(session.id, { mcpServers: { b: serverNamed("b") } });
    expect(cold.config.options.disabledMcpServers).toEqual(["z"]);
    expect(cold.mcp.list().map(({ name }) => name)).toEqual(["b"]);
  });

  test("servers with an empty list of tools are not started", async () => {
    const session = await sessionWith({ mcpServers: { none: serverNamed("n", { tools: [] }) } });
    expect(session.mcp.list()).toMatchObject([{ name: "none", status: "disabled" }]);
    expect(session.mcp.list()[0]).not.toHaveProperty("pid");
  });
});

describe("the servers of a skill", () => {
  test("servers follow the skill's manifest, and only changed servers are restarted", async () => {
    const folder = emptyFolder();
    const skill = (servers: object) => ({ "skills/s/skill.json": { name: "s", description: "d", mcpServers: servers } });
    writeFiles(folder, skill({ a: serverNamed("a"), b: serverNamed("b") }));
    const host = await hostIn(folder, { skillDirectories: ["skills"] });
    const session = await openSession(host);
    await session.ready();
    const pid = await pidOf(session, "a");
    writeFiles(folder, skill({ a: serverNamed("a"), c: serverNamed("c") }));
    await host.reload();
    expect(session.mcp.list().map(({ name }) => name)).toEqual(["a", "c"]);
    expect(await pidOf(session, "a")).toBe(pid);
    expect(await say(session, "c/who")).toMatchObject({ name: "c", cwd: `${folder}/skills/s` });
  });

  test("a skill's tools call its servers through the permission gates", async () => {
    const folder = emptyFolder();
    writeFiles(folder, {
      "skills/s/skill.json": { name: "s", description: "d", mcpServers: { notes: serverNamed("n") } },
      "skills/s/tools/repeat.json": {
        name: "repeat",
        description: "Repeats it.",
        parameters: { type: "object", properties: { text: { type: "string" } } },
        handler: { mcp: { server: "notes", tool: "echo" } },
      },
    });
    const host = await hostIn(folder, { skillDirectories: ["skills"] });
    const asked: unknown[] = [];
    const session = await openSession(host, {
      onPermissionRequest: (request) => {
        asked.push(request["toolName"]);
        return { kind: "approve-once" };
      },
    });
    expect(await say(session, "repeat", { text: "once more" })).toBe("once more");
    expect(asked).toEqual(["repeat", "notes-echo"]);
    await session.update({ excludedTools: ["notes-echo"] });
    expect((await session.callTool("repeat", { text: "x" })).resultType).toBe("failure");
  });
});
