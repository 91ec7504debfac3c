import { describe, expect, test } from "vitest";
import { assembleCatalog } from "../../../src/session/catalog/assemble-catalog.ts";
import { createCatalogView } from "../../../src/session/catalog/catalog-view.ts";
import type { CatalogSource, ToolCatalog } from "../../../src/session/catalog/tool-catalog.ts";
import { sourceOf, toolOf } from "../session-kit.ts";

const all = createCatalogView({});
const named = (name: string, extra: object = {}) => ({ name, description: `does ${name}`, handler: () => name, ...extra });
const namesOf = (catalog: ToolCatalog): string[] => catalog.advertised.map((definition) => definition.name);
const winnerOf = (catalog: ToolCatalog, name: string): string | undefined => {
  const origin = catalog.executables.get(name)?.origin;
  return origin && `${origin.kind}:${origin.source}`;
};

describe("conflicts of tool names", () => {
  test("each kind takes a name from lower kinds, in whatever order the sources arrive", () => {
    const sources = [
      sourceOf("external", "client", named("a")),
      sourceOf("plugin", "p", named("a"), named("b")),
      sourceOf("skill", "s", named("a"), named("b"), named("c")),
      sourceOf("mcp", "m", named("a"), named("b"), named("c"), named("d")),
    ];
    for (const order of [sources, [...sources].reverse()]) {
      const catalog = assembleCatalog(order, all);
      expect(["a", "b", "c", "d"].map((name) => winnerOf(catalog, name))).toEqual(["external:client", "plugin:p", "skill:s", "mcp:m"]);
    }
  });

  test("within a kind the later source gets the name, and for pushed tools the earlier client", () => {
    const catalog = assembleCatalog(
      [
        sourceOf("skill", "first", named("a")),
        sourceOf("skill", "second", named("a")),
        sourceOf("external", "host", named("b")),
        sourceOf("external", "extension", named("b")),
      ],
      all,
    );
    expect(winnerOf(catalog, "a")).toBe("skill:second");
    expect(winnerOf(catalog, "b")).toBe("external:host");
    expect(catalog.losers.map(({ tool, rule, winner }) => [tool.origin.source, rule, winner?.origin.source])).toEqual([
      ["first", "later-source", "second"],
      ["extension", "earlier-client", "host"],
    ]);
  });

  test("replacing a built-in tool needs the flag; without it, only that tool is omitted with an error", () => {
    const sources = [
      sourceOf("builtin", "host", named("view"), named("grep")),
      sourceOf("skill", "s", named("view"), named("lint")),
      sourceOf("plugin", "p", named("grep", { overridesBuiltInTool: true })),
    ];
    const catalog = assembleCatalog(sources, all);
    expect(winnerOf(catalog, "view")).toBe("builtin:host");
    expect(winnerOf(catalog, "grep")).toBe("plugin:p");
    expect(winnerOf(catalog, "lint")).toBe("skill:s");
    expect(catalog.builtinNames).toEqual(new Set(["view", "grep", "tool_search_tool_regex", "tool_search_tool"]));
    expect(catalog.losers.map(({ rule }) => rule)).toEqual(["builtin-name-without-flag", "higher-kind"]);
    expect(catalog.diagnostics).toHaveLength(1);
    expect(catalog.diagnostics[0]).toMatchObject({ severity: "error", code: "TOOL_NAME_BUILTIN", source: "s" });
    expect(catalog.diagnostics[0]?.message).toContain("overridesBuiltInTool: true");
  });

  test("a built-in tool keeps its name if another tool has already replaced it", () => {
    const catalog = assembleCatalog(
      [
        sourceOf("builtin", "host", named("view")),
        sourceOf("skill", "s", named("view", { overridesBuiltInTool: true })),
        sourceOf("external", "client", named("view")),
      ],
      all,
    );
    expect(winnerOf(catalog, "view")).toBe("skill:s");
  });

  test("invalid names and duplicate names of a source are omitted with advice", () => {
    const illegal = { ...toolOf("skill", "s", named("ok")), definition: { name: "not ok" } };
    const source: CatalogSource = {
      kind: "skill",
      id: "s",
      tools: [illegal, toolOf("skill", "s", named("a")), toolOf("skill", "s", named("a"))],
    };
    const catalog = assembleCatalog([source], all);
    expect(namesOf(catalog)).toEqual(["a"]);
    expect(catalog.diagnostics.map(({ code, severity }) => [code, severity])).toEqual([
      ["TOOL_NAME_ILLEGAL", "error"],
      ["TOOL_NAME_TWICE", "warning"],
    ]);
    expect(catalog.diagnostics[0]?.message).toContain('"not_ok"');
  });

  test("names of inherited object members are ordinary names", () => {
    const odd = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    const catalog = assembleCatalog(
      [sourceOf("skill", "s", ...odd.map((name) => named(name)))],
      createCatalogView({ excludedTools: ["toString"] }),
    );
    expect(new Set(namesOf(catalog))).toEqual(new Set(["__proto__", "constructor", "hasOwnProperty"]));
    expect(catalog.executables.get("__proto__")?.definition.name).toBe("__proto__");
    expect(catalog.executables.has("valueOf")).toBe(false);
    expect(catalog.hidden.get("toString")).toMatchObject({ filter: "excludedTools", pattern: "toString" });
  });
});

describe("the assembled catalog", () => {
  test("the order of tools depends only on kinds and names", () => {
    const tools = ["delta", "alpha", "charlie"].map((name) => named(name));
    const one = assembleCatalog(
      [sourceOf("skill", "s", ...tools), sourceOf("builtin", "h", named("zulu")), sourceOf("mcp", "m", named("mike"))],
      all,
    );
    const other = assembleCatalog(
      [sourceOf("mcp", "m", named("mike")), sourceOf("builtin", "h", named("zulu")), sourceOf("skill", "s", ...tools.reverse())],
      all,
    );
    expect(namesOf(one)).toMatchInlineSnapshot(`
      [
        "zulu",
        "mike",
        "alpha",
        "charlie",
        "delta",
      ]
    `);
    expect(namesOf(other)).toEqual(namesOf(one));
    expect(other.signature).toBe(one.signature);
  });

  test("candidates, advertised data and executables are separate", () => {
    const catalog = assembleCatalog(
      [sourceOf("builtin", "h", named("view")), sourceOf("skill", "s", named("view", { overridesBuiltInTool: true }), named("lint"))],
      createCatalogView({ excludedTools: ["lint"] }),
    );
    expect(catalog.candidates).toHaveLength(3);
    expect([...catalog.executables.keys()]).toEqual(["view"]);
    expect(JSON.parse(JSON.stringify(catalog.advertised))).toEqual(catalog.advertised);
    expect(catalog.deferred.size).toBe(0);
  });

  test("the signature covers model, contract and set, and nothing that clients cannot see", () => {
    const base = [sourceOf("skill", "s", named("a"))];
    const signature = (sources: CatalogSource[], options: object = {}): string =>
      assembleCatalog(sources, createCatalogView(options)).signature;
    const one = signature(base);
    expect(signature([sourceOf("skill", "s", named("a", { handler: () => "else", timeout: 5 }))])).toBe(one);
    expect(signature(base, { model: "m" })).not.toBe(one);
    expect(signature([sourceOf("skill", "s", named("a", { description: "other" }))])).not.toBe(one);
    expect(signature([...base, sourceOf("skill", "t", named("b"))])).not.toBe(one);
  });

  test("tools of servers, skills and plugins are found by source and name, replaced ones are not", () => {
    const renamed = toolOf("mcp", "github", named("github-search"), "search");
    const catalog = assembleCatalog(
      [
        { kind: "mcp", id: "github", tools: [renamed] },
        sourceOf("skill", "old", named("lint")),
        sourceOf("skill", "new", named("lint")),
        sourceOf("external", "client", named("pushed")),
      ],
      all,
    );
    expect([...catalog.byNamespacedName.keys()]).toEqual(["github/search", "new/lint"]);
    expect(catalog.byNamespacedName.get("github/search")?.definition.name).toBe("github-search");
  });

  test("the catalog has the diagnostics of its sources", () => {
    const diagnostic = { severity: "warning" as const, code: "X", message: "x" };
    const catalog = assembleCatalog([{ kind: "skill", id: "s", tools: [], diagnostics: [diagnostic] }], all);
    expect(catalog.diagnostics).toEqual([diagnostic]);
  });
});

describe("names in filters that have no effect", () => {
  const sources = [sourceOf("builtin", "h", named("view"), named("grep")), sourceOf("skill", "s", named("lint"))];
  const noticesFor = (options: object): [string, string, string][] =>
    assembleCatalog(sources, createCatalogView(options)).notices.map(({ filter, problem, name }) => [filter, problem, name]);

  test("an unknown name is reported once per list", () => {
    expect(noticesFor({ availableTools: ["view", "veiw", "veiw"], excludedTools: ["veiw", "grpe"] })).toEqual([
      ["availableTools", "unknown", "veiw"],
      ["excludedTools", "unknown", "veiw"],
      ["excludedTools", "unknown", "grpe"],
    ]);
  });

  test("a name that is allowed but removed or disabled is reported as disabled", () => {
    expect(noticesFor({ availableTools: ["view", "grep"], excludedTools: ["grep"] })).toEqual([["availableTools", "disabled", "grep"]]);
    expect(noticesFor({ availableTools: ["skill:gone", "gone/tool"], disabledSkills: ["gone"] })).toEqual([
      ["availableTools", "disabled", "skill:gone"],
      ["availableTools", "disabled", "gone/tool"],
    ]);
  });

  test("matching names and patterns for whole kinds are never reported", () => {
    expect(noticesFor({ availableTools: ["builtin:*", "mcp:*", "skill:s", "s/lint"], excludedTools: ["grep"] })).toEqual([]);
  });
});
