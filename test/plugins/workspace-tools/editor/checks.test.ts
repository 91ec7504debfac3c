import { existsSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { jsonFaultAt } from "../../../../plugins/workspace-tools/operations/file-checks.ts";
import { selectPassages } from "../../../../plugins/workspace-tools/operations/select-passages.ts";
import { put, tempFolder } from "../../../skills/kit.ts";
import { closeEditors, openEditor } from "../workspace-kit.ts";

afterAll(closeEditors);

afterEach(() => void vi.unstubAllEnvs());

const compiler = fileURLToPath(new URL("../../../../node_modules/typescript", import.meta.url));
const hasPython = (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "python3")));

describe("get_errors", () => {
  test.each<[what: string, files: Record<string, string | Buffer>, says: (folder: string) => string]>([
    [
      "JSON",
      { "a.json": '{\n  "a": 1,\n}' },
      (folder) => `${folder}/a.json:3:1: error: Expected double-quoted property name\nChecked: 1 file for JSON syntax.`,
    ],
    [
      "JSON with something else in it",
      { "a.json": '{\n  "a": x\n}' },
      (folder) => `${folder}/a.json:2:8: error: Unexpected token 'x'\nChecked: 1 file for JSON syntax.`,
    ],
    [
      "JSON that stops",
      { "a.json": '{"a": ' },
      (folder) => `${folder}/a.json:1:7: error: Unexpected end of JSON input\nChecked: 1 file for JSON syntax.`,
    ],
    [
      "YAML",
      { "a.yaml": "a: 1\nb: [\n" },
      (folder) =>
        `${folder}/a.yaml:3:1: error: Flow sequence in block collection must be sufficiently indented and end with a ]\nChecked: 1 file for YAML syntax.`,
    ],
    [
      "JavaScript",
      { "a.mjs": "export const a = ;\n" },
      (folder) => `${folder}/a.mjs:1:18: error: Unexpected token\nChecked: 1 file for JavaScript and TypeScript syntax.`,
    ],
    [
      "CommonJS",
      { "a.cjs": "return module.exports = 1;\n" },
      () => "No errors found.\nChecked: 1 file for JavaScript and TypeScript syntax.",
    ],
    [
      "TypeScript without a project",
      { "a.ts": "const a: = 1;\n" },
      (folder) => `${folder}/a.ts:1:10: error: Unexpected token\nChecked: 1 file for JavaScript and TypeScript syntax.`,
    ],
    ["a byte order mark and CRLF", { "a.json": "\uFEFF{\r\n}\r\n" }, () => "No errors found.\nChecked: 1 file for JSON syntax."],
    [
      "what nothing checks",
      { "a.rs": "fn" },
      (folder) => `Nothing was checked.\nNot checked:\n${folder}/a.rs: there is no check for this kind of file`,
    ],
    [
      "JSON with comments",
      { "tsconfig.json": "{ // hello\n}" },
      (folder) => `Nothing was checked.\nNot checked:\n${folder}/tsconfig.json: there is no check for this kind of file`,
    ],
    [
      "what is not a text",
      { "a.json": Buffer.from([0, 1]) },
      (folder) => `Nothing was checked.\nNot checked:\n${folder}/a.json: it cannot be read as text of at most 5 MB`,
    ],
  ])("says what is wrong in %s, and what was checked", async (_what, files, says) => {
    const { folder, text, asked } = await openEditor(files);
    expect(await text("get_errors", { filePaths: Object.keys(files) })).toBe(says(folder));
    expect(asked).toMatchObject([{ kind: "read" }]);
  });

  test.skipIf(!hasPython)("parses Python, without running or writing anything", async () => {
    const { folder, text } = await openEditor({ "good.py": "open('ran', 'w')\n", "bad.py": "def f(:\n", "json.py": "open('ran', 'w')\n" });
    expect(await text("get_errors", { filePaths: ["good.py", "bad.py", "json.py"] })).toBe(
      `${folder}/bad.py:1:7: error: invalid syntax\nChecked: 3 files for Python syntax (python3).`,
    );
    expect([existsSync(join(folder, "ran")), existsSync(join(folder, "__pycache__"))]).toEqual([false, false]);
  });

  test("says that there is no Python", async () => {
    vi.stubEnv("PATH", tempFolder());
    const { folder, text } = await openEditor({ "a.py": "" });
    expect(await text("get_errors", { filePaths: ["a.py"] })).toBe(
      `Nothing was checked.\nNot checked:\n${folder}/a.py: there is no python3 on this machine`,
    );
  });

  test("checks TypeScript with the project's own compiler, which needs permission like a command", async () => {
    const config = JSON.stringify({ compilerOptions: { strict: true, types: [] }, include: ["src"] });
    const { folder, text, asked } = await openEditor({
      "tsconfig.json": config,
      "src/a.ts": 'export const a: number = "x";\n',
      "src/b.ts": "export {};\n",
      "out.ts": "",
    });
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(realpathSync(compiler), join(folder, "node_modules/typescript"));
    const by = "TypeScript (node_modules/typescript/bin/tsc -p tsconfig.json --noEmit)";
    const all = await text("get_errors", { filePaths: ["src", "out.ts"] });
    expect(all).toBe(
      `${folder}/src/a.ts:1:14: error: TS2322: Type 'string' is not assignable to type 'number'.\nChecked: 2 files for ${by}.\nNot checked:\n${folder}/out.ts: it is not part of tsconfig.json`,
    );
    expect(asked).toMatchObject([{ kind: "shell", fullCommandText: "node_modules/typescript/bin/tsc -p tsconfig.json --noEmit" }]);
  });

  test("does not run a compiler that was installed while the user was asked about reading", async () => {
    let change = (): void => {};
    const { folder, text } = await openEditor({ "a.ts": "const a: number = 'x';\n" }, {}, () => {
      change();
      return { kind: "approve-once" };
    });
    change = () => {
      put(join(folder, "tsconfig.json"), "{}");
      put(join(folder, "node_modules/typescript/bin/tsc"), "require('fs').writeFileSync('ran', '')");
    };
    expect(await text("get_errors", { filePaths: ["a.ts"] })).toBe(
      "No errors found.\nChecked: 1 file for JavaScript and TypeScript syntax.",
    );
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });

  test("checks all files of the workspace if none are named, and counts those that it cannot check", async () => {
    const { folder, text } = await openEditor({
      "a.json": "{}",
      "sub/b.json": "{",
      "c.rs": "",
      "d.rs": "",
      LICENSE: "",
      ".gitignore": "skip/\n",
      "skip/x.json": "{",
    });
    expect(await text("get_errors")).toBe(
      `${folder}/sub/b.json:1:2: error: Expected property name or '}'\nChecked: 2 files for JSON syntax.\nNot checked:\n2 files (.rs, there is no check for this kind of file)\n1 file (without an extension, there is no check for this kind of file)`,
    );
  });
});

describe("fetch_web_page", () => {
  const page = [
    "# Top",
    "Nothing here.",
    "## Waiting",
    "Use waitFor to wait for an element.",
    ...Array.from({ length: 400 }, (_, at) => `Filler ${at}: ${"words ".repeat(12)}`),
    "## Ending",
    "Elements end.",
  ].join("\n\n");

  async function serve(): Promise<string> {
    const server = createServer((request, response) => {
      if (request.url === "/none") response.writeHead(404).end();
      else
        response.writeHead(200, { "content-type": "text/markdown" }).end(request.url === "/long" ? page : `You asked for ${request.url}`);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  test("returns several pages, and says which could not be fetched", async () => {
    const { call, asked } = await openEditor();
    const url = await serve();
    const result = await call("fetch_web_page", { urls: [`${url}/a`, `${url}/none`], query: "x" });
    expect(result.textResultForLlm).toBe(
      `## ${url}/a\nYou asked for /a\n\n## ${url}/none\nIt could not be fetched: the server answered with HTTP status 404.`,
    );
    expect(result.resultType).toBe("success");
    expect(asked).toMatchObject([{ kind: "url", url: `${url}/a`, possibleUrls: [{ url: `${url}/a` }, { url: `${url}/none` }] }]);
    expect((await call("fetch_web_page", { urls: [`${url}/none`] })).resultType).toBe("failure");
  });

  test("returns the parts of a long page that match the query", async () => {
    const url = await serve();
    const { text } = await openEditor();
    const said = await text("fetch_web_page", { urls: [`${url}/long`], query: "wait for element" });
    expect(said.length).toBeLessThan(20_100);
    expect(said).toMatch(/## Waiting\n\nUse waitFor to wait for an element\./);
    expect(said).toMatch(/\[…\]\n\n## Ending\n\nElements end\.$/);
    expect(selectPassages(page, "zzz", 100)).toBe(`${page.slice(0, 100)}\n[…]`);
    expect(selectPassages("short", "zzz", 100)).toBe("short");
  });

  test.each([[["ftp://x/y"]], [["http://u:p@x/"]], [["http://x/", "/etc/passwd"]], [[]], [Array.from({ length: 6 }, () => "http://x/")]])(
    "refuses %j without asking the user",
    async (urls) => {
      const { call, asked } = await openEditor();
      expect([(await call("fetch_web_page", { urls })).resultType, asked]).toEqual(["failure", []]);
    },
  );
});

test.each<[text: string, at: number]>([
  ['{"a": x}', 6],
  ["[1, 2", 5],
  ["[1 2]", 3],
  ["[1,]", 3],
  ["{'a': 1}", 1],
  ['{"a" 1}', 5],
  ['{"a": 01}', 7],
  ['["\\x"]', 2],
  ['["a\nb"]', 3],
  ['["a', 3],
  ["// no\n{}", 0],
  ["{} {}", 3],
  ["", 0],
  ["nul", 0],
  ["]", 0],
])("the position of a fault in the JSON text %j is found", (text, at) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(jsonFaultAt(text)).toBe(at);
});

test("a fault is found in invalid JSON only", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(jsonFaultAt(text)).toBe(text.length);
    }),
  );
  const broken = fc.tuple(fc.json(), fc.nat(), fc.constantFrom("", "x", '"', ",", "}", "]", "\\", "\n", "0"));
  fc.assert(
    fc.property(broken, ([json, place, put]) => {
      const at = place % (json.length + 1);
      const text = json.slice(0, at) + put + json.slice(at + 1);
      const fault = jsonFaultAt(text);
      expect(fault).toBeLessThanOrEqual(text.length);
      if (fault < text.length) expect(() => JSON.parse(text)).toThrow();
    }),
    { numRuns: 1_000 },
  );
});
