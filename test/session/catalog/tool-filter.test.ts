import { describe, expect, test } from "vitest";
import { HostError } from "../../../src/base/errors.ts";
import { namespacedName, parseToolFilter, type ToolFilterOptions } from "../../../src/session/catalog/tool-filter.ts";
import { toolOf } from "../session-kit.ts";

const tools = {
  view: toolOf("builtin", "host", { name: "view" }),
  search: toolOf("mcp", "github", { name: "github-search" }, "search"),
  lint: toolOf("skill", "quality", { name: "lint" }),
  format: toolOf("skill", "quality", { name: "format" }),
  docs: toolOf("plugin", "library-docs", { name: "resolve" }),
  pushed: toolOf("external", "client", { name: "pushed" }),
};
type Key = keyof typeof tools;
const keys = Object.keys(tools) as Key[];

const visible = (options: ToolFilterOptions): Key[] => {
  const filter = parseToolFilter(options);
  return keys.filter((key) => filter.hides(tools[key]) === undefined);
};

describe("the two lists of a tool filter together", () => {
  test.each<[string, ToolFilterOptions, Key[]]>([
    ["neither: all", {}, keys],
    ["an allow-list: only those", { availableTools: ["view", "lint"] }, ["view", "lint"]],
    ["an empty allow-list: none", { availableTools: [] }, []],
    ["a removal list: all but those", { excludedTools: ["view", "lint"] }, ["search", "format", "docs", "pushed"]],
    ["an empty removal list: all", { excludedTools: [] }, keys],
    ["both: removal wins by default", { availableTools: ["view", "lint"], excludedTools: ["lint", "docs"] }, ["view"]],
    [
      "both, removal wins when it is said",
      { availableTools: ["view", "lint"], excludedTools: ["lint"], toolFilterPrecedence: "excluded" },
      ["view"],
    ],
    [
      "both, the allow-list wins when it is said",
      { availableTools: ["view", "lint"], excludedTools: ["lint", "docs"], toolFilterPrecedence: "available" },
      ["view", "lint"],
    ],
    [
      "precedence to an allow-list that is not there changes nothing",
      { excludedTools: ["view"], toolFilterPrecedence: "available" },
      keys.slice(1),
    ],
    ["a whole kind, less one", { availableTools: ["skill:*"], excludedTools: ["format"] }, ["lint"]],
  ])("a tool filter: %s", (_title, options, expected) => {
    expect(visible(options)).toEqual(expected);
  });
});

describe("the forms of a filter pattern", () => {
  test.each<[string, Key[]]>([
    ["view", ["view"]],
    ["github-search", ["search"]],
    ["search", []],
    ["github/search", ["search"]],
    ["github/*", ["search"]],
    ["quality/lint", ["lint"]],
    ["quality/*", ["lint", "format"]],
    ["library-docs/resolve", ["docs"]],
    ["host/view", []],
    ["client/*", []],
    ["builtin:view", ["view"]],
    ["builtin:*", ["view"]],
    ["builtin:lint", []],
    ["mcp:github-search", ["search"]],
    ["mcp:github", []],
    ["mcp:*", ["search"]],
    ["skill:quality", ["lint", "format"]],
    ["skill:lint", []],
    ["skill:*", ["lint", "format"]],
    ["plugin:resolve", ["docs"]],
    ["plugin:library-docs", ["docs"]],
    ["plugin:*", ["docs"]],
    ["custom:pushed", ["pushed"]],
    ["custom:*", ["pushed"]],
    ["custom:lint", []],
  ])("the filter pattern %s", (pattern, expected) => {
    expect(visible({ availableTools: [pattern] })).toEqual(expected);
    expect(visible({ excludedTools: [pattern] })).toEqual(keys.filter((key) => !expected.includes(key)));
  });
});

describe("invalid filter patterns", () => {
  test.each(["*", "", "view*", "foo:bar", "foo:*", "builtin:", "mcp:", "mcp:git*", "/x", "server/", "/*", "a/*/b", "*/x"])(
    "the filter pattern %j is refused",
    (text) => {
      expect(() => parseToolFilter({ excludedTools: ["view", text] })).toThrow(HostError);
      expect(() => parseToolFilter({ excludedTools: ["view", text] })).toThrow(/^excludedTools\[1\]: .*Patterns are .*"server\/tool"/);
    },
  );

  test("filter patterns that are not strings, and lists that are not arrays, are refused", () => {
    for (const value of [3, null, {}, ["view"]]) {
      expect(() => parseToolFilter({ availableTools: [value as unknown as string] })).toThrow(/availableTools\[0\]/);
    }
    expect(() => parseToolFilter({ availableTools: "view" as unknown as string[] })).toThrow(
      expect.objectContaining({ code: "SESSION_OPTIONS" }),
    );
  });
});

test("the verdict names the list and the most specific pattern", () => {
  const filter = parseToolFilter({ availableTools: ["builtin:*", "skill:*"], excludedTools: ["skill:*", "quality/*", "lint"] });
  expect(filter.hides(tools.lint)).toEqual({ filter: "excludedTools", pattern: "lint" });
  expect(filter.hides(tools.format)?.filter).toBe("excludedTools");
  expect(filter.hides(tools.pushed)).toEqual({ filter: "availableTools" });
  expect(filter.hides(tools.view)).toBeUndefined();
});

test("server names may contain characters that tool names must not", () => {
  const odd = toolOf("mcp", "io.github.me/server", { name: "server-run" }, "run");
  expect(namespacedName(odd)).toBe("io.github.me/server/run");
  for (const pattern of ["io.github.me/server/run", "io.github.me/server/*"]) {
    expect(parseToolFilter({ excludedTools: [pattern] }).hides(odd)).toBeDefined();
  }
});
