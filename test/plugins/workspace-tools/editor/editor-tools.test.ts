import { chmodSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import type { ToolResult } from "../../../../src/tools/tool.ts";
import { closeEditors, openEditor, openWorkspace, type Workspace } from "../workspace-kit.ts";

afterAll(closeEditors);

const names = [
  "insert_edit_into_file",
  "replace_string_in_file",
  "multi_replace_string",
  "create_file",
  "create_directory",
  "apply_patch",
  "read_file",
  "list_dir",
  "file_search",
  "grep_search",
  "find_test_files",
  "run_in_terminal",
  "run_tests",
  "fetch_web_page",
  "get_errors",
];

const namesOf = ({ session }: Workspace): readonly string[] => session.listTools().map(({ name }) => name);
const ofBoth = ["view", "bash", ...names];

describe("the tool names of a session", () => {
  test.each<[config: object, has: readonly string[], hasNot: readonly string[]]>([
    [{}, ["view", "bash", "web_fetch"], names],
    [{ presentation: "editor" }, names, ["view", "bash", "create", "edit", "grep", "glob", "web_fetch"]],
    [{ presentation: "both" }, ofBoth, []],
    [{ presentation: "editor", shell: false }, ["read_file", "get_errors"], ["run_in_terminal", "run_tests"]],
    [{ presentation: "editor", web: false }, ["read_file"], ["fetch_web_page"]],
  ])("follow the configuration of its host: %j", async (config, has, hasNot) => {
    const all = namesOf(await openWorkspace({}, {}, undefined, config));
    expect(has.filter((name) => !all.includes(name))).toEqual([]);
    expect(hasNot.filter((name) => all.includes(name))).toEqual([]);
  });

  test("can be selected as built-in tools and as tools of the plugin", async () => {
    expect(namesOf(await openEditor({}, { availableTools: ["builtin:read_file", "list_dir"] }))).toEqual(["list_dir", "read_file"]);
  });
});

test("a language server accepts every definition unchanged", async () => {
  const { session } = await openEditor();
  const definitions = session.tools.filter(({ name }) => names.includes(name));
  expect(definitions).toHaveLength(15);
  for (const { name, description, parameters, overridesBuiltInTool } of definitions) {
    const schema = parameters as {
      type: string;
      properties: Record<string, { type?: unknown; description?: unknown }>;
      required?: unknown;
    };
    expect([typeof description, schema.type, Array.isArray(schema.required), overridesBuiltInTool], name).toEqual([
      "string",
      "object",
      true,
      true,
    ]);
    for (const [key, property] of Object.entries(schema.properties)) {
      expect([typeof property.type, typeof property.description], `${name}.${key}`).toEqual(["string", "string"]);
    }
  }
});

test("the documentation names every tool and argument", async () => {
  const page = readFileSync(fileURLToPath(new URL("../../../../docs/workspace-tools.md", import.meta.url)), "utf8");
  const { session } = await openWorkspace({}, {}, undefined, { presentation: "both" });
  const rows = new Map([...page.matchAll(/^\| `(\w+)` \| (.*?) \|/gm)].map(([, name, args]) => [name, args ?? ""]));
  const tools = session.tools.filter(({ name }) => rows.has(name));
  expect(tools).toHaveLength(26);
  for (const { name, parameters } of tools) {
    const { properties, required = [] } = parameters as { properties: object; required?: readonly string[] };
    const reported = [...(rows.get(name) ?? "none").matchAll(/`([\w-]+)(\??)`/g)].map(([, key, isOptional]) => [key, isOptional === ""]);
    const expected = Object.keys(properties).map((key) => [key, required.includes(key)]);
    expect(Object.fromEntries(reported), name).toEqual(Object.fromEntries(expected));
  }
});

test("each of the fifteen tools works through a session", async () => {
  const server = createServer((_request, response) => void response.writeHead(200, { "content-type": "text/plain" }).end("The page."));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const files = {
    "a.ts": "export const a = 1;\n",
    "a.test.js": "",
    "b.txt": "one\ntwo\n",
    "c.txt": "c\n",
    "package.json": "{}",
    "pom.xml": "",
    mvnw: "#!/bin/sh\necho 1 test passed\n",
  };
  const { folder, call, changed } = await openEditor(files);
  const at = (name: string): string => join(folder, name);
  chmodSync(at("mvnw"), 0o755);
  const calls: readonly (readonly [name: string, args: object, expected: string | RegExp])[] = [
    ["create_directory", { dirPath: at("new/deep") }, `Created folder ${at("new/deep")}`],
    ["create_file", { filePath: at("new/file.txt"), content: "new\n" }, `Created file ${at("new/file.txt")}`],
    [
      "replace_string_in_file",
      { filePath: at("b.txt"), oldString: "one", newString: "ONE" },
      `The following files were successfully edited:\n${at("b.txt")}`,
    ],
    [
      "multi_replace_string",
      {
        replacements: [
          { filePath: at("b.txt"), oldString: "two", newString: "TWO" },
          { filePath: at("c.txt"), oldString: "c", newString: "C" },
        ],
      },
      `Applied 2 replacements.\nThe following files were successfully edited:\n${at("b.txt")}\n${at("c.txt")}`,
    ],
    [
      "insert_edit_into_file",
      { filePath: at("c.txt"), code: "whole\n", explanation: "" },
      `The following files were successfully edited:\n${at("c.txt")}`,
    ],
    ["apply_patch", { input: `*** Begin Patch\n*** Delete File: ${at("c.txt")}\n*** End Patch` }, `Deleted files:\n  - ${at("c.txt")}`],
    [
      "read_file",
      { filePath: at("b.txt") },
      `File \`${at("b.txt")}\`. Total 2 lines. Line range (1-based) 1 to 2:\n\`\`\`txt\nONE\nTWO\n\`\`\``,
    ],
    ["list_dir", { path: folder }, "a.test.js\na.ts\nb.txt\nmvnw\nnew/\npackage.json\npom.xml"],
    ["file_search", { query: "**/*.txt" }, `Found 2 files matching query: **/*.txt\n${at("b.txt")}\n${at("new/file.txt")}`],
    ["grep_search", { query: "TWO" }, `Searched text for: TWO, 1 result\n${at("b.txt")}:2:TWO`],
    ["find_test_files", { filePaths: [at("a.ts")] }, `The test files of ${at("a.ts")}, the likeliest first:\n${at("a.test.js")}`],
    ["run_in_terminal", { command: "echo hello", explanation: "Greets" }, "hello\n"],
    ["run_tests", {}, /^Exit code: 0\n\$ .*mvnw .*\(because of pom\.xml\)\n1 test passed$/],
    ["fetch_web_page", { urls: [url], query: "page" }, `## ${url}\nThe page.`],
    ["get_errors", { filePaths: [at("package.json")] }, "No errors found.\nChecked: 1 file for JSON syntax."],
  ];
  expect(calls.map(([name]) => name).toSorted()).toEqual(names.toSorted());
  for (const [name, args, expected] of calls) {
    const { resultType, textResultForLlm } = await call(name, args);
    expect([name, resultType], textResultForLlm).toEqual([name, "success"]);
    if (typeof expected === "string") expect(textResultForLlm).toBe(expected);
    else expect(textResultForLlm).toMatch(expected);
  }
  // A deleted file has no content to report.
  expect(changed.map(({ path, content }) => [path, content])).toEqual([
    [at("new/file.txt"), "new\n"],
    [at("b.txt"), "ONE\ntwo\n"],
    [at("b.txt"), "ONE\nTWO\n"],
    [at("c.txt"), "C\n"],
    [at("c.txt"), "whole\n"],
  ]);
});

describe("a path outside the workspace", () => {
  const ways: readonly (readonly [name: string, path: (outside: string) => string])[] = [
    ["an absolute path", (outside) => join(outside, "key.txt")],
    ["a path with ..", (outside) => `sub/../../${outside.split("/").at(-1)}/key.txt`],
    ["a link to a file", () => "file-link"],
    ["a link to a folder", () => "folder-link/key.txt"],
    ["a link that leads nowhere", () => "dangling"],
    ["a device", () => "/dev/zero"],
    ["a NUL", () => "own.txt\0"],
  ];

  test.each(ways)("is not accessible to any tool, and the user is not asked: %s", async (_name, pathOf) => {
    const beside = await openEditor({ "key.txt": "SECRET\n" });
    const { folder, call, asked } = await openEditor({ "own.txt": "mine\n", "sub/a.txt": "" });
    expect(dirname(folder)).toBe(dirname(beside.folder));
    symlinkSync(join(beside.folder, "key.txt"), join(folder, "file-link"));
    symlinkSync(beside.folder, join(folder, "folder-link"));
    symlinkSync(join(beside.folder, "none.txt"), join(folder, "dangling"));
    const path = pathOf(beside.folder);
    const calls: readonly (readonly [string, object])[] = [
      ["insert_edit_into_file", { filePath: path, code: "x" }],
      ["replace_string_in_file", { filePath: path, oldString: "SECRET", newString: "x" }],
      [
        "multi_replace_string",
        {
          replacements: [
            { filePath: "own.txt", oldString: "mine", newString: "x" },
            { filePath: path, oldString: "SECRET", newString: "x" },
          ],
        },
      ],
      ["create_file", { filePath: path, content: "x" }],
      ["create_directory", { dirPath: path }],
      ["apply_patch", { input: `*** Begin Patch\n*** Update File: own.txt\n@@\n-mine\n+x\n*** Add File: ${path}\n+x\n*** End Patch` }],
      ["read_file", { filePath: path }],
      ["list_dir", { path }],
      ["find_test_files", { filePaths: [path] }],
      ["run_tests", { files: [path] }],
      ["get_errors", { filePaths: [path] }],
      ["grep_search", { query: "SECRET", includePattern: path.startsWith("/") ? path : `/..${path}` }],
      ["file_search", { query: path.startsWith("/") ? path : `/..${path}` }],
    ];
    for (const [name, args] of calls) {
      const result: ToolResult = await call(name, args);
      expect([name, result.resultType]).toEqual([name, "failure"]);
      expect(result.textResultForLlm, name).not.toContain("SECRET");
    }
    expect(asked).toEqual([]);
    expect((await call("read_file", { filePath: "own.txt" })).textResultForLlm).toContain("mine");
    expect((await beside.call("read_file", { filePath: "key.txt" })).textResultForLlm).toContain("SECRET");
    expect((await beside.call("list_dir", { path: "." })).textResultForLlm).toBe("key.txt");
  });

  test("is not found by searches that reach a link to it", async () => {
    const beside = await openEditor({ "key.txt": "SECRET\n" });
    const { folder, text } = await openEditor({ "own.txt": "mine\n" });
    symlinkSync(beside.folder, join(folder, "folder-link"));
    mkdirSync(join(folder, "empty"));
    expect(await text("grep_search", { query: "SECRET" })).toBe("Searched text for SECRET, no results");
    expect(await text("file_search", { query: "key" })).toBe("No files found matching query: key");
    expect(await text("list_dir", { path: "empty" })).toBe("Folder is empty");
  });
});
