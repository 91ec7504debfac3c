import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const skill = (name: string, body = "Do it.", description = `About ${name}.`): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\n${body}\n`;

async function session(
  options: object = {},
  files: Readonly<Record<string, string>> = {},
): Promise<{ client: TestClient; sessionId: string }> {
  served = await Served.start({ files });
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", ...options }) };
}

describe("skills", () => {
  test("are listed with those that are switched off, and switched while the session lives", async () => {
    const files = { "skills/alpha/SKILL.md": skill("alpha"), "more/beta/SKILL.md": skill("beta"), "more/gamma/SKILL.md": skill("gamma") };
    const { client, sessionId } = await session({ skillDirectories: ["more"], disabledSkills: ["gamma"] }, files);
    const list = async (): Promise<Json> => (await client.request("session.skills.list", { sessionId })).skills;
    const entry = { source: "custom", userInvocable: true };
    expect(await list()).toEqual([
      {
        ...entry,
        name: "alpha",
        commandName: "alpha",
        description: "About alpha.",
        enabled: true,
        path: join(served.folder, "skills/alpha/SKILL.md"),
      },
      {
        ...entry,
        name: "beta",
        commandName: "beta",
        description: "About beta.",
        enabled: true,
        path: join(served.folder, "more/beta/SKILL.md"),
      },
      {
        ...entry,
        name: "gamma",
        commandName: "gamma",
        description: "About gamma.",
        enabled: false,
        path: join(served.folder, "more/gamma/SKILL.md"),
      },
    ]);
    await client.request("session.skills.enable", { sessionId, name: "gamma" });
    await client.request("session.skills.disable", { sessionId, name: "alpha" });
    expect(await client.request("session.skills.enable", { sessionId, name: "missing" })).toBe(null);
    expect((await list()).map(({ name, enabled }: Json) => [name, enabled])).toEqual([
      ["alpha", false],
      ["beta", true],
      ["gamma", true],
    ]);
    const { commands } = await client.request("session.commands.list", { sessionId });
    expect(commands.filter(({ kind }: Json) => kind === "skill").map(({ name }: Json) => name)).toEqual(["beta", "gamma"]);
    expect(await client.request("session.commands.invoke", { sessionId, name: "beta", input: "now" })).toEqual({
      kind: "agent-prompt",
      prompt: "/beta now",
      displayPrompt: "/beta now",
    });
    expect(await client.request("session.skills.ensureLoaded", { sessionId })).toBe(null);
  });

  test("that are saved reach a session without any call: skills, tools, and the notice of what is gone", async () => {
    const { client, sessionId } = await session({}, { "skills/alpha/SKILL.md": skill("alpha") });
    await client.request("session.permissions.setApproveAll", { sessionId, enabled: true });
    served.says("Hi.");
    await client.say(sessionId, "Hi");
    expect((await client.event("session.skills_loaded")).data["skills"]).toMatchObject([{ name: "alpha" }]);
    served.write("skills/books/SKILL.md", skill("books"));
    served.write(
      "skills/books/tools/find.mjs",
      'export const SCHEMA = { name: "find_book", description: "Finds.", parameters: { type: "object", properties: {} } };\nexport const execute = () => "Emma";',
    );
    const loaded = await client.event("session.skills_loaded", ({ data }) => JSON.stringify(data).includes('"books"'));
    expect(loaded.ephemeral).toBe(true);
    await client.event("session.tools_updated", () =>
      served.server.sessions
        .get(sessionId)!
        .session.listTools()
        .some(({ name }) => name === "find_book"),
    );
    served.says(calling("find_book"), "It is Emma.");
    await client.say(sessionId, "Find a book");
    expect(served.asked.messages.at(-1).content).toBe("Emma");
    rmSync(join(served.folder, "skills/books"), { recursive: true });
    await client.event(
      "session.skills_loaded",
      (event) => event.timestamp > loaded.timestamp && !JSON.stringify(event.data).includes('"books"'),
    );
    served.says("Gone.");
    await client.say(sessionId, "And now?");
    expect(served.asked.messages.at(-1).content).toContain("Tools no longer available: find_book");
  });

  test("are used by the model, and what was invoked can be asked for", async () => {
    const { client, sessionId } = await session({}, { "skills/alpha/SKILL.md": skill("alpha", "Answer in verse.") });
    await client.request("session.permissions.setApproveAll", { sessionId, enabled: true });
    served.says(calling("skill", { skill: "alpha" }), "Roses are red.");
    await client.say(sessionId, "Use alpha");
    const { messages } = served.asked;
    expect(messages.find(({ role }: Json) => role === "tool").content).toBe(
      'Skill "alpha" loaded successfully. Follow the instructions in the skill context.',
    );
    expect(messages.at(-1).content).toContain('<skill-context name="alpha">');
    const { skills } = await client.request("session.skills.getInvoked", { sessionId });
    expect(skills).toMatchObject([{ name: "alpha", content: expect.stringContaining("Answer in verse."), invokedAtTurn: 1 }]);
  });

  test("none are there for a client that wants none", async () => {
    const { client, sessionId } = await session({ enableSkills: false }, { "skills/alpha/SKILL.md": skill("alpha") });
    served.says("Hi.");
    await client.say(sessionId, "Hi");
    expect(served.asked.messages[0].content).not.toContain("alpha");
    expect((served.asked.tools ?? []).map((tool: Json) => tool.function.name)).not.toContain("skill");
  });

  test("reloading skills reports their problems; the server lists, discovers and disables skills for all sessions", async () => {
    const files = {
      "skills/alpha/SKILL.md": skill("alpha"),
      "project/skills/delta/SKILL.md": skill("delta"),
      "skills/bad/skill.json": "{ nope",
    };
    const { client, sessionId } = await session({}, files);
    const report = await client.request("session.skills.reload", { sessionId });
    expect(report.errors.join()).toContain("skill.json");
    const project = join(served.folder, "project");
    const found = await client.request("skills.discover", { projectPaths: [project], excludeHostSkills: true });
    expect(found.skills.map(({ name }: Json) => name)).toEqual(["delta"]);
    const { paths } = await client.request("skills.getDiscoveryPaths", { projectPaths: [project] });
    expect(paths.map(({ path }: Json) => path)).toEqual([join(project, "skills"), join(served.folder, "skills")]);
    await client.request("skills.config.setDisabledSkills", { disabledSkills: ["alpha"] });
    expect((await client.request("session.skills.list", { sessionId })).skills).toMatchObject([{ name: "alpha", enabled: false }]);
    await client.request("skills.config.setSkillDisabled", { name: "alpha", disabled: false });
    expect((await client.request("session.skills.list", { sessionId })).skills).toMatchObject([{ name: "alpha", enabled: true }]);
  });

  test("of a plugin's folder belong to the sessions that name it, or to all of a client's", async () => {
    served = await Served.start({ files: { "plug/skills/one/SKILL.md": skill("one"), "builtin/skills/two/SKILL.md": skill("two") } });
    const client = await served.connect();
    expect((await client.refusal("plugins.builtin.set", { paths: ["relative"] })).message).toContain("absolute");
    await client.request("plugins.builtin.set", { paths: [join(served.folder, "builtin")] });
    const sessionId = await client.create({ pluginDirectories: [join(served.folder, "plug")] });
    expect((await client.request("session.skills.list", { sessionId })).skills.map(({ name }: Json) => name)).toEqual(["two", "one"]);
  });
});

const echoServer = fileURLToPath(new URL("../../doubles/mcp-servers/raw-server.mjs", import.meta.url));
const echo = { command: process.execPath, args: [echoServer, "plain"], tools: ["*"] };

describe("MCP servers", () => {
  test("MCP servers start when a client first lists them, and can be stopped and started", async () => {
    const { client, sessionId } = await session({ mcpServers: { echo, off: echo }, disabledMcpServers: ["off"] });
    await client.request("session.metadata.snapshot", { sessionId });
    const [listed] = served.server.sessions.get(sessionId)!.session.mcp.list();
    expect([listed?.status, listed?.pid]).toEqual(["pending", undefined]);
    const list = () => client.request("session.mcp.list", { sessionId });
    // The wait for servers is bounded, so the first answers may come before it has started.
    await expect
      .poll(async () => (await list()).servers)
      .toEqual([
        { name: "echo", status: "connected", transport: "stdio", source: "user" },
        { name: "off", status: "disabled", transport: "stdio", source: "user" },
      ]);
    const { host } = await list();
    expect(host).toMatchObject({ mcp3pEnabled: true, clients: ["echo"], disabledServers: ["off"] });
    const { tools } = await client.request("session.mcp.listTools", { sessionId, serverName: "echo" });
    expect(tools.length).toBeGreaterThan(0);
    expect((await client.refusal("session.mcp.listTools", { sessionId, serverName: "nope" })).message).toContain("not connected");
    expect(await client.request("session.mcp.isServerRunning", { sessionId, serverName: "echo" })).toEqual({ running: true });
    await client.request("session.mcp.stopServer", { sessionId, serverName: "echo" });
    expect(await client.request("session.mcp.isServerRunning", { sessionId, serverName: "echo" })).toEqual({ running: false });
    await client.request("session.mcp.startServer", { sessionId, serverName: "echo" });
    expect(await client.request("session.mcp.isServerRunning", { sessionId, serverName: "echo" })).toEqual({ running: true });
    await client.request("session.mcp.disable", { sessionId, serverName: "echo" });
    expect((await client.request("session.mcp.list", { sessionId })).servers).toMatchObject([
      { status: "disabled" },
      { status: "disabled" },
    ]);
    await client.request("session.mcp.enable", { sessionId, serverName: "echo" });
    expect((await client.request("session.mcp.list", { sessionId })).servers).toMatchObject([
      { status: "connected" },
      { status: "disabled" },
    ]);
    expect((await client.refusal("session.mcp.oauth.login", { sessionId, serverName: "echo" })).message).toContain("not a remote server");
    expect((await client.refusal("session.mcp.oauth.login", { sessionId, serverName: "nope" })).message).toContain("is not configured");
    expect(await client.request("session.mcp.resources.list", { sessionId, serverName: "echo" })).toEqual({ resources: [] });
  });

  test("of sessions without any are refused in the words that clients look for", async () => {
    const { client, sessionId } = await session();
    expect(await client.request("session.mcp.list", { sessionId })).toEqual({ servers: [] });
    const refusal = async (method: string): Promise<string> =>
      (await client.refusal(`session.mcp.${method}`, { sessionId, serverName: "x" })).message;
    expect(await refusal("enable")).toContain("No MCP host initialized");
    expect(await refusal("disable")).toContain("No MCP host initialized");
    expect(await refusal("reload")).toContain("MCP config reload not available");
    expect(await refusal("oauth.login")).toContain("MCP host is not available");
    expect(await client.request("session.mcp.removeGitHub", { sessionId })).toEqual({ removed: false });
    expect(await client.request("session.mcp.setEnvValueMode", { sessionId, mode: "indirect" })).toEqual({ mode: "indirect" });
    expect(await client.request("session.mcp.cancelSamplingExecution", { sessionId, requestId: "x" })).toEqual({ cancelled: false });
  });

  test("that a user configured through a client are those of the sessions made after that, and outlive the server", async () => {
    served = await Served.start();
    const client = await served.connect();
    const url = { type: "http", url: "https://example.com/mcp", headers: { a: "b" }, oauth: { clientId: "c" } };
    await client.request("mcp.config.add", { name: "remote", config: url });
    await client.request("mcp.config.add", { name: "echo", config: echo });
    expect((await client.refusal("mcp.config.add", { name: "echo", config: echo })).message).toContain("already");
    await client.request("mcp.config.disable", { names: ["remote"] });
    expect(await client.request("mcp.config.list")).toEqual({ servers: { remote: url, echo } });
    const sessionId = await client.create();
    expect((await client.request("session.mcp.list", { sessionId })).servers).toMatchObject([{ name: "echo", status: "connected" }]);
    await client.request("mcp.config.update", { name: "remote", config: { ...url, url: "https://example.com/2" } });
    await client.request("mcp.config.reload");
    expect((await client.request("mcp.config.list")).servers.remote.url).toBe("https://example.com/2");
    await client.request("mcp.config.remove", { name: "remote" });
    expect((await client.refusal("mcp.config.remove", { name: "remote" })).message).toContain("remote");
    expect(Object.keys((await client.request("mcp.config.list")).servers)).toEqual(["echo"]);
    expect((await client.request("mcp.discover")).servers).toMatchObject([{ name: "echo", source: "user", enabled: true }]);
  });
});

describe("agents", () => {
  const customAgents = [
    {
      name: "reader",
      displayName: "Reader",
      description: "Reads.",
      prompt: "You read.",
      tools: ["get_weather"],
      infer: true,
      somethingNew: 1,
    },
    { name: "free", prompt: "You do anything.", tools: null },
  ];

  test("are listed, chosen and let go, and the model has the tools of the one that is chosen", async () => {
    const { client, sessionId } = await session({ customAgents, agent: "reader", tools: [weather, { ...weather, name: "other" }] });
    const reader = { id: "reader", name: "reader", displayName: "Reader", description: "Reads.", tools: ["get_weather"] };
    expect(await client.request("session.agent.list", { sessionId })).toEqual({
      agents: [reader, { id: "free", name: "free", displayName: "free", description: "" }],
    });
    expect(await client.request("session.agent.getCurrent", { sessionId })).toEqual({ agent: reader });
    served.says("Hi.", "Ho.");
    await client.say(sessionId, "Hi");
    const names = (): string[] => served.asked.tools.map((tool: Json) => tool.function.name);
    expect(names()).not.toContain("other");
    expect((await client.event("subagent.selected")).data).toMatchObject({ agentName: "reader" });
    await client.request("session.agent.deselect", { sessionId });
    expect(await client.request("session.agent.getCurrent", { sessionId })).toEqual({});
    await client.say(sessionId, "Hi");
    expect(names()).toContain("other");
    expect(await client.request("session.agent.select", { sessionId, name: "free" })).toMatchObject({ agent: { name: "free" } });
    expect((await client.refusal("session.agent.select", { sessionId, name: "missing" })).message).toContain("missing");
    expect(await client.request("agents.discover")).toEqual({ agents: [] });
    expect(await client.request("agents.getDiscoveryPaths")).toEqual({ paths: [] });
  });
});

describe("what a session keeps", () => {
  test("a plan, files, a name and a mode", async () => {
    const { client, sessionId } = await session();
    const ask = (method: string, params: object = {}): Promise<Json> => client.request(`session.${method}`, { sessionId, ...params });
    expect(await ask("plan.read")).toEqual({ exists: false, content: null, path: null });
    await ask("plan.update", { content: "# One" });
    await ask("plan.update", { content: "# Two" });
    expect(await ask("plan.read")).toMatchObject({ exists: true, content: "# Two", path: expect.stringContaining("plan.md") });
    await ask("plan.delete");
    await ask("plan.delete");
    expect(client.events.filter(({ event }) => event.type === "session.plan_changed").map(({ event }) => event.data["operation"])).toEqual([
      "create",
      "update",
      "delete",
    ]);
    expect(await ask("workspaces.listFiles")).toEqual({ files: [] });
    await ask("workspaces.createFile", { path: "notes/a.txt", content: "Hello" });
    expect(await ask("workspaces.listFiles")).toEqual({ files: ["notes/a.txt"] });
    expect(await ask("workspaces.readFile", { path: "notes/a.txt" })).toEqual({ content: "Hello" });
    for (const path of ["../events.jsonl", "/etc/passwd", "a\0b"]) {
      expect((await client.refusal("session.workspaces.readFile", { sessionId, path })).code).toBe(-32603);
      expect((await client.refusal("session.workspaces.createFile", { sessionId, path, content: "x" })).code).toBe(-32603);
    }
    await ask("name.set", { name: "My session" });
    expect(await ask("name.get")).toEqual({ name: "My session" });
    expect((await client.event("session.title_changed")).data).toEqual({ title: "My session" });
    expect(await ask("mode.get")).toBe("interactive");
    await ask("mode.set", { mode: "plan" });
    expect(await ask("mode.get")).toBe("plan");
    expect((await client.event("session.mode_changed")).data).toEqual({ previousMode: "interactive", newMode: "plan" });
    expect((await client.refusal("session.mode.set", { sessionId, mode: "fast" })).code).toBe(-32602);
    expect(await ask("metadata.snapshot")).toMatchObject({
      sessionId,
      currentMode: "plan",
      workingDirectory: served.folder,
      selectedModel: "m",
      isRemote: false,
    });
    expect((await ask("workspaces.getWorkspace")).workspace).toMatchObject({ id: sessionId, cwd: served.folder, name: "My session" });
    expect(await ask("log", { message: "Careful.", level: "warning" })).toEqual({ eventId: (await client.event("session.warning")).id });
  });

  test("sessions that are kept can be found, measured and deleted", async () => {
    served = await Served.start();
    const client = await served.connect();
    for (const sessionId of ["aa-1", "aa-2", "bb-1"]) await client.create({ sessionId });
    await client.request("sessions.save", { sessionId: "aa-1" });
    expect((await client.request("sessions.list", {})).sessions.map(({ sessionId }: Json) => sessionId).sort()).toEqual([
      "aa-1",
      "aa-2",
      "bb-1",
    ]);
    expect(await client.request("sessions.findByPrefix", { prefix: "bb" })).toEqual({ sessionId: "bb-1" });
    expect(await client.request("sessions.findByPrefix", { prefix: "aa" })).toEqual({});
    expect(await client.request("sessions.findByTaskId", { taskId: "t" })).toEqual({});
    expect((await client.request("sessions.checkInUse", { sessionIds: ["aa-1", "zz"] })).inUse).toEqual(["aa-1"]);
    expect(await client.request("sessions.getLastForContext", { context: { cwd: "/elsewhere" } })).toEqual({});
    const { sizes } = await client.request("sessions.getSizes");
    expect(sizes["aa-1"]).toBeGreaterThan(100);
    expect((await client.request("sessions.enrichMetadata", { sessions: [{ sessionId: "aa-1" }] })).sessions[0]).toMatchObject({
      startTime: expect.any(String),
    });
    await client.request("sessions.close", { sessionId: "aa-1" });
    const pruned = await client.request("sessions.pruneOld", { olderThanDays: -1, dryRun: true });
    expect(pruned).toMatchObject({ dryRun: true, deleted: [], candidates: ["aa-1"] });
    const { freedBytes } = await client.request("sessions.bulkDelete", { sessionIds: ["aa-1", "aa-2", "../x", "missing"] });
    expect(Object.keys(freedBytes)).toEqual(["aa-1", "aa-2"]);
    expect((await client.request("sessions.list", {})).sessions.map(({ sessionId }: Json) => sessionId)).toEqual(["bb-1"]);
  });

  test("lists of plugins, extensions, instructions and quotas are there, and empty", async () => {
    const { client, sessionId } = await session();
    expect(await client.request("plugins.list")).toEqual({ plugins: [] });
    expect(await client.request("session.plugins.list", { sessionId })).toEqual({ plugins: [] });
    expect(await client.request("plugins.marketplaces.list")).toEqual({ marketplaces: [] });
    expect(await client.request("session.extensions.list", { sessionId })).toEqual({ extensions: [] });
    expect((await client.refusal("session.extensions.enable", { sessionId, id: "x" })).message).toContain("Extension not found: x");
    expect(await client.request("instructions.discover")).toEqual({ sources: [] });
    expect(await client.request("account.getQuota")).toEqual({ quotaSnapshots: {} });
    const { handle } = await client.request("session.eventLog.registerInterest", { sessionId, eventType: "mcp.oauth_required" });
    expect(handle).toEqual(expect.any(String));
  });
});
