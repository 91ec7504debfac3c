import fc from "fast-check";
import { parse } from "smol-toml";
import { expect, test } from "vitest";
import { appendTomlTable, removeTomlTable, type TomlTable } from "../../src/formats/text/edit-toml.ts";

const path = ["mcp_servers", "skillhost"];
const table: TomlTable = { command: "/usr/bin/node", args: ["mcp", 'a "quoted" \\ one'], env: { A_B: "c\n" }, trust: true };

test.each([
  ["is empty", ""],
  ["has other tables", '# mine\nmodel = "gpt-5"\n\n[mcp_servers.other]\ncommand = "npx" # with a comment\n\n[[profiles]]\nname = "a"\n'],
  ["has no final newline", 'model = "gpt-5"'],
  ["has CRLF", 'model = "gpt-5"\r\n\r\n[a]\r\nb = 1\r\n'],
  ["has headers inside of strings and arrays", 'text = """\n[mcp_servers.skillhost]\n"""\nlist = [\n  [1],\n  [2] ]\n[a]\nb = \'[c]\'\n'],
])("a table added to and removed from a text that %s leaves the others as they were", (_what, text) => {
  const added = appendTomlTable(text, path, table);
  expect(added.startsWith(text)).toBe(true);
  const before = parse(text) as { mcp_servers?: object };
  expect(parse(added)).toEqual({ ...before, mcp_servers: { ...before.mcp_servers, skillhost: table } });
  const removed = removeTomlTable(added, path)!;
  expect(removed.trimEnd()).toBe(text.trimEnd());
  expect(parse(removed)).toEqual(before);
});

test("a table is removed with the tables below it, and without the comments of the next", () => {
  const text = '[mcp_servers.skillhost]\ncommand = "a"\n\n[mcp_servers.skillhost.env]\nA = "b"\n\n# about b\n[b]\nc = 1\n';
  expect(removeTomlTable(text, path)).toBe("\n# about b\n[b]\nc = 1\n");
});

test.each([['[mcp_servers."skillhost"]\na = 1\n'], ["[ mcp_servers . 'skillhost' ] # mine\na = 1\n"]])("the header %j is found", (text) => {
  expect(removeTomlTable(text, path)).toBe("");
});

test.each([['mcp_servers = { skillhost = { command = "a" } }\n'], ['mcp_servers.skillhost.command = "a"\n']])(
  "a table in the form %j is not removed",
  (text) => expect(removeTomlTable(text, path)).toBeUndefined(),
);

test("any texts can be written", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.string({ unit: "binary-ascii" }), (args, command) => {
      expect(parse(appendTomlTable("", path, { command, args }))).toEqual({ mcp_servers: { skillhost: { command, args } } });
    }),
  );
});
