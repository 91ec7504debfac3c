import { mkdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { calling, Runtime, type Sdk } from "./sdk-kit.ts";

let runtime: Runtime;
let pages: Server;

beforeAll(async () => {
  runtime = await Runtime.start();
  pages = createServer((_request, response) => {
    response
      .writeHead(200, { "content-type": "text/html" })
      .end("<html><head><title>Page</title></head><body><h1>Hello</h1><p>A page.</p></body></html>");
  });
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
}, patience(120_000));

afterEach(() => runtime.clear());
afterAll(async () => {
  pages.close();
  await runtime[Symbol.asyncDispose]();
});

interface Place {
  readonly folder: string;
  readonly asked: Sdk[];
  readonly session: Sdk;
  /** Lets the model call a tool, and returns the result that it reads. */
  call(tool: string, args: object): Promise<string>;
}

async function workspace(files: Readonly<Record<string, string>> = {}): Promise<Place> {
  const folder = runtime.place(files);
  const asked: Sdk[] = [];
  const onPermissionRequest = (request: Sdk): object => {
    asked.push(request);
    return { kind: "approve-once" };
  };
  const session = await runtime.session({ workingDirectory: folder, onPermissionRequest });
  let count = 0;
  const call = async (tool: string, args: object): Promise<string> => {
    runtime.says(calling(tool, args, `call-${++count}`), "So.");
    // A session is not idle until its background commands have ended.
    const answered = new Promise<void>((resolve) => session.on("assistant.idle", () => resolve()));
    await session.send(`Use ${tool}`);
    await answered;
    return runtime.lastToolResult;
  };
  return { folder, asked, session, call };
}

describe("the built-in tools, as the model reads them", () => {
  test("view returns numbered lines, a range, a folder, an image, and an error for a missing path", async () => {
    const { folder, asked, call } = await workspace({ "a.txt": "one\ntwo\nthree\n", "sub/b.txt": "b" });
    expect(await call("view", { path: join(folder, "a.txt") })).toMatch(/^1\. one\n2\. two\n3\. three\n4\. ?$/);
    expect(await call("view", { path: join(folder, "a.txt"), view_range: [2, 3] })).toBe("2. two\n3. three");
    expect(await call("view", { path: "a.txt" })).toContain("1. one");
    expect((await call("view", { path: folder })).split("\n").sort()).toEqual(["a.txt", "sub"]);
    expect(await call("view", { path: join(folder, "none.txt") })).toBe(
      `Path ${folder}/none.txt does not exist. Please provide a valid path.`,
    );
    expect(asked[0]).toMatchObject({ kind: "read", toolCallId: "call-1", path: join(folder, "a.txt"), intention: expect.any(String) });
  });

  test("create and edit write files, and their permission requests contain the change", async () => {
    const { folder, asked, call } = await workspace();
    const path = join(folder, "new.txt");
    expect(await call("create", { path, file_text: "abc" })).toBe(`Created file ${path} with 3 characters`);
    expect(await call("edit", { path, old_str: "abc", new_str: "abd" })).toBe(`File ${path} updated with changes.`);
    expect(readFileSync(path, "utf8")).toBe("abd");
    expect(asked).toMatchObject([
      { kind: "write", toolCallId: "call-1", fileName: path, diff: expect.stringContaining("+abc"), newFileContents: "abc" },
      { kind: "write", toolCallId: "call-2", fileName: path, diff: expect.stringMatching(/-abc[\s\S]*\+abd/) },
    ]);
  });

  test("bash returns output and exit code, and its permission request says what would run", async () => {
    const { folder, asked, call } = await workspace({ "a.txt": "" });
    expect(await call("bash", { command: "echo out; echo err >&2; exit 3", description: "Prints" })).toMatch(
      /^(out\nerr|err\nout)\n<exited with exit code 3>$/,
    );
    expect(await call("bash", { command: "ls && pwd", description: "Lists" })).toBe(`a.txt\n${folder}\n<exited with exit code 0>`);
    expect(asked[1]).toMatchObject({
      kind: "shell",
      fullCommandText: "ls && pwd",
      intention: "Lists",
      commands: [
        { identifier: "ls", readOnly: true },
        { identifier: "pwd", readOnly: true },
      ],
      hasWriteFileRedirection: false,
    });
  });

  test("read_bash, list_bash and stop_bash find a background command by its id", async () => {
    const { call } = await workspace();
    const command = 'echo ready; read line; echo "got $line"; sleep 60';
    expect(await call("bash", { command, description: "Waits", shellId: "waiter", mode: "async" })).toContain("waiter");
    expect(await call("list_bash", {})).toContain("waiter");
    expect(await call("write_bash", { shellId: "waiter", input: "hello{enter}", delay: 1 })).toContain("got hello");
    expect(await call("stop_bash", { shellId: "waiter" })).toContain("waiter");
    expect(await call("read_bash", { shellId: "unknown", delay: 1 })).toContain("unknown");
  });

  test("grep and glob return paths relative to the working directory", async () => {
    const { asked, call, folder } = await workspace({ "a.txt": "one\ntwo\n", "sub/b.txt": "two\n", "sub/c.md": "two\n" });
    expect((await call("grep", { pattern: "two", output_mode: "content", "-n": true })).split("\n").sort()).toEqual([
      "./a.txt:2:two",
      "./sub/b.txt:1:two",
      "./sub/c.md:1:two",
    ]);
    expect((await call("grep", { pattern: "two", glob: "*.txt" })).split("\n").sort()).toEqual(["./a.txt", "./sub/b.txt"]);
    expect((await call("glob", { pattern: "**/*.txt" })).split("\n").sort()).toEqual(["./a.txt", "./sub/b.txt"]);
    expect(asked[0]).toMatchObject({ kind: "read", path: folder });
  });

  test("web_fetch returns the text of a page, with a permission request for its address", async () => {
    const { asked, call } = await workspace();
    const url = `http://127.0.0.1:${(pages.address() as AddressInfo).port}/page`;
    const text = await call("web_fetch", { url });
    expect(text).toContain("Hello");
    expect(text).toContain("A page.");
    expect(text).not.toContain("<p>");
    expect(asked).toMatchObject([{ kind: "url", url, intention: expect.any(String) }]);
  });

  test("a path outside the working directory needs permission to be read or written, in every notation", async () => {
    const { folder, call } = await workspace();
    mkdirSync(join(folder, "../outside"), { recursive: true });
    const text = await call("create", { path: join(folder, "../outside/x.txt"), file_text: "x" });
    expect(text).not.toContain("Created file");
    expect(() => readFileSync(join(folder, "../outside/x.txt"))).toThrow();
  });

  test("each built-in tool is listed with a schema, and a tool with overridesBuiltInTool replaces it", async () => {
    const { session } = await workspace();
    const { tools } = await session.rpc.tools.getCurrentMetadata();
    for (const name of ["bash", "read_bash", "stop_bash", "list_bash", "view", "create", "edit", "grep", "glob", "web_fetch"]) {
      expect(tools.find((tool: Sdk) => tool.name === name)).toMatchObject({
        input_schema: { type: "object" },
        description: expect.any(String),
      });
    }
    const view = { description: "Mine.", overridesBuiltInTool: true, skipPermission: true, handler: () => "mine" };
    const mine = await runtime.session({ tools: [runtime.sdk.defineTool("view", view)] });
    runtime.says(calling("view"), "So.");
    await mine.sendAndWait("View");
    expect(runtime.lastToolResult).toBe("mine");
  });
});
