import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nameTools, type ServerToolNames } from "../../../src/mcp/views/name-tools.ts";
import { checkToolName } from "../../../src/tools/tool.ts";

function nameOf(servers: readonly ServerToolNames[], server: string, tool: string): string {
  return nameTools(servers).names.get(server)!.get(tool)!;
}

describe("a name", () => {
  test.each([
    ["plain", "files", "read", "files-read"],
    ["with dashes and case", "git-hub", "List_Issues-2", "git-hub-List_Issues-2"],
    ["of exactly 64 characters", "s", "t".repeat(62), `s-${"t".repeat(62)}`],
  ])("that is legal stays as it is: %s", (_, server, tool, expected) => {
    expect(nameOf([{ name: server, tools: [tool] }], server, tool)).toBe(expected);
  });

  test.each([
    ["dots", "files", "fs.read", /^files-fs_read-[0-9a-f]{8}$/],
    ["a server with a blank", "my files", "read", /^my_files-read-[0-9a-f]{8}$/],
    ["accents", "búsqueda", "añadir", /^busqueda-anadir-[0-9a-f]{8}$/],
    ["another script", "files", "読む", /^files-[0-9a-f]{8}$/],
    ["65 characters", "s", "t".repeat(63), /^s-t{53}-[0-9a-f]{8}$/],
    ["200 characters", "files", "x".repeat(200), /^files-x{49}-[0-9a-f]{8}$/],
  ])("that is altered or cut gets a hash: %s", (_, server, tool, expected) => {
    expect(nameOf([{ name: server, tools: [tool] }], server, tool)).toMatch(expected);
  });

  test("that differs from another only in what was altered is another one", () => {
    const { names } = nameTools([{ name: "s", tools: ["a.b", "a b", "a/b", `${"x".repeat(100)}1`, `${"x".repeat(100)}2`] }]);
    expect(new Set(names.get("s")!.values()).size).toBe(5);
  });

  test("that two pairs would share gets a hash for each, in any order", () => {
    const one = { name: "a-b", tools: ["c", "other"] };
    const two = { name: "a", tools: ["b-c"] };
    const names = nameTools([one, two]).names;
    expect(names.get("a-b")!.get("c")).toMatch(/^a-b-c-[0-9a-f]{8}$/);
    expect(names.get("a")!.get("b-c")).toMatch(/^a-b-c-[0-9a-f]{8}$/);
    expect(names.get("a")!.get("b-c")).not.toBe(names.get("a-b")!.get("c"));
    expect(names.get("a-b")!.get("other")).toBe("a-b-other");
    expect(nameTools([two, one]).names.get("a")).toEqual(names.get("a"));
  });

  test("cannot be taken by a tool that is called like another's hashed name", () => {
    const hashed = nameOf([{ name: "s", tools: ["a.b"] }], "s", "a.b");
    const forged = hashed.slice("s-".length);
    const names = nameTools([
      { name: "s", tools: ["a.b", forged] },
      { name: "other", tools: ["x"] },
    ]).names.get("s")!;
    expect(names.get("a.b")).not.toBe(names.get(forged));
    expect([...names.values()].every((name) => checkToolName(name).ok)).toBe(true);
  });
});

test("the first of two tools with one name counts, and the other is reported", () => {
  const { names, diagnostics } = nameTools([{ name: "files", tools: ["read", "read"] }]);
  expect([...names.get("files")!]).toEqual([["read", "files-read"]]);
  expect(diagnostics).toMatchObject([{ code: "MCP_TOOL_TWICE", source: "files", severity: "warning" }]);
});

test("names of any servers and tools are legal, differ, and depend neither on the order nor on servers that do not matter", () => {
  const word = fc.oneof(
    fc.constantFrom("a", "b", "a-b", "b-c", "c", "a.b", "ab"),
    fc.string({ maxLength: 80, minLength: 1, unit: "grapheme" }),
  );
  const server = fc.record({ name: word, tools: fc.uniqueArray(word, { maxLength: 6 }) });
  fc.assert(
    fc.property(fc.uniqueArray(server, { selector: ({ name }) => name, maxLength: 5 }), (servers) => {
      const { names } = nameTools(servers);
      const all = [...names.values()].flatMap((own) => [...own.values()]);
      expect(new Set(all).size).toBe(all.length);
      for (const name of all) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(nameTools([...servers].reverse()).names).toEqual(names);
      const more = nameTools([...servers, { name: "quite-another", tools: ["thing"] }]).names;
      for (const [name, own] of names) expect(more.get(name)).toEqual(own);
    }),
    { numRuns: 300 },
  );
});
