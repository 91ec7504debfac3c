import { describe, expect, test } from "vitest";
import type { Attachment } from "../../../src/session/clients/session-client.ts";
import type { Session } from "../../../src/session/session.ts";
import { createTestEnvironment, openSession, recordEvents, settleMicrotasks, sourceOf } from "../session-kit.ts";

const tool = (name: string, extra: object = {}) => ({ name, description: `does ${name}`, ...extra });
const attach = (session: Session, level: "host" | "connection" | "extension", name: string = level): Attachment =>
  session.attach({ level, name, answers: ["tool"] });
const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return "nothing thrown";
};

describe("pushing a whole list of tools", () => {
  test("the difference to the previous push is found by contract", () => {
    const client = attach(openSession(), "connection");
    expect(client.setTools([tool("a"), tool("b"), tool("c")])).toEqual({ added: ["a", "b", "c"], changed: [], removed: [], unchanged: [] });
    const next = [tool("b"), tool("c", { description: "other" }), tool("d")];
    expect(client.setTools(next)).toEqual({ added: ["d"], changed: ["c"], removed: ["a"], unchanged: ["b"] });
    expect(client.setTools([])).toEqual({ added: [], changed: [], removed: ["b", "c", "d"], unchanged: [] });
  });

  test("one changed tool of a thousand causes one version, one event and one new tool", async () => {
    const session = openSession();
    const client = attach(session, "connection");
    const list = Array.from({ length: 1000 }, (_, index) => tool(`t${index}`, { parameters: { type: "object", properties: {} } }));
    client.setTools(list);
    const updates = recordEvents(session, "session.tools_updated");
    await settleMicrotasks();
    expect(updates).toHaveLength(1);
    const version = session.externalToolsVersion;
    const before = new Map(client.tools.map((made) => [made.definition.name, made]));

    client.setTools(structuredClone(list).reverse());
    await settleMicrotasks();
    expect(session.externalToolsVersion).toBe(version);

    const diff = client.setTools(list.map((each, index) => (index === 500 ? { ...each, description: "new" } : { ...each })));
    await settleMicrotasks();
    expect(diff.changed).toEqual(["t500"]);
    expect(diff.unchanged).toHaveLength(999);
    expect(session.externalToolsVersion).toBe(version + 1);
    expect(updates).toHaveLength(2);
    const renewed = client.tools.filter((made) => before.get(made.definition.name) !== made);
    expect(renewed.map((made) => made.definition.name)).toEqual(["t500"]);
  });

  test("pushing the same list keeps the same catalog", () => {
    const session = openSession();
    const client = attach(session, "connection");
    client.setTools([tool("a"), tool("b")]);
    const { catalog } = session;
    client.setTools([tool("b"), tool("a")]);
    expect(session.catalog).toBe(catalog);
  });

  test("a new handler or unsigned field applies without a new version or event", async () => {
    const session = openSession();
    await session.setTools([tool("a", { handler: () => "old" })]);
    const updates = recordEvents(session, "session.tools_updated");
    await settleMicrotasks();
    const version = session.externalToolsVersion;
    const diff = await session.setTools([tool("a", { handler: () => "new", timeout: 5000 })]);
    await settleMicrotasks();
    expect(diff).toEqual({ added: [], changed: [], removed: [], unchanged: ["a"] });
    expect(session.externalToolsVersion).toBe(version);
    expect(updates).toHaveLength(1);
    expect((await session.callTool("a")).textResultForLlm).toBe("new");
    expect(session.tools[0]?.timeout).toBe(5000);
  });

  test("changing a pushed object has no effect until it is pushed again", async () => {
    const session = openSession();
    const mutable = { name: "a", description: "one", handler: () => "x" };
    await session.setTools([mutable]);
    mutable.description = "two";
    expect(session.tools[0]?.description).toBe("one");
    expect((await session.setTools([mutable])).changed).toEqual(["a"]);
  });

  test("running calls keep the tool with which they started", async () => {
    const session = openSession();
    let finish = (_text: string): void => {};
    await session.setTools([tool("a", { handler: () => new Promise<string>((resolve) => (finish = resolve)) })]);
    const running = session.callTool("a");
    await settleMicrotasks();
    await session.setTools([]);
    finish("from the old one");
    expect((await running).textResultForLlm).toBe("from the old one");
    expect((await session.callTool("a")).textResultForLlm).toMatch(/^Tool 'a' is no longer available\./);
  });
});

describe("a refused push changes nothing", () => {
  const refused = (bad: unknown[], code: string, text: RegExp): void => {
    const session = openSession(createTestEnvironment(sourceOf("builtin", "workspace", { name: "view" })));
    const client = attach(session, "connection", "my editor");
    client.setTools([tool("kept")]);
    const version = session.externalToolsVersion;
    expect(() => client.setTools([tool("new"), ...bad] as never)).toThrow(text);
    expect(codeOf(() => client.setTools([tool("new"), ...bad] as never))).toBe(code);
    expect(session.externalToolsVersion).toBe(version);
    expect(client.tools.map(({ definition }) => definition.name)).toEqual(["kept"]);
    expect(session.catalog.executables.has("new")).toBe(false);
  };

  test("a built-in tool's name without the flag is refused, and the message names tool, source and flag", () => {
    refused([tool("view")], "TOOL_NAME_TAKEN", /"view".*my editor.*overridesBuiltInTool: true/);
  });
  test("an invalid name is refused with the nearest valid one", () => {
    refused([tool("my.tool")], "TOOL_NAME_ILLEGAL", /tools\[1\] of my editor.*"my_tool"/);
  });
  test("two different tools with the same name are refused", () => {
    refused([tool("x"), tool("x", { description: "other" })], "TOOL_NAME_TAKEN", /two different tools named "x"/);
  });
  test("a push with an invalid tool is refused", () => {
    refused([null], "TOOL_INVALID", /tools\[1\]/);
    refused(["view"], "TOOL_INVALID", /tools\[1\]/);
    refused([{ description: "no name" }], "TOOL_NAME_ILLEGAL", /tools\[1\]/);
    refused([tool("x", { handler: "not a function" })], "TOOL_INVALID", /handler must be a function/);
    const hostile = Object.defineProperty({}, "name", {
      get() {
        throw new Error("boo");
      },
    });
    refused([hostile], "TOOL_INVALID", /cannot be read/);
  });
  test("a push that is not a list is refused", () => {
    const client = attach(openSession(), "connection");
    expect(codeOf(() => client.setTools("tools" as never))).toBe("TOOL_INVALID");
  });
  test("createSession with invalid tools fails as a whole and releases its resources", () => {
    const environment = createTestEnvironment(sourceOf("builtin", "workspace", { name: "view" }));
    expect(codeOf(() => openSession(environment, { tools: [tool("view")] }))).toBe("TOOL_NAME_TAKEN");
    expect(environment.released).toBe(true);
  });
});

test("with the flag a pushed tool replaces a built-in tool until it is withdrawn", async () => {
  const session = openSession(createTestEnvironment(sourceOf("builtin", "workspace", { name: "view", handler: () => "built in" })));
  const pushed = tool("view", { overridesBuiltInTool: true, handler: () => "pushed" });
  await session.setTools([pushed]);
  expect((await session.callTool("view")).textResultForLlm).toBe("pushed");
  await session.setTools([pushed]);
  await session.setTools([]);
  expect((await session.callTool("view")).textResultForLlm).toBe("built in");
});

test("only tools whose schema is not an object's are omitted, with a diagnostic", async () => {
  const session = openSession();
  const handler = () => "x";
  const diff = await session.setTools([
    tool("none", { handler }),
    tool("object", { handler, parameters: { type: "object", properties: {} } }),
    tool("array", { handler, parameters: { type: "array" } }),
    tool("untyped", { handler, parameters: { properties: {} } }),
    tool("text", { handler, parameters: "object" }),
  ]);
  expect(diff.added).toEqual(["none", "object"]);
  const errors = session.catalog.diagnostics.filter(({ severity }) => severity === "error");
  expect(errors.map(({ code, message }) => [code, message.split('"')[1]])).toEqual([
    ["TOOL_SCHEMA_INVALID", "array"],
    ["TOOL_SCHEMA_INVALID", "untyped"],
    ["TOOL_SCHEMA_INVALID", "text"],
  ]);
  expect(session.tools.map(({ name }) => name)).toEqual(["none", "object"]);
});

describe("several clients that push tools", () => {
  const described = (session: Session, name: string): string | undefined => session.catalog.executables.get(name)?.definition.description;

  test("between levels, the earlier level gets a name, whichever client came first", async () => {
    const session = openSession();
    const extension = attach(session, "extension");
    const connection = attach(session, "connection");
    extension.setTools([tool("a", { description: "extension" })]);
    connection.setTools([tool("a", { description: "connection" })]);
    expect(described(session, "a")).toBe("connection");
    await session.setTools([tool("a", { description: "host" })]);
    expect(described(session, "a")).toBe("host");
    await session.setTools([]);
    await connection[Symbol.asyncDispose]();
    expect(described(session, "a")).toBe("extension");
  });

  test("within a level, equal tools are shared and a different one refuses the push", async () => {
    const session = openSession();
    const one = attach(session, "connection", "one");
    const two = attach(session, "connection", "two");
    one.setTools([tool("a")]);
    expect(two.setTools([tool("a"), tool("b")]).added).toEqual(["a", "b"]);
    expect(codeOf(() => two.setTools([tool("a", { description: "other" })]))).toBe("TOOL_NAME_TAKEN");
    expect(() => two.setTools([tool("a", { description: "other" })])).toThrow(/"a", registered by two, is already registered by one/);
    expect(session.tools.map(({ name }) => name)).toEqual(["a", "b"]);
    await one[Symbol.asyncDispose]();
    expect(session.tools.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(two.setTools([tool("a", { description: "other" })]).changed).toEqual(["a"]);
  });

  test("a client that left cannot push, and leaving twice has no further effect", async () => {
    const session = openSession();
    const client = attach(session, "connection");
    client.setTools([tool("a")]);
    const version = session.externalToolsVersion;
    await client[Symbol.asyncDispose]();
    await client[Symbol.asyncDispose]();
    expect(session.externalToolsVersion).toBe(version + 1);
    expect(codeOf(() => client.setTools([]))).toBe("ATTACHMENT_CLOSED");
    expect(codeOf(() => session.attach({ level: "elsewhere" as "host", answers: [] }))).toBe("ATTACHMENT_LEVEL");
  });
});
