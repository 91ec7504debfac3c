import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Session } from "../../src/session/session.ts";
import { say, serverNamed, sessionWith, until } from "./servers-kit.ts";

const script = fileURLToPath(new URL("../doubles/mcp-servers/hostile-server.mjs", import.meta.url));
const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);

beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});

afterEach(() => {
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

/** A session with a hostile server and a well-behaved one. */
async function underAttack(attack: string): Promise<Session> {
  const hostile = { command: process.execPath, args: [script, attack] };
  return sessionWith({ mcpServers: { hostile, notes: serverNamed("n") } });
}

const complaintsOf = (session: Session): readonly string[] => {
  const { error, diagnostics } = session.mcp.list().find(({ name }) => name === "hostile")!;
  return [...(error === undefined ? [] : [error]), ...diagnostics.map(({ message }) => message)];
};

describe("a hostile MCP server", () => {
  test.each([
    ["that nests a schema four thousand levels deep", "deep-schema"],
    ["that sends a list of two million values", "many-values"],
  ])("a server %s provides no tools, and the other servers work", async (_, attack) => {
    const session = await underAttack(attack);
    expect(await say(session, "notes/echo", { text: "hi" })).toBe("hi");
    expect(session.mcp.tools("hostile")).toEqual([]);
    await until(() => complaintsOf(session).some((message) => /levels deep|values/.test(message)));
  });

  test("a server with nine thousand tools provides all of them, and the other servers work", async () => {
    const session = await underAttack("many-tools");
    expect(await say(session, "notes/echo", { text: "hi" })).toBe("hi");
    await until(() => session.mcp.tools("hostile").length === 9_000);
  });

  test.each([
    ["that answers with twenty thousand records that must be unique", "unique"],
    ["that answers with a text on which its own pattern backtracks exponentially", "pattern"],
    ["that has a schema whose references multiply", "fan-out"],
  ])("a call of a server %s gets a result, and the other servers work", async (_, attack) => {
    const session = await underAttack(attack);
    const [attacked, echoed] = await Promise.all([session.callTool("hostile/attack", {}), say(session, "notes/echo", { text: "hi" })]);
    expect(echoed).toBe("hi");
    expect(attacked).toMatchObject({ resultType: "success" });
  });

  test.each([
    ["a question", "deep-question", "success"],
    ["a notification", "deep-notice", "success"],
    ["an answer", "deep-answer", "failure"],
  ])("a server that sends %s of four thousand levels does not affect other servers", async (_, attack, resultType) => {
    const session = await underAttack(attack);
    expect(await session.callTool("hostile/attack", {})).toMatchObject({ resultType });
    expect(await say(session, "notes/echo", { text: "hi" })).toBe("hi");
  });
});
