import { describe, expect, test } from "vitest";
import { type RemoteResourceOptions, remoteResource, remoteResourceTemplate } from "../../../src/mcp/views/remote-resource.ts";
import type { OfferContext } from "../../../src/tools/prompt.ts";
import { FakeServer, type Json, localSpec, never } from "../fake-servers.ts";

const context: OfferContext = { signal: never, services: {}, ask: () => Promise.reject(new Error("no user is available")) };

function optionsFor(answer: Json = {}, more: Partial<RemoteResourceOptions> = {}): RemoteResourceOptions & { server: FakeServer } {
  const server = new FakeServer(localSpec("docs"));
  server.answer = () => answer;
  return { serverName: "docs", generation: "1", hasSubscriptions: true, hasCompletions: true, ...more, server };
}

const definition = {
  uri: "notes://2026/a",
  name: "a",
  title: "A",
  description: "A note",
  mimeType: "text/plain",
  size: 12,
  annotations: { audience: ["user"], lastModified: "2026-01-01" },
  icons: [],
};

describe("a resource of a server", () => {
  test("has what is known of it, and its origin", () => {
    const resource = remoteResource(definition, optionsFor())!;
    const { icons: _, ...kept } = definition;
    expect(resource.definition).toEqual(kept);
    expect(resource.origin).toEqual({ kind: "mcp", source: "docs", nativeName: "notes://2026/a" });
  });

  test("has another revision when it was modified", () => {
    const revision = remoteResource(definition, optionsFor())!.revision;
    expect(remoteResource({ ...definition }, optionsFor())!.revision).toBe(revision);
    expect(remoteResource({ ...definition, annotations: { lastModified: "2026-02-01" } }, optionsFor())!.revision).not.toBe(revision);
  });

  test("gives what the server has, text and files", async () => {
    const contents = [
      { uri: "notes://2026/a", mimeType: "text/plain", text: "A", _meta: { a: 1 } },
      { uri: "notes://2026/a.png", blob: "AAAA" },
    ];
    const options = optionsFor({ contents });
    expect(await remoteResource(definition, options)!.read("notes://2026/a", context)).toEqual(contents);
    expect(options.server.received[0]).toMatchObject({ method: "resources/read", params: { uri: "notes://2026/a" } });
  });

  test.each([
    ["nothing", {}],
    ["contents without an address", { contents: [{ text: "a" }] }],
    ["text and blob at once", { contents: [{ uri: "a:b", text: "a", blob: "AAAA" }] }],
    ["neither", { contents: [{ uri: "a:b" }] }],
  ])("rejects an answer with %s", async (_, answer) => {
    await expect(remoteResource(definition, optionsFor(answer))!.read(definition.uri, context)).rejects.toMatchObject({
      code: "MCP_ANSWER",
    });
  });

  test("can be watched where the server announces changes", async () => {
    const options = optionsFor();
    let changes = 0;
    const watch = (await remoteResource(definition, options)!.watch!(definition.uri, () => changes++)) as AsyncDisposable;
    options.server.watched.get(definition.uri)!();
    expect(changes).toBe(1);
    await watch[Symbol.asyncDispose]();
    expect(options.server.watched.size).toBe(0);
    expect(remoteResource(definition, optionsFor({}, { hasSubscriptions: false }))!.watch).toBeUndefined();
  });

  test("without an address is ignored, and fields of wrong types are dropped", () => {
    expect(remoteResource({ name: "a" }, optionsFor())).toBeUndefined();
    expect(remoteResource({ uri: "a:b", name: 7, size: -1, annotations: [] }, optionsFor())!.definition).toEqual({
      uri: "a:b",
      name: "a:b",
    });
  });
});

describe("a template of a server", () => {
  const template = { uriTemplate: "notes://{year}/{name}", name: "notes", description: "Notes" };

  test("recognizes its own addresses, and reads them", async () => {
    const options = optionsFor({ contents: [{ uri: "notes://2026/a%20b", text: "A" }] });
    const made = remoteResourceTemplate(template, options)!;
    expect(made.definition).toEqual(template);
    expect(made.match("notes://2026/a%20b")).toEqual({ year: "2026", name: "a b" });
    expect(made.match("other://2026/a")).toBeUndefined();
    expect(await made.read("notes://2026/a%20b", context)).toEqual([{ uri: "notes://2026/a%20b", text: "A" }]);
  });

  test("suggests values of its variables", async () => {
    const options = optionsFor({ completion: { values: ["2025", "2026"] } });
    const made = remoteResourceTemplate(template, options)!;
    expect((await made.complete!("year", "20", { arguments: {}, signal: never })).values).toEqual(["2025", "2026"]);
    expect(options.server.received[0]!.params).toEqual({
      ref: { type: "ref/resource", uri: "notes://{year}/{name}" },
      argument: { name: "year", value: "20" },
    });
    expect(remoteResourceTemplate(template, optionsFor({}, { hasCompletions: false }))!.complete).toBeUndefined();
  });

  test("that cannot be read as one is refused with a code", () => {
    expect(() => remoteResourceTemplate({ uriTemplate: "notes://{year" }, optionsFor())).toThrow(
      expect.objectContaining({ code: "URI_TEMPLATE" }),
    );
    expect(remoteResourceTemplate({ name: "a" }, optionsFor())).toBeUndefined();
  });
});
