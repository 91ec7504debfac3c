import { describe, expect, test } from "vitest";
import { parseAgentPluginsMcp } from "../../../src/formats/plugins/agent-plugins-mcp.ts";
import { parseMarkdownCommand, parseTomlCommand } from "../../../src/formats/plugins/command-file.ts";
import { parseMarketplace } from "../../../src/formats/plugins/marketplace.ts";

describe("the mcp.json of Agent Plugins", () => {
  const $schema = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";
  const parse = (value: unknown) =>
    parseAgentPluginsMcp(typeof value === "string" ? value : JSON.stringify(value), {
      file: "/p/mcp.json",
      folder: "/p",
      variables: ({ kind, name }) => (kind === "place" ? `/${name}` : "never"),
    });
  const one = (entry: unknown) => parse({ $schema, mcpServers: { s: entry } });

  test.each<[unknown, object]>([
    [
      { type: "stdio", command: "node" },
      { command: "node", cwd: "/p", env: {} },
    ],
    [
      { type: "stdio", command: "./bin/x", args: ["${PLUGIN_ROOT}/a", "${HOME}"], cwd: "${PLUGIN_DATA}/w" },
      { args: ["/folder/a", "${HOME}"], cwd: "/data/w" },
    ],
    [
      { type: "stdio", command: "node", cwd: "./sub", env: { A: "${PLUGIN_DATA}" } },
      { cwd: "/p/sub", env: { A: "/data" } },
    ],
    [
      { type: "streamable-http", url: "https://x.example/${PLUGIN_ROOT}" },
      { type: "http", url: "https://x.example/${PLUGIN_ROOT}" },
    ],
    [
      { type: "sse", url: "http://127.0.0.1:1/sse", headers: { A: "${PLUGIN_ROOT}" } },
      { type: "sse", headers: { A: "${PLUGIN_ROOT}" } },
    ],
    [{ type: "streamable-http", url: "http://[::1]:1/" }, { type: "http" }],
  ])("%j is a server", (entry, spec) => {
    expect(one(entry).servers).toMatchObject([{ state: "ready", spec }]);
  });

  test.each<[unknown, string]>([
    [7, "an object"],
    [{ command: "node" }, '"type"'],
    [{ type: "http", url: "https://x.example" }, '"type"'],
    [{ type: "stdio" }, '"command"'],
    [{ type: "stdio", command: "bin/x" }, '"./"'],
    [{ type: "stdio", command: "/bin/x" }, '"./"'],
    [{ type: "stdio", command: "C:x" }, '"./"'],
    [{ type: "stdio", command: "node", url: "https://x.example" }, '"url"'],
    [{ type: "stdio", command: "node", timeout: 1 }, '"timeout"'],
    [{ type: "stdio", command: "node", args: "x" }, '"args"'],
    [{ type: "stdio", command: "node", env: { A: 1 } }, '"env"'],
    [{ type: "stdio", command: "node", env: { PLUGIN_ROOT: "x" } }, "PLUGIN_ROOT"],
    [{ type: "stdio", command: "node", cwd: "sub" }, '"cwd"'],
    [{ type: "stdio", command: "node", cwd: "${PLUGIN_ROOT}x" }, '"cwd"'],
    [{ type: "streamable-http", url: "http://x.example" }, "https://"],
    [{ type: "streamable-http", url: "http://127.0.0.1.example" }, "https://"],
    [{ type: "streamable-http", url: "https://u:p@x.example" }, "user name"],
    [{ type: "streamable-http", url: "https://x.example/#f" }, "fragment"],
    [{ type: "streamable-http", url: "/mcp" }, '"url"'],
    [{ type: "sse", url: "https://x.example", headers: { "a b": "c" } }, '"a b"'],
    [{ type: "sse", url: "https://x.example", headers: { A: "1\n2" } }, '"A"'],
    [{ type: "sse", url: "https://x.example", headers: { A: "1", a: "2" } }, "twice"],
  ])("%j is left out", (entry, says) => {
    const { servers, diagnostics } = one(entry);
    expect(servers).toEqual([{ state: "refused", name: "s" }]);
    expect(diagnostics).toMatchObject([{ severity: "error", code: "MCP_ENTRY_INVALID", message: expect.stringContaining(says) }]);
  });

  test.each<[unknown]>([
    [[]],
    [{ mcpServers: {} }],
    [{ $schema: $schema.replace("1.0.0", "1.1.0"), mcpServers: {} }],
    [{ $schema, mcpServers: [] }],
    [{ $schema, mcpServers: { s: { type: "stdio", command: "node" } }, inputs: [] }],
  ])("%j has no servers at all", (value) => {
    expect(parse(value)).toMatchObject({ servers: [], diagnostics: [{ severity: "error", code: "MCP_CONFIG_INVALID" }] });
  });

  test("no comments, and no more than a megabyte", () => {
    expect(parse("{} // x").diagnostics).toMatchObject([{ code: "JSON_SYNTAX" }]);
    expect(parse("x".repeat(1_100_000)).diagnostics).toMatchObject([{ code: "FILE_TOO_LARGE" }]);
  });
});

describe("a marketplace file", () => {
  const parse = (value: unknown) => parseMarketplace(JSON.stringify(value), "/m/marketplace.json");
  const source = (given: unknown, metadata?: object) => {
    const { marketplace, diagnostics } = parse({ name: "m", metadata, plugins: [{ name: "p", source: given }] });
    return marketplace?.plugins[0]?.source ?? diagnostics.map(({ code }) => code);
  };

  test.each<[unknown, object]>([
    ["./plugins/p", { kind: "local", path: "./plugins/p" }],
    ["plugins/p", { kind: "local", path: "plugins/p" }],
    ["https://git.example/p.git", { kind: "url", url: "https://git.example/p.git" }],
    ["git@git.example:p.git", { kind: "url", url: "git@git.example:p.git" }],
    [
      { source: "local", path: "./p" },
      { kind: "local", path: "./p" },
    ],
    [
      { source: "github", repo: "o/p", ref: "v1", sha: "abc" },
      { kind: "github", repo: "o/p", ref: "v1", sha: "abc" },
    ],
    [
      { source: "url", url: "https://x.example/p.git" },
      { kind: "url", url: "https://x.example/p.git" },
    ],
    [
      { source: "git-subdir", url: "https://x.example/m.git", path: "p" },
      { kind: "git-subdir", url: "https://x.example/m.git", path: "p" },
    ],
    [
      { source: "npm", package: "@o/p", version: "^1" },
      { kind: "npm", package: "@o/p", version: "^1" },
    ],
    [
      { source: "archive", url: "https://x.example/p.zip", sha256: "00" },
      { kind: "archive", url: "https://x.example/p.zip", sha256: "00" },
    ],
  ])("%j is a source", (given, expected) => {
    expect(source(given)).toEqual(expected);
  });

  test.each<[unknown]>([
    [""],
    [7],
    [{}],
    [{ source: "github" }],
    [{ source: "npm", package: 7 }],
    [{ source: "command", run: "x" }],
    [{ source: "__proto__" }],
  ])("%j is not a source", (given) => {
    expect(source(given)).toEqual(["MARKETPLACE_ENTRY"]);
  });

  test("an entry says what its plugin brings, as a manifest does", () => {
    const entry = { name: "p", source: "./", strict: false, skills: ["./a", "./b"], agents: "./c.md", hooks: { Stop: [] }, commands: [] };
    const { marketplace, diagnostics } = parse({ name: "m", plugins: [{ name: "plain", source: "./plain" }, entry] });
    expect(diagnostics).toEqual([]);
    expect(marketplace?.plugins).toMatchObject([
      { name: "plain", components: {}, isStrict: true },
      {
        name: "p",
        isStrict: false,
        components: {
          skills: [
            { kind: "path", path: "./a", start: { line: 1 } },
            { kind: "path", path: "./b" },
          ],
          agents: [{ kind: "path", path: "./c.md" }],
          hooks: [{ kind: "inline", value: { Stop: [] }, at: ["plugins", 1, "hooks"] }],
          commands: [],
        },
      },
    ]);
  });

  test("an entry with a part of the wrong type is ignored, with a diagnostic at its place", () => {
    const { marketplace, diagnostics } = parse({ name: "m", plugins: [{ name: "p", source: "./", skills: 7 }] });
    expect(marketplace?.plugins).toEqual([]);
    expect(diagnostics.map(({ code, range }) => [code, range !== undefined])).toEqual([
      ["PLUGIN_FIELD_TYPE", true],
      ["MARKETPLACE_ENTRY", true],
    ]);
  });

  test("bare paths lie below the root that it names", () => {
    expect(source("p", { pluginRoot: "./plugins/" })).toEqual({ kind: "local", path: "./plugins/p" });
    expect(source("./p", { pluginRoot: "./plugins" })).toEqual({ kind: "local", path: "./p" });
  });

  test("an entry that cannot be used, or comes twice, takes none of the others along", () => {
    const { marketplace, diagnostics } = parse({
      name: "m",
      owner: { name: "O" },
      plugins: [7, { source: "./a" }, { name: "a", source: "./a", version: "1", description: "d" }, { name: "a", source: "./b" }],
    });
    expect(marketplace).toEqual({
      name: "m",
      owner: "O",
      plugins: [
        {
          name: "a",
          source: { kind: "local", path: "./a" },
          version: "1",
          description: "d",
          components: {},
          isStrict: true,
          start: { line: 1, column: expect.any(Number) },
        },
      ],
    });
    expect(diagnostics.map(({ code }) => code)).toEqual(Array(3).fill("MARKETPLACE_ENTRY"));
  });

  test.each<[unknown]>([[[]], [{ name: "m" }], [{ name: "m", plugins: {} }]])("%j is not a marketplace", (value) => {
    expect(parse(value)).toMatchObject({ diagnostics: [{ code: "MARKETPLACE_TYPE" }] });
    expect(parse(value).marketplace).toBeUndefined();
  });
});

describe("commands", () => {
  test("in Markdown take their arguments and places, once", () => {
    const { command, diagnostics } = parseMarkdownCommand("---\ndescription: d\narguments: who\n---\n$who: $ARGUMENTS ${ROOT}\n", "c.md", {
      "${ROOT}": "/r$1",
    });
    expect(command?.description).toBe("d");
    expect(command?.expand("Ada")).toBe("Ada: Ada /r$1");
    expect(diagnostics).toEqual([]);
  });

  test("in TOML too, and at the end where the prompt has no place for them", () => {
    expect(parseTomlCommand('prompt = "Greet {{args}}."', "c.toml", {}).command?.expand("$& Ada")).toBe("Greet $& Ada.");
    expect(parseTomlCommand("prompt = 'Greet.'", "c.toml", {}).command?.expand("Ada")).toBe("Greet.\n\nAda");
  });

  test("never run what they hold", () => {
    expect(parseMarkdownCommand("See !`rm -rf /`", "c.md", {})).toMatchObject({ diagnostics: [{ code: "COMMAND_SHELL" }] });
    expect(parseTomlCommand('prompt = "!{rm}"', "c.toml", {})).toMatchObject({ diagnostics: [{ code: "COMMAND_SHELL" }] });
  });
});

describe("a command in TOML", () => {
  const parse = (source: string) => parseTomlCommand(source, "c.toml", {});

  test.each<[source: string, prompt: string]>([
    ["# c\nprompt = \"x\\ty\\u00e9\" # c\nb = '\\raw'", "x\ty\u00e9"],
    ['a = "b"\nprompt = """\none\n  two "" three"""\nb.c = 1\nd = "e"', 'one\n  two "" three'],
    ['prompt = """x\\\n   y"""', "xy"],
    ["prompt = '''\nx''y'''", "x''y"],
    ['tags = [\n  "a",\n  "b",\n]\nprompt = "after a list"', "after a list"],
    ['a = { b = "]" }\r\n"prompt" = "after a table"\r\n[t]\r\nprompt = "f"', "after a table"],
    ['when = 1979-05-27T07:32:00Z\nprompt = """""x"""""', '""x""'],
    ['\uFEFFprompt = "with a byte order mark"', "with a byte order mark"],
    ['__proto__ = "x"\nprompt = "p"', "p"],
  ])("has the prompt of %j", (source, prompt) => {
    const { command, diagnostics } = parse(source);
    expect(diagnostics).toEqual([]);
    expect(command?.expand("")).toBe(prompt);
  });

  test.each(["", "prompt = 1", 'prompt = ["a"]', '[t]\nprompt = "a"', '[__proto__]\nprompt = "a"'])("needs a prompt: %j", (source) => {
    expect(parse(source)).toEqual({ diagnostics: [expect.objectContaining({ code: "COMMAND_EMPTY" })] });
  });

  test.each<[source: string, line: number, column: number]>([
    ['prompt = "no end', 1, 10],
    ['a = 1\nprompt = "\\q"', 2, 12],
    ["a", 1, 1],
    ['prompt = "x"\nb = 1\nb = 2', 3, 1],
    ['prompt = "x"\n]', 2, 1],
    [`prompt = "x"\na = ${"[".repeat(2_000)}`, 2, 1005],
  ])("is refused with the place of its fault: %j", (source, line, column) => {
    const { command, diagnostics } = parse(source);
    expect(command).toBeUndefined();
    expect(diagnostics).toMatchObject([{ code: "TOML_SYNTAX", file: "c.toml", range: { start: { line } } }]);
    expect(diagnostics[0]?.range?.start.column).toBe(column);
    expect(diagnostics[0]?.message).not.toContain("\n");
  });

  test("is not parsed when it is longer than a megabyte", () => {
    expect(parse(`prompt = "x"\n#${"-".repeat(1_048_576)}`)).toMatchObject({ diagnostics: [{ code: "FILE_TOO_LARGE" }] });
  });
});
