import { describe, expect, test } from "vitest";
import { assembleCatalog } from "../../../src/session/catalog/assemble-catalog.ts";
import { createCatalogView } from "../../../src/session/catalog/catalog-view.ts";
import { type CatalogSource, DiscoveredTools } from "../../../src/session/catalog/tool-catalog.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import type { ToolLike } from "../../../src/tools/define/define-tool.ts";
import type { ToolKind } from "../../../src/tools/tool.ts";
import { createTestEnvironment, openSession, recordEvents, sourceOf } from "../session-kit.ts";

const search = "tool_search_tool_regex";
const named = (name: string, more: object = {}): ToolLike => ({
  name,
  description: `Does ${name}.`,
  handler: () => `${name} ran`,
  ...more,
});
const many = (kind: ToolKind, count: number, prefix = `${kind}_`): CatalogSource =>
  sourceOf(kind, kind, ...Array.from({ length: count }, (_, index) => named(`${prefix}${String(index).padStart(2, "0")}`)));
const open = (sources: readonly CatalogSource[], options: SessionOptions = {}) => openSession(createTestEnvironment(...sources), options);
const advertised = (session: ReturnType<typeof open>): string[] => session.tools.map(({ name }) => name);

describe("deferral of tools", () => {
  test.each([
    [30, {}, false],
    [31, {}, true],
    [31, { enabled: false }, false],
    [31, { deferThreshold: 31 }, false],
    [3, { deferThreshold: 2 }, true],
    [1, { deferThreshold: 0 }, true],
    [0, { deferThreshold: 0 }, false],
  ])("%i tools with toolSearch %j: %s", (count, toolSearch, isDeferred) => {
    const session = open([many("mcp", count)], { toolSearch });
    expect(advertised(session)).toEqual(isDeferred ? [search] : session.listTools().map(({ name }) => name));
    expect(session.listTools()).toHaveLength(isDeferred ? count + 1 : count);
    expect(session.listTools().filter((tool) => tool.deferred)).toHaveLength(isDeferred ? count : 0);
  });

  test("tools of servers, clients and skills are deferred unless marked never, and the others keep their order", () => {
    const never = (kind: ToolKind) => sourceOf(kind, `${kind}-never`, named(`${kind}_never`, { defer: "never" }));
    const kinds: ToolKind[] = ["builtin", "mcp", "skill", "plugin"];
    const session = open([...kinds.map((kind) => many(kind, 2)), never("mcp"), never("skill")], {
      tools: [named("pushed"), named("pushed_never", { defer: "never" })],
      toolSearch: { deferThreshold: 5 },
    });
    expect(advertised(session)).toEqual([
      "builtin_00",
      "builtin_01",
      search,
      "mcp_never",
      "skill_never",
      "plugin_00",
      "plugin_01",
      "pushed_never",
    ]);
    expect([...session.catalog.deferred]).toEqual(["mcp_00", "mcp_01", "skill_00", "skill_01", "pushed"]);
  });

  test("filtered tools do not count towards the threshold", () => {
    expect(advertised(open([many("mcp", 40)], { availableTools: ["mcp_01", "mcp_02"] }))).toEqual(["mcp_01", "mcp_02"]);
  });

  test("without the search tool, nothing is deferred", () => {
    expect(advertised(open([many("mcp", 40)], { excludedTools: [search] }))).toHaveLength(40);
    expect(advertised(open([many("mcp", 40)], { excludedTools: ["builtin:*"] }))).toHaveLength(40);
    expect(advertised(open([many("mcp", 40)], { availableTools: ["mcp:*"] }))).toEqual([search]);
  });

  test("a deferred tool can be called by its name", async () => {
    const session = open([many("mcp", 40)]);
    expect(await session.callTool("mcp_07")).toMatchObject({ resultType: "success", textResultForLlm: "mcp_07 ran" });
  });

  test("the catalog's signature covers deferral", () => {
    const catalogOf = (deferThreshold: number) => assembleCatalog([many("mcp", 3)], createCatalogView({ toolSearch: { deferThreshold } }));
    expect(catalogOf(1).signature).not.toBe(catalogOf(3).signature);
    expect(catalogOf(1).signature).toBe(catalogOf(2).signature);
  });
});

describe("tools that a search has found", () => {
  test("a found tool is advertised after the others in the order of discovery, and one event reports it", async () => {
    const session = open([many("mcp", 40)]);
    const events = recordEvents(session, "tool_search.activated");
    await session.callTool(search, { pattern: "mcp_07" });
    await session.callTool(search, { pattern: "^mcp_0[57]$" });
    await session.callTool(search, { pattern: "mcp_05" });
    expect(advertised(session)).toEqual([search, "mcp_07", "mcp_05"]);
    expect(events.map(({ data }) => data)).toEqual([
      { strategy: "regex", toolNames: ["mcp_07"] },
      { strategy: "regex", toolNames: ["mcp_05"] },
    ]);
    expect(session.tools).toBe(session.tools);
  });

  test("a found tool keeps its place when its source reloads, disappears and returns", async () => {
    const environment = createTestEnvironment(many("mcp", 40));
    const session = openSession(environment);
    await session.callTool(search, { pattern: "mcp_07|mcp_09" });
    environment.publish(many("mcp", 41));
    expect(advertised(session)).toEqual([search, "mcp_07", "mcp_09"]);
    environment.publish(many("mcp", 8), many("skill", 30));
    expect(advertised(session)).toEqual([search, "mcp_07"]);
    environment.publish(many("mcp", 40));
    expect(advertised(session)).toEqual([search, "mcp_07", "mcp_09"]);
    environment.publish(many("mcp", 10));
    expect(advertised(session)).toHaveLength(10);
  });

  test("found tools belong to one conversation", async () => {
    const environment = createTestEnvironment(many("mcp", 40));
    const [one, other] = [openSession(environment), openSession(environment, { sessionId: "other" })];
    await one.callTool(search, { pattern: "mcp_07" });
    expect(one.catalog).toBe(other.catalog);
    expect(advertised(other)).toEqual([search]);
  });

  test("found tools are restored from an earlier process", () => {
    const catalog = assembleCatalog([many("mcp", 40)], createCatalogView({}));
    const disclosure = new DiscoveredTools();
    disclosure.restore(["mcp_09", "gone", "mcp_01"]);
    expect(disclosure.advertised(catalog).map(({ name }) => name)).toEqual([search, "mcp_09", "mcp_01"]);
    expect(disclosure.show(catalog, ["mcp_01", "mcp_02", 3, "unknown"])).toEqual(["mcp_02"]);
  });

  test("a client's own search tool needs the override flag, and references of other tools are not advertised", async () => {
    const own = { name: search, handler: () => ({ textResultForLlm: "Look.", toolReferences: ["mcp_03", "nonsense"] }) };
    expect(() => open([many("mcp", 40)], { tools: [own] })).toThrow(/has the name of a built-in tool/);
    const session = open([many("mcp", 40)], {
      tools: [
        { ...own, overridesBuiltInTool: true },
        { ...own, name: "other" },
      ],
    });
    const events = recordEvents(session, "tool_search.activated");
    await session.callTool("other");
    expect(advertised(session)).toEqual([search]);
    await session.callTool(search);
    expect(advertised(session)).toEqual([search, "mcp_03"]);
    expect(events.map(({ data }) => data)).toEqual([{ strategy: "custom", toolNames: ["mcp_03"] }]);
  });
});
