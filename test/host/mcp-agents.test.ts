import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../src/models/model.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { patience } from "../slowness.ts";
import { hostIn, nextEvent, openSession, pidOf, say, serverNamed, sessionWith } from "./servers-kit.ts";

const namesOf = (request: ModelRequest | undefined): readonly string[] => request?.tools?.map(({ name }) => name) ?? [];

describe("servers of an agent", () => {
  const customAgents = [
    {
      name: "clerk",
      description: "Keeps files.",
      prompt: "Keep files.",
      mcpServers: { files: serverNamed("f"), notes: serverNamed("clerk-n") },
    },
    { name: "guest", description: "Visits.", prompt: "Visit." },
  ];

  test("the servers of a selected agent are added to those of the session, which keep their names", async () => {
    const session = await sessionWith({ customAgents, agent: "clerk", mcpServers: { notes: serverNamed("n") } });
    expect(session.mcp.list().map(({ name, origin }) => [name, origin])).toEqual([
      ["files", { kind: "agent", source: "clerk" }],
      ["notes", { kind: "session" }],
    ]);
    expect(await say(session, "files/who")).toMatchObject({ name: "f" });
    expect(await say(session, "notes/who")).toMatchObject({ name: "n" });
    const pid = await pidOf(session, "notes");
    await session.update({ agent: undefined });
    expect(session.mcp.list().map(({ name }) => name)).toEqual(["notes"]);
    expect(session.catalog.executables.has("files-who")).toBe(false);
    expect(await pidOf(session, "notes")).toBe(pid);
  });

  test("the servers of a sub-agent and their instructions are available to that agent only", async () => {
    const chat = fakeChat(
      { calls: [{ name: "task", args: { agent_type: "clerk", description: "File it", prompt: "File it.", mode: "sync" } }] },
      { calls: [{ name: "files-who" }] },
      "Filed.",
      "Done.",
    );
    const host = await hostIn(emptyFolder(), { mcpServers: { notes: serverNamed("n") } });
    const session = await openSession(host, { customAgents, chatModel: chat });
    const called = nextEvent(session, "tool.execution_complete", ({ data }) =>
      String(data["result"] && JSON.stringify(data["result"])).includes("pid"),
    );
    await session.sendAndWait("Have it filed.");
    const [own, child] = chat.requests;
    expect(namesOf(own)).toContain("notes-who");
    expect(namesOf(own)).not.toContain("files-who");
    expect(namesOf(child)).toEqual(expect.arrayContaining(["notes-who", "files-who"]));
    expect(child!.messages[0]!.content).toContain("I am f.");
    expect((await called).agentId).toBeDefined();
    expect(session.catalog.executables.has("files-who")).toBe(false);
  });
});

describe("agents and tools of plugins", () => {
  test("agents of plugins can be selected and get tasks, and a session's agent with the same name replaces them", async () => {
    const { definePlugin } = await import("../../src/plugin-host/define-plugin.ts");
    const crew = definePlugin({
      name: "crew",
      activate(api) {
        api.addAgent({ name: "tester", description: "Tests.", prompt: "You test.", mcpServers: { bench: serverNamed("bench") } });
        api.addAgent({ name: "writer", description: "Writes.", prompt: "You write." });
        api.addMcpServer("notes", serverNamed("plugin-notes"));
      },
    });
    const host = await hostIn(emptyFolder(), { plugins: [crew] });
    const chat = fakeChat("Tested.");
    const session = await openSession(host, { agent: "tester", chatModel: chat, customAgents: [{ name: "writer", prompt: "I write." }] });
    await session.sendAndWait("Test it.");
    expect(chat.requests[0]!.messages[0]!.content).toContain("You test.");
    expect(namesOf(chat.requests[0])).toEqual(expect.arrayContaining(["bench-who", "notes-who"]));
    expect(session.config.agents.all.get("writer")?.prompt).toBe("I write.");
    expect(session.mcp.list().map(({ name, origin }) => [name, origin])).toEqual([
      ["notes", { kind: "plugin", source: "crew" }],
      ["bench", { kind: "agent", source: "tester" }],
    ]);
    await expect(openSession(host, { agent: "stranger" })).rejects.toThrow('these are "tester", "writer"');
  });

  test("explain resolves tools of plugins and servers by either name", async () => {
    const { definePlugin } = await import("../../src/plugin-host/define-plugin.ts");
    const shouting = definePlugin({
      name: "shouting",
      activate: (api) => api.addTools({ name: "notes-echo", description: "Shouts.", handler: () => "X" }),
    });
    const host = await hostIn(emptyFolder(), { plugins: [shouting], mcpServers: { notes: serverNamed("n") } });
    const servers = await host.connectServers();
    expect(servers).toMatchObject([{ name: "notes", origin: { kind: "host" }, status: "connected" }]);
    expect(host.explain("notes-echo").tools).toMatchObject([
      { kind: "plugin", source: "shouting", state: "wins" },
      {
        kind: "mcp",
        source: "notes",
        nativeName: "echo",
        state: "lost",
        rule: expect.stringContaining('the name belongs to plugin "shouting"'),
      },
    ]);
    expect(host.explain("notes/who").tools).toMatchObject([{ name: "notes-who", kind: "mcp", source: "notes", state: "wins" }]);
  });
});

describe("the server list of a host", () => {
  test("the list has the host's servers and the sessions' servers with their state, and connecting does not exceed its time limit", async () => {
    const host = await hostIn(emptyFolder(), { mcpServers: { broken: { command: "no-such-command-here" }, notes: serverNamed("n") } });
    expect(host.listServers()).toMatchObject([
      { name: "broken", status: "pending" },
      { name: "notes", status: "pending", tools: [] },
    ]);
    await openSession(host, { mcpServers: { own: serverNamed("o") } });
    const servers = await host.connectServers({ timeout: patience(20_000) });
    expect(servers).toMatchObject([
      { name: "broken", status: "failed", error: expect.stringContaining("no-such-command-here") },
      { name: "notes", status: "connected", protocolVersion: expect.any(String) },
      { name: "own", origin: { kind: "session" } },
    ]);
    expect(servers[1]!.tools.map(({ nativeName }) => nativeName)).toContain("who");
  });

  test("an invalid server of the host is a diagnostic, not an error", async () => {
    const host = await hostIn(emptyFolder(), { mcpServers: { wrong: { command: 5 } } });
    expect(host.diagnostics).toMatchObject([{ severity: "error", source: "wrong" }]);
    expect(host.listServers()).toMatchObject([{ name: "wrong", status: "not_configured" }]);
    await expect(hostIn(emptyFolder(), { mcp: { pins: "never" as never } })).rejects.toThrow("mcp.pins must be one of");
  });
});
