import { describe, expect, test } from "vitest";
import type { McpConnection } from "../../../src/mcp/connection/connection.ts";
import { listPages } from "../../../src/mcp/connection/list-pages.ts";
import { fetchList } from "../../../src/mcp/supervisor/list-refresher.ts";

const { signal } = new AbortController();

/** A server whose skills come in these pages. */
function serverOf(pages: readonly object[]): McpConnection {
  let asked = 0;
  const request = async (): Promise<object> => pages[asked++] ?? { skills: [] };
  return { capabilities: { extensions: { "io.modelcontextprotocol/skills": {} } }, request } as unknown as McpConnection;
}

describe("the skills of a server", () => {
  test("may be more than a function takes as arguments, and are cut", async () => {
    const skills = Array.from({ length: 300_000 }, (_, index) => ({ uri: `skill://${index}` }));
    expect(await fetchList(serverOf([{ skills }]), "skills", signal)).toHaveLength(20_000);
  });

  test("come from all pages", async () => {
    const pages = [{ skills: [{ uri: "a" }, 7], nextCursor: "1" }, { skills: [{ uri: "b" }] }];
    expect(await fetchList(serverOf(pages), "skills", signal)).toEqual([{ uri: "a" }, { uri: "b" }]);
  });

  test("that are not lists are refused", async () => {
    await expect(fetchList(serverOf([{ skills: {} }]), "skills", signal)).rejects.toMatchObject({ code: "MCP_ANSWER" });
  });
});

test("a list is read no further than is used of it, and says so", async () => {
  let pages = 0;
  const page = { tools: Array.from({ length: 7_000 }, () => ({ name: "t" })) };
  const { items, fault } = await listPages("tools", async () => ({ ...page, nextCursor: String(++pages) }));
  expect([items.length, fault, pages]).toEqual([20_000, "it has more than 20000 entries", 3]);
});
