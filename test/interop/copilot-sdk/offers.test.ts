import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { calling, event, eventsOf, named, Runtime, type Sdk, write } from "./sdk-kit.ts";

let runtime: Runtime;
let sdk: Sdk;
beforeAll(async () => {
  runtime = await Runtime.start();
  sdk = runtime.sdk;
}, patience(120_000));

afterEach(() => runtime.clear());
afterAll(() => runtime[Symbol.asyncDispose]());

const skill = (name: string, body = "Do it."): string => `---\nname: ${name}\ndescription: About ${name}.\n---\n${body}\n`;
const toolModule = (name: string, answer: string): string =>
  [
    `export const SCHEMA = { name: "${name}", description: "Answers.", parameters: { type: "object", properties: {} } };`,
    `export const execute = () => ${JSON.stringify(answer)};`,
  ].join("\n");
const toolNames = (): string[] => runtime.asked.tools.map((tool: Sdk) => tool.function.name);
const custom = (name: string, answer: string): Sdk =>
  sdk.defineTool(name, { description: "Answers.", skipPermission: true, handler: () => answer });

describe("saved skills", () => {
  test("a saved skill and its tools reach a session without a reload request, and the model reads which tools are removed", async () => {
    const place = runtime.place({ "skills/alpha/SKILL.md": skill("alpha") });
    const session = await runtime.session({ skillDirectories: [join(place, "skills")] });
    runtime.says("Hi.");
    await session.sendAndWait("Hi");
    const loaded = event(session, "session.skills_loaded", ({ skills }) => skills.some(named("books")));
    const updated = event(session, "session.tools_updated");
    write(join(place, "skills/books/SKILL.md"), skill("books", "Use find_book."));
    write(join(place, "skills/books/tools/find_book.mjs"), toolModule("find_book", "Row 3."));
    expect((await loaded).ephemeral).toBe(true);
    expect((await updated).data.model).toBe("claude-sonnet-4.5");
    const offered = async (): Promise<string[]> => (await session.rpc.tools.getCurrentMetadata()).tools.map(({ name }: Sdk) => name);
    await expect.poll(offered, { interval: 20 }).toContain("find_book");
    runtime.says(calling("find_book"), "Row 3.");
    await session.sendAndWait("Find a book");
    expect(runtime.lastToolResult).toBe("Row 3.");
    write(join(place, "skills/books/tools/find_book.mjs"), toolModule("find_book", "Row 4."));
    const again = (): Promise<string> => {
      runtime.says(calling("find_book"), "So.");
      return session.sendAndWait("Again").then(() => runtime.lastToolResult);
    };
    await expect.poll(again, { interval: 20 }).toBe("Row 4.");
    const without = event(session, "session.skills_loaded", ({ skills }) => !skills.some(named("books")));
    rmSync(join(place, "skills/books"), { recursive: true });
    await without;
    runtime.says("Gone.");
    await session.sendAndWait("And now?");
    expect(runtime.asked.messages.at(-1).content).toMatch(
      /<tools_changed_notice>\nTools no longer available: find_book\n\nImportant: .*\n<\/tools_changed_notice>\n\n<current_datetime>[^<]+<\/current_datetime>\n\nAnd now\?$/,
    );
    expect(toolNames()).not.toContain("find_book");
  });

  test("a skill that changes during a turn is in the next request of that turn", async () => {
    const place = runtime.place({ "skills/books/SKILL.md": skill("books"), "skills/books/tools/one.mjs": toolModule("one", "1") });
    const session = await runtime.session({
      skillDirectories: [join(place, "skills")],
      tools: [
        sdk.defineTool("save", {
          description: "Saves a skill.",
          skipPermission: true,
          handler: async () => {
            const updated = event(session, "session.tools_updated");
            write(join(place, "skills/books/tools/two.mjs"), toolModule("two", "2"));
            await updated;
            return "Saved.";
          },
        }),
      ],
    });
    runtime.says(calling("save"), calling("two", {}, "call-2"), "Done.");
    await session.sendAndWait("Save it");
    expect(runtime.lastToolResult).toBe("2");
  });
});

describe("skills", () => {
  test("the skills of a session are invoked, listed, disabled, enabled, and reloaded on demand", async () => {
    const place = runtime.place({ "mine/verse/SKILL.md": skill("verse", "Rhyme."), "mine/prose/SKILL.md": skill("prose") });
    const session = await runtime.session({ skillDirectories: [join(place, "mine")], disabledSkills: ["prose"] });
    const invoked = event(session, "skill.invoked");
    runtime.says(calling("skill", { skill: "verse" }), "Roses.");
    await session.sendAndWait("Use verse");
    expect(runtime.lastToolResult).toBe('Skill "verse" loaded successfully. Follow the instructions in the skill context.');
    expect(runtime.asked.messages.at(-1)).toMatchObject({
      role: "user",
      content: `<skill-context name="verse">\nBase directory for this skill: ${place}/mine/verse\n\nRhyme.\n\n</skill-context>`,
    });
    expect((await invoked).data).toMatchObject({ name: "verse", trigger: "agent-invoked" });
    expect(runtime.asked.messages[0].content).toContain("<name>verse</name>");
    expect(runtime.asked.messages[0].content).not.toContain("<name>prose</name>");
    expect((await session.rpc.skills.getInvoked()).skills).toMatchObject([{ name: "verse" }]);
    const listed = async (): Promise<[string, boolean][]> =>
      (await session.rpc.skills.list()).skills
        .filter(({ source }: Sdk) => source === "custom")
        .map(({ name, enabled }: Sdk) => [name, enabled])
        .sort();
    expect(await listed()).toEqual([
      ["prose", false],
      ["verse", true],
    ]);
    await session.rpc.skills.enable({ name: "prose" });
    await session.rpc.skills.disable({ name: "verse" });
    expect(await listed()).toEqual([
      ["prose", true],
      ["verse", false],
    ]);
    write(join(place, "mine/late/SKILL.md"), skill("late"));
    await session.rpc.skills.reload();
    expect((await listed()).map(([name]) => name)).toContain("late");
  });

  test("the skills that an agent names are in its instructions from the beginning", async () => {
    const place = runtime.place({ "mine/verse/SKILL.md": skill("verse", "Rhyme.") });
    const session = await runtime.session({
      skillDirectories: [join(place, "mine")],
      customAgents: [{ name: "poet", description: "Writes.", prompt: "You write.", skills: ["verse"] }],
      agent: "poet",
    });
    const invoked = event(session, "skill.invoked");
    runtime.says("Roses.");
    await session.sendAndWait("Write");
    expect(runtime.asked.messages[0].content).toMatch(
      /<agent_instructions>[\s\S]*<skill-context name="verse">[\s\S]*<\/agent_instructions>/,
    );
    expect((await invoked).data).toMatchObject({ name: "verse", trigger: "context-load" });
  });
});

describe("MCP servers", () => {
  const raw = {
    type: "local",
    command: process.execPath,
    args: [fileURLToPath(new URL("meta-server.mjs", import.meta.url))],
    tools: ["*"],
  };

  test("an MCP server starts with the first turn, and its calls ask for permission and emit events as MCP calls", async () => {
    const asked: Sdk[] = [];
    const session = await runtime.session({
      mcpServers: { box: raw, off: raw },
      disabledMcpServers: ["off"],
      onPermissionRequest: (request: Sdk) => {
        asked.push(request);
        return { kind: "approve-once" };
      },
    });
    const [started, completed] = [event(session, "tool.execution_start"), event(session, "tool.execution_complete")];
    runtime.says(calling("box-echo", { text: "hey" }), "Done.");
    await session.sendAndWait("Call it");
    expect(runtime.lastToolResult).toBe('{"text":"hey"} with {}');
    expect(asked).toMatchObject([{ kind: "mcp", serverName: "box", toolName: "box-echo", args: { text: "hey" } }]);
    expect((await started).data).toMatchObject({ toolName: "box-echo", mcpServerName: "box", mcpToolName: "echo" });
    expect((await completed).data.result.contents).toEqual([{ type: "text", text: '{"text":"hey"} with {}' }]);
    expect((await session.rpc.mcp.list()).servers).toMatchObject([
      { name: "box", status: "connected" },
      { name: "off", status: "disabled" },
    ]);
    expect((await session.rpc.mcp.listTools({ serverName: "box" })).tools.map(({ name }: Sdk) => name)).toEqual(["echo"]);
  });

  test.each<[what: string, output: object | undefined, meta: string]>([
    ["replaces it", { metaToUse: { trace: 1 } }, '{"trace":1}'],
    ["removes it", { metaToUse: null }, "{}"],
    ["leaves it", undefined, "{}"],
  ])("are sent the _meta of the hook that %s", async (_what, output, meta) => {
    const inputs: Sdk[] = [];
    const session = await runtime.session({
      mcpServers: { box: raw },
      hooks: {
        onPreMcpToolCall: (input: Sdk) => {
          inputs.push(input);
          return output;
        },
      },
    });
    runtime.says(calling("box-echo", { text: "hey" }), "Done.");
    await session.sendAndWait("Call it");
    expect(inputs).toMatchObject([{ serverName: "box", toolName: "echo", arguments: { text: "hey" }, toolCallId: "call-1" }]);
    expect(runtime.lastToolResult).toBe(`{"text":"hey"} with ${meta}`);
  });

  test("an MCP server that cannot start or does not exist is reported, and the session keeps running", async () => {
    const session = await runtime.session({ mcpServers: { gone: { type: "local", command: "/nowhere/at-all", args: [], tools: ["*"] } } });
    runtime.says("Hi.");
    expect((await session.sendAndWait("Hi")).data.content).toBe("Hi.");
    expect((await session.rpc.mcp.list()).servers).toMatchObject([{ name: "gone", status: "failed" }]);
    await expect(session.rpc.mcp.listTools({ serverName: "unknown" })).rejects.toThrow(/not connected/);
  });
});

describe("agents", () => {
  const reader = { name: "reader", displayName: "Reader", description: "Reads.", prompt: "You read aloud.", tools: ["one"] };

  test("a selected agent sets the prompt and the tools of the conversation", async () => {
    const session = await runtime.session({ tools: [custom("one", "1"), custom("two", "2")], customAgents: [reader], agent: "reader" });
    runtime.says("Hi.", "Ho.");
    await session.sendAndWait("Hi");
    expect(runtime.asked.messages[0].content).toContain("You read aloud.");
    expect([toolNames().includes("one"), toolNames().includes("two")]).toEqual([true, false]);
    expect((await session.rpc.agent.getCurrent()).agent).toMatchObject({ name: "reader" });
    await session.rpc.agent.deselect();
    await session.sendAndWait("Ho");
    expect(toolNames()).toContain("two");
  });

  test("an agent that runs a task has its own conversation, with the parent's call as its id", async () => {
    const session = await runtime.session({
      tools: [custom("one", "1")],
      customAgents: [reader],
      hooks: { onPreToolUse: () => undefined },
    });
    const events = eventsOf(session);
    runtime.says(
      calling("task", { agent_type: "reader", name: "read-it", description: "Read", prompt: "Read the book.", mode: "sync" }, "call-task"),
      calling("one", {}, "call-one"),
      "It begins.",
      "The book begins.",
    );
    expect((await session.sendAndWait("Go")).data.content).toBe("The book begins.");
    expect(runtime.lastToolResult).toBe("It begins.");
    const [, child] = runtime.requests.slice(-4).map(({ body }) => body);
    expect(child.messages[0].content).toContain("You read aloud.");
    expect(child.messages.at(-1)).toMatchObject({ role: "user", content: expect.stringContaining("Read the book.") });
    const ofChild = events.filter(({ agentId }) => agentId !== undefined);
    expect(new Set(ofChild.map(({ agentId }) => agentId))).toEqual(new Set(["call-task"]));
    expect(ofChild.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["subagent.started", "user.message", "assistant.message", "tool.execution_complete", "subagent.completed"]),
    );
    expect(events.find(({ type }) => type === "subagent.started").data).toMatchObject({
      toolCallId: "call-task",
      agentName: "reader",
      agentDisplayName: "Reader",
      agentDescription: "Reads.",
    });
  });

  test("a background agent is announced, reported when it ends, and read", async () => {
    const session = await runtime.session({ customAgents: [{ ...reader, tools: [] }] });
    const completed = event(session, "subagent.completed");
    const notified = event(session, "system.notification");
    runtime.says(
      calling("task", { agent_type: "reader", name: "read-it", description: "Read", prompt: "Read the book.", mode: "background" }),
    );
    // The child and its parent call the model at the same time: both get the same answer.
    runtime.says("It begins.", "It begins.", "Noted.");
    const done = event(session, "assistant.message", ({ content }) => content === "Noted.");
    await session.sendAndWait("Go");
    await completed;
    await done;
    const notice = runtime.asked.messages.findLast(({ role }: Sdk) => role === "user").content;
    expect(notice).toMatch(
      /^<current_datetime>[^<]+<\/current_datetime>\n\n<system_notification>\nAgent "read-it" \(reader\) has completed successfully\. Use read_agent with agent_id "read-it" to retrieve the full results\.\n<\/system_notification>$/,
    );
    expect((await notified).data).toEqual({
      content: notice.slice(notice.indexOf("<system_notification>")),
      kind: { type: "agent_completed", agentId: "read-it", agentType: "reader", status: "completed" },
    });
    runtime.says(calling("read_agent", { agent_id: "read-it" }, "call-2"), "Read.");
    await session.sendAndWait("What did it say?");
    expect(runtime.lastToolResult).toMatch(
      /^Agent completed\. agent_id: read-it, agent_type: reader, status: completed, description: Read, elapsed: \d+(\.\d+)?s, total_turns: 0(, model: [\w.-]+)?, duration: \d+(\.\d+)?s\n\nIt begins\.$/,
    );
  });
});

describe("the tools of a session", () => {
  test("lists of available tools take patterns of every kind, and excluded tools win", async () => {
    const place = runtime.place({ "skills/books/SKILL.md": skill("books"), "skills/books/tools/find.mjs": toolModule("find_book", "1") });
    const seen = async (options: object): Promise<string[]> => {
      const session = await runtime.session({
        tools: [custom("one", "1"), custom("two", "2")],
        skillDirectories: [join(place, "skills")],
        ...options,
      });
      runtime.says("Hi.");
      await session.sendAndWait("Hi");
      await session.disconnect();
      return runtime.asked.tools?.map((tool: Sdk) => tool.function.name).sort() ?? [];
    };
    expect(await seen({ availableTools: new sdk.ToolSet().addCustom("*") })).toEqual(["one", "two"]);
    expect(await seen({ availableTools: ["one", "builtin:view"] })).toEqual(["one", "view"]);
    expect(await seen({ availableTools: ["custom:*"], excludedTools: ["custom:two"] })).toEqual(["one"]);
    expect(await seen({ availableTools: ["skill:books"] })).toEqual(["find_book"]);
    expect(await seen({ availableTools: [] })).toEqual([]);
    expect(await seen({ excludedTools: ["builtin:bash"] })).not.toContain("bash");
    const all = await seen({});
    expect(all).toEqual(
      expect.arrayContaining(["bash", "view", "create", "edit", "grep", "glob", "web_fetch", "skill", "find_book", "one"]),
    );
    expect(await seen({ defaultAgent: { excludedTools: ["one"] } })).not.toContain("one");
  });
});
