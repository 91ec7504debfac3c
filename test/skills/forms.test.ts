import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { asUserSkills, fixture, type Kit, openKit, skillMd, tempFolder } from "./kit.ts";

const openFixture = (name: string): Promise<Kit> => openKit([fixture(name)], { watch: false });
const names = (kit: Kit): string[] => kit.session.tools.map((tool) => tool.name);
const errors = (kit: Kit) => kit.host.diagnostics.filter(({ severity }) => severity === "error");

afterEach(() => void vi.unstubAllEnvs());

describe("a tool JSON", () => {
  test("a tool JSON uses the module beside it, which loads on the first call, with defaults applied", async () => {
    const kit = await openFixture("handler-sibling");
    expect(errors(kit)).toEqual([]);
    expect(kit.session.tools).toMatchObject([{ name: "lint", title: "Lint", annotations: { readOnlyHint: true }, timeout: 5000 }]);
    expect(await kit.says("lint", { path: "src" })).toBe("linted src");
    expect(await kit.says("lint", { path: "src", fix: true })).toBe("linted src and fixed it");
    expect((await kit.call("lint", {})).textResultForLlm).toContain("path");
  });

  test("a tool JSON names a module and one of its exports, or uses the export with the tool's name", async () => {
    const kit = await openFixture("handler-module");
    expect(errors(kit)).toEqual([]);
    expect(await kit.says("add", { a: 2, b: 3 })).toBe("5");
    expect(await kit.says("subtract", { a: 2, b: 3 })).toBe("-1");
  });

  test("a call reports that the module lacks the export", async () => {
    const root = tempFolder({
      "SKILL.md": skillMd("s"),
      "tools/say.json": JSON.stringify({ name: "say", description: "Says.", handler: { module: "./_say.ts", export: "nothing" } }),
      "tools/_say.ts": "export const something = () => 1;\n",
    });
    const kit = await openKit([root], { watch: false });
    const result = await kit.call("say");
    expect(result).toMatchObject({ resultType: "failure", error: expect.stringContaining('"nothing"') });
    expect(result.textResultForLlm).not.toContain(root);
  });

  test("a tool JSON accepts execute(input, context) as handler, with its own form of results", async () => {
    const place = realpathSync.native(tmpdir());
    const kit = await openKit([fixture("handler-execute")], { watch: false, workingDirectory: place });
    expect(await kit.says("whereabouts")).toBe(`in\n${place}`);
  });

  test("a tool JSON runs a program with an argument vector and without secrets of the host", async () => {
    vi.stubEnv("SKILLHOST_TEST_SECRET", "hidden");
    const workingDirectory = realpathSync.native(tempFolder());
    const kit = await openKit([fixture("handler-command")], { watch: false, workingDirectory });
    const text = '; rm -rf $HOME `id` "two words" --flag';
    const result = await kit.call("show", { text, input: "from stdin" });
    expect(result.resultType).toBe("success");
    expect(JSON.parse(result.textResultForLlm)).toEqual({
      args: ["--text", text],
      input: "from stdin",
      shown: `from ${fixture("handler-command")}`,
      cwd: workingDirectory,
    });
    expect(result.sessionLog).toContain("a word for the log");
    const failed = await kit.call("show", { text: "x", exit: 3 });
    expect(failed).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringContaining("exited with code 3") });
    expect(failed.textResultForLlm).not.toContain("a word for the log");
  });

  test("a tool JSON calls a service with encoded arguments in the URL and typed values in the body", async () => {
    const seen: { method?: string; url?: string; id?: unknown; body: string }[] = [];
    const origin = await serve(async (request) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const { method = "", url = "", headers } = request;
      seen.push({ method, url, id: headers["x-id"], body });
      return url.startsWith("/items/missing") ? [404, "There is no such item."] : [200, '{"found":true}'];
    });
    const directory = asUserSkills("handler-http");
    vi.stubEnv("SKILLHOST_TEST_SERVICE", origin);
    const kit = await openKit([directory], { watch: false });
    expect(errors(kit)).toEqual([]);
    expect(await kit.says("look-up", { id: "../admin?x=1#y", query: "a&b" })).toBe('{"found":true}');
    expect(await kit.says("store", { id: "7", tags: ["a", "b"] })).toBe('{"found":true}');
    expect(seen).toMatchObject([
      { method: "GET", url: "/items/..%2Fadmin%3Fx%3D1%23y?q=a%26b", id: "../admin?x=1#y" },
      { method: "POST", url: "/items", body: JSON.stringify({ id: "7", tags: ["a", "b"], kind: "item" }) },
    ]);
    const missing = await kit.call("look-up", { id: "missing" });
    expect(missing).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringContaining("404") });
    vi.stubEnv("SKILLHOST_TEST_SERVICE", "http://127.0.0.1:1");
    const unreachable = await kit.call("look-up", { id: "7" });
    expect(unreachable.resultType).toBe("failure");
    expect(unreachable.textResultForLlm).not.toMatch(/127\.0\.0\.1|ECONNREFUSED/);
  });

  test("a tool JSON without a handler is a client tool, whose calls wait for an answer", async () => {
    const kit = await openFixture("handler-none");
    expect(names(kit)).toEqual(["approve"]);
    const asked = new Promise<string>((resolve) => {
      kit.session.on("external_tool.requested", (event) => resolve((event.data as { requestId: string }).requestId));
    });
    const answer = kit.call("approve", { what: "the plan" });
    kit.session.respondToTool(await asked, { result: "approved" });
    expect(await answer).toMatchObject({ resultType: "success", textResultForLlm: "approved" });
  });
});

describe("the list of tools in a manifest", () => {
  test("a manifest lists objects and files in its order, and no other module runs", async () => {
    const kit = await openFixture("tools-inline");
    expect(errors(kit)).toEqual([]);
    expect(kit.skill("tools-inline").tools).toEqual(["second", "first", "third"]);
    expect([await kit.says("first"), await kit.says("second")]).toEqual(["first", "second"]);
  });

  test("a manifest's patterns match in the order of names, and a pattern without matches is reported", async () => {
    const kit = await openFixture("tools-listed");
    expect(kit.skill("tools-listed").tools).toEqual(["x", "y", "b", "a"]);
    expect(kit.found("TOOL_PATTERN_EMPTY")).toMatchObject([{ severity: "warning", file: join(fixture("tools-listed"), "skill.json") }]);
  });

  test("an empty list of tools or prompts means none, although the folder has some", async () => {
    const kit = await openFixture("tools-none");
    expect(kit.skill("tools-none")).toMatchObject({ tools: [], prompts: [], state: "active" });
    expect(errors(kit)).toEqual([]);
  });
});

describe("a tool module", () => {
  test("a tool module exports a tool, a list, a factory function, named tools, or SCHEMA and execute", async () => {
    const kit = await openFixture("module-forms");
    expect(errors(kit)).toEqual([]);
    expect(names(kit).sort()).toEqual(
      ["bundled", "default-tool", "factory", "list-one", "list-two", "named-one", "named-two", "plain-js", "schema-execute"].sort(),
    );
    for (const name of ["default-tool", "list-one", "list-two", "named-one", "named-two", "plain-js"])
      expect(await kit.says(name)).toBe(name);
    expect(await kit.says("factory")).toBe("factory of module-forms, 1 open");
    expect(await kit.says("bundled")).toBe("bundled, 1 open");
    expect(await kit.says("schema-execute")).toBe("hello you\nfrom schema-execute somewhere");
    expect(await kit.call("schema-execute", { name: "nobody" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: "Nobody is there.",
    });
  });

  test("a CommonJS module supports the same forms of export", async () => {
    const kit = await openFixture("module-forms-commonjs");
    expect(errors(kit)).toEqual([]);
    expect(names(kit).sort()).toEqual(["cjs-factory", "cjs-list", "cjs-named", "cjs-schema", "cjs-whole"]);
    for (const name of ["cjs-list", "cjs-named", "cjs-schema", "cjs-whole"]) expect(await kit.says(name)).toBe(name);
    expect(await kit.says("cjs-factory")).toBe("cjs-factory of module-forms-commonjs");
  });

  test("a tool module finds packages in the skill's own node_modules, whose schemas validate the arguments", async () => {
    const root = tempFolder({
      "skills/s/SKILL.md": skillMd("s"),
      "skills/s/tools/age.ts": `import { defineTool } from "skillhost";
import { z } from "zod";
export default defineTool("age", {
  description: "Says an age.",
  parameters: z.object({ years: z.number().int().describe("Years."), unit: z.string().default("years") }),
  handler: ({ years, unit }) => \`\${years} \${unit}\`,
});
`,
    });
    mkdirSync(join(root, "skills/s/node_modules"));
    symlinkSync(fileURLToPath(new URL("../../node_modules/zod", import.meta.url)), join(root, "skills/s/node_modules/zod"), "dir");
    const kit = await openKit([join(root, "skills")], { watch: false });
    expect(errors(kit)).toEqual([]);
    expect(kit.session.tools[0]?.parameters).toMatchObject({ type: "object", required: ["years"] });
    expect(await kit.says("age", { years: 3 })).toBe("3 years");
    expect(await kit.call("age", { years: "x" })).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringContaining("years"),
    });
  });
});

async function serve(answer: (request: IncomingMessage) => Promise<[status: number, body: string]>): Promise<string> {
  const server = createServer((request, response) => {
    void answer(request).then(([status, body]) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
