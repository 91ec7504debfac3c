import { describe, expect, test, vi } from "vitest";
import { assembleCatalog } from "../../src/session/catalog/assemble-catalog.ts";
import { createCatalogView } from "../../src/session/catalog/catalog-view.ts";
import type { ToolCatalog } from "../../src/session/catalog/tool-catalog.ts";
import { searchTools } from "../../src/session/catalog/tool-search.ts";
import { createTestEnvironment, openSession, sourceOf } from "./session-kit.ts";

const search = "tool_search_tool_regex";
const tools = [
  { name: "github-list_issues", description: "Lists the issues of a repository.\nWith labels." },
  { name: "github-get_issue", description: "One issue, whole." },
  { name: "billing-get_invoice", description: "Fetches an Invoice by its number." },
  { name: "weather", description: "Reports the WEATHER of a city; not about an issue." },
  { name: "bare" },
];
const catalogOf = (...definitions: { name: string; description?: string }[]): ToolCatalog =>
  assembleCatalog([sourceOf("mcp", "s", ...definitions)], createCatalogView({ toolSearch: { deferThreshold: 0 } }));
const found = (catalog: ToolCatalog, pattern: string): string[] | string => {
  const outcome = searchTools(catalog, pattern);
  return outcome.kind === "refused" ? outcome.why : outcome.tools.map(({ name }) => name);
};

describe("a pattern of a tool search finds", () => {
  const catalog = catalogOf(...tools);
  test.each([
    ["weather", ["weather"]],
    ["Invoice", ["billing-get_invoice"]],
    ["INVOICE|weather", ["billing-get_invoice", "weather"]],
    ["^github-", ["github-get_issue", "github-list_issues"]],
    ["get_.*(issue|invoice)$", ["billing-get_invoice", "github-get_issue"]],
    ["(?i)WeAther", ["weather"]],
    ["(?-i:WEATHER)", ["weather"]],
    ["(?-i:WEATHeR)", []],
    ["issue", ["github-get_issue", "github-list_issues", "weather"]],
    ["by its number", ["billing-get_invoice"]],
    ["bare", ["bare"]],
    ["nothing like it", []],
  ])("the search pattern %s finds the expected tools", (pattern, expected) => {
    expect(found(catalog, pattern)).toEqual(expected);
  });

  test.each([
    ["", "empty"],
    ["   ", "empty"],
    ["a".repeat(201), "too long"],
    ["(unclosed", "not a regular expression"],
    ["(?=ahead)", "not a regular expression"],
    ["(a)\\1", "not a regular expression"],
    ["a{1001}", "not a regular expression"],
    ["a{1000}", "too large"],
  ])("the search pattern %s is refused", (pattern, why) => {
    expect(found(catalog, pattern)).toBe(why);
  });
});

describe("searching ten thousand tools", () => {
  const catalog = catalogOf(
    ...Array.from({ length: 10_000 }, (_, index) => ({
      name: `tool_${index}_${"a".repeat(40)}`,
      description: `${"a".repeat(150)} ${index === 9_999 ? "needle" : "straw"} ${"x".repeat(100)}`,
    })),
  );

  test("every tool is searched", () => {
    expect(found(catalog, "needle")).toHaveLength(1);
    expect(found(catalog, "n[e]+dle")).toHaveLength(1);
  });

  test("the last tool is found at any position", () => {
    let now = 0;
    using _clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 60_000));
    expect(searchTools(catalog, "n[e]+dle")).toMatchObject({
      kind: "found",
      tools: [{ description: expect.stringContaining("needle") }],
      isPart: false,
    });
    expect(searchTools(catalog, "needle")).toMatchObject({ isPart: false });
    // The maximum length of a pattern.
    expect(searchTools(catalog, "(?:x{300}|y{300}|z{300}|needle)")).toMatchObject({ isPart: false, tools: [{}] });
  });

  test("a search returns the same first twenty tools and says that there are more", () => {
    const outcome = searchTools(catalog, "straw");
    expect(outcome).toMatchObject({ kind: "found", isPart: true });
    expect(found(catalog, "straw")).toHaveLength(20);
    expect(found(catalog, "str[a]w")).toEqual(found(catalog, "straw"));
  });

  // Each of these takes a backtracking engine very long: 2^40 ways to split forty letters.
  test.each(["(a+)+$", "(a|aa)+$", "(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){20}z", "(\\w+\\s?)*$", "(a?){40}a{40}z"])(
    "a search cannot be blocked by %s",
    (pattern) => {
      expect(searchTools(catalog, pattern).kind).toBe("found");
    },
  );

  test("only the beginning of a long description is searched", () => {
    const long = catalogOf({ name: "long", description: `${"b".repeat(299)}c${"d".repeat(1_000_000)}` });
    expect(found(long, "bc")).toEqual(["long"]);
    expect(found(long, "cd")).toEqual([]);
  });
});

describe("the result of a tool search for the model", () => {
  const session = () => openSession(createTestEnvironment(sourceOf("mcp", "s", ...tools)), { toolSearch: { deferThreshold: 2 } });
  const textOf = async (pattern: unknown) => {
    const { resultType, textResultForLlm } = await session().callTool(search, { pattern });
    return `${resultType}: ${textResultForLlm}`;
  };

  test("the result lists the tools with the first line of their descriptions", async () => {
    expect(await textOf("list_|bare")).toBe(
      "success: Found 2 tools, which you can call from now on:\n- bare\n- github-list_issues: Lists the issues of a repository.",
    );
    expect(await textOf("get_invoice")).toBe(
      "success: Found 1 tool, which you can call from now on:\n- billing-get_invoice: Fetches an Invoice by its number.",
    );
  });

  test("the result says that no tool matches", async () => {
    expect(await textOf("zebra")).toMatch(/^success: No tool matches "zebra"\./);
  });

  test("the result describes valid patterns if the pattern is invalid", async () => {
    expect(await textOf("(?=a)")).toMatch(
      /^failure: The pattern "\(\?=a\)" cannot be used: it is not a regular expression\. A pattern is .*RE2/,
    );
    expect(await textOf("x".repeat(10_000))).toMatch(/^failure: The pattern "x{200}…" cannot be used: it is too long\./);
    expect(await textOf(7)).toMatch(/^failure: Invalid arguments for tool 'tool_search_tool_regex': pattern: /);
  });
});
