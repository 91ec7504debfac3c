import { describe, expect, test } from "vitest";
import { createListedResource, createResource, createResourceTemplate } from "../../src/tools/create/create-resource.ts";
import { defineResource, isDefinedResource, type ResourceOptions } from "../../src/tools/define/define-resource.ts";
import type { OfferContext } from "../../src/tools/prompt.ts";
import { mediaTypeOf } from "../../src/tools/resource.ts";

const context: OfferContext = {
  signal: new AbortController().signal,
  services: {},
  ask: () => Promise.reject(new Error("No client is attached.")),
};
const place = { origin: { kind: "skill", source: "s" }, generation: "1" } as const;

function resourceOf(uri: string, options: ResourceOptions) {
  return createResource(defineResource(uri, options), place);
}

function templateOf(uri: string, options: ResourceOptions) {
  return createResourceTemplate(defineResource(uri, options), place);
}

describe("a resource made with defineResource", () => {
  test("a resource is described by its definition and its URI", () => {
    const about = { title: "Today", description: "What was noted today.", annotations: { audience: ["user"], priority: 0.5 }, size: 12 };
    expect(resourceOf("notes://today.md", { ...about, read: () => "" }).definition).toEqual({
      uri: "notes://today.md",
      name: "today.md",
      mimeType: "text/markdown",
      ...about,
    });
    expect(resourceOf("notes:/a/b/", { name: "b2", mimeType: "x/y", read: () => "" }).definition).toEqual({
      uri: "notes:/a/b/",
      name: "b2",
      mimeType: "x/y",
    });
  });

  const uri = "notes://today";
  test.each<[what: string, reply: unknown, contents: object[]]>([
    ["text", "Hi", [{ uri, mimeType: "text/plain", text: "Hi" }]],
    ["no text", "", [{ uri, mimeType: "text/plain", text: "" }]],
    ["bytes", new Uint8Array([1, 2]), [{ uri, mimeType: "application/octet-stream", blob: "AQI=" }]],
    ["a part of a buffer", new Uint8Array([0, 1, 2, 3]).subarray(1, 3), [{ uri, mimeType: "application/octet-stream", blob: "AQI=" }]],
    ["contents", { mimeType: "a/b", text: "Hi", _meta: { x: 1 } }, [{ uri, mimeType: "a/b", text: "Hi", _meta: { x: 1 } }]],
    ["base64", { blob: "AQI", mimeType: "image/png" }, [{ uri, mimeType: "image/png", blob: "AQI=" }]],
    [
      "several, with addresses of their own",
      ["a", { uri: "notes://b.json", text: "{}" }],
      [
        { uri, mimeType: "text/plain", text: "a" },
        { uri: "notes://b.json", mimeType: "application/json", text: "{}" },
      ],
    ],
    ["none", [], []],
  ])("a resource may be read as %s", async (_what, reply, contents) => {
    expect(await resourceOf(uri, { read: () => reply as string }).read(uri, context)).toEqual(contents);
  });

  test("contents have their own metadata or that of the resource", async () => {
    expect(await resourceOf("x://a.svg", { read: () => "<svg/>" }).read("x://a.svg", context)).toMatchObject([
      { mimeType: "image/svg+xml" },
    ]);
    expect(await resourceOf("x://a.svg", { mimeType: "x/y", read: () => "" }).read("x://a.svg", context)).toMatchObject([
      { mimeType: "x/y" },
    ]);
  });

  test.each<[what: string, reply: unknown, code: string]>([
    ["undefined", undefined, "RESOURCE_UNKNOWN"],
    ["null", null, "RESOURCE_UNKNOWN"],
    ["a number", 7, "RESOURCE_RESULT"],
    ["neither text nor blob", { uri: "x:y" }, "RESOURCE_RESULT"],
    ["a blob that is invalid", { blob: "!" }, "RESOURCE_RESULT"],
    ["text that is invalid", { text: 7 }, "RESOURCE_RESULT"],
    ["a list in a list", [["a"]], "RESOURCE_RESULT"],
  ])("a resource read as %s is an error", async (_what, reply, code) => {
    await expect(resourceOf(uri, { read: () => reply as string }).read(uri, context)).rejects.toMatchObject({ code });
  });

  test("a resource is watched until the watch is disposed of, whatever form of disposer the author returns", async () => {
    for (const kind of ["function", "disposable", "async disposable", "nothing"]) {
      const seen: string[] = [];
      let notify: () => void = () => {};
      const end = (): void => void seen.push("ended");
      const resource = resourceOf(uri, {
        read: () => "",
        watch: async (address, changed) => {
          seen.push(address);
          notify = changed;
          if (kind === "function") return end;
          if (kind === "disposable") return { [Symbol.dispose]: end };
          return kind === "nothing" ? undefined : { [Symbol.asyncDispose]: async () => end() };
        },
      });
      const watch = (await resource.watch?.(uri, () => void seen.push("changed"))) as AsyncDisposable;
      notify();
      await watch[Symbol.asyncDispose]();
      notify();
      expect(seen, kind).toEqual([uri, "changed", ...(kind === "nothing" ? [] : ["ended"])]);
    }
    expect(resourceOf(uri, { read: () => "" }).watch).toBeUndefined();
  });
});

describe("a resource template", () => {
  test("a template reads the values in the URI and rejects URIs that do not match", async () => {
    const template = templateOf("notes://{year}/{name}.md", {
      description: "Notes.",
      read: (uri, { year, name }) => `${uri} ${year} ${name}`,
    });
    expect(template.definition).toEqual({ uriTemplate: "notes://{year}/{name}.md", name: "{name}.md", description: "Notes." });
    expect(await template.read("notes://2026/a%20b.md", context)).toEqual([
      { uri: "notes://2026/a%20b.md", mimeType: "text/markdown", text: "notes://2026/a%20b.md 2026 a b" },
    ]);
    expect(template.match("notes://2026/x.md")).toEqual({ year: "2026", name: "x" });
    await expect(template.read("notes://2026", context)).rejects.toMatchObject({ code: "RESOURCE_UNKNOWN" });
  });

  test("a template suggests values for its variables", async () => {
    const template = templateOf("x://{unit}/{other}", { read: () => "", complete: { unit: ["celsius", "kelvin"] } });
    const completing = { arguments: {}, signal: context.signal };
    expect(await template.complete?.("unit", "k", completing)).toEqual({ values: ["kelvin"] });
    expect(await template.complete?.("other", "", completing)).toEqual({ values: [] });
    expect(templateOf("x://{a}", { read: () => "" }).complete).toBeUndefined();
  });

  test("a template creates resources from its listing if it can read them", async () => {
    const defined = defineResource("x://{a}", { mimeType: "x/y", read: (_uri, { a }) => a });
    const listed = createListedResource({ uri: "x://1", title: "One", size: 1 }, defined, place);
    expect(listed.definition).toEqual({ uri: "x://1", name: "1", title: "One", mimeType: "x/y", size: 1 });
    expect(await listed.read("x://1", context)).toEqual([{ uri: "x://1", mimeType: "x/y", text: "1" }]);
    for (const wrong of [null, "x://1", {}, { uri: "1" }, { uri: "y://1" }, { uri: "x://1", name: 1 }])
      expect(() => createListedResource(wrong as never, defined, place)).toThrow(TypeError);
  });
});

test.each<[what: string, define: () => unknown, message: RegExp]>([
  ["no scheme", () => defineResource("today", { read: () => "" }), /a URI with a scheme/],
  ["a space", () => defineResource("x://a b", { read: () => "" }), /a URI with a scheme/],
  ["no options", () => defineResource("x:y", undefined as never), /not undefined/],
  ["no read", () => defineResource("x:y", {} as never), /read must be a function/],
  ["a watch that is invalid", () => defineResource("x:y", { read: () => "", watch: 1 as never }), /watch must be a function/],
  ["a name that is invalid", () => defineResource("x:y", { read: () => "", name: 1 as never }), /name must be a string/],
  ["a size that is invalid", () => defineResource("x:y", { read: () => "", size: -1 }), /size must be a number of bytes/],
  ["a size of many", () => defineResource("x:{y}", { read: () => "", size: 1 }), /a template must not have a size/],
  ["a list of one", () => defineResource("x:y", { read: () => "", list: () => [] }), /only a template can have a list/],
  ["an unknown variable", () => defineResource("x:{y}", { read: () => "", complete: { z: [] } }), /no variable "z"/],
  ["a completion that is invalid", () => defineResource("x:{y}", { read: () => "", complete: { y: 1 as never } }), /complete\.y/],
  [
    "annotations that are invalid",
    () => defineResource("x:y", { read: () => "", annotations: [] as never }),
    /annotations must be an object/,
  ],
  ["annotations with code", () => defineResource("x:y", { read: () => "", annotations: { f: () => 1 } }), /annotations contain a value/],
])("a resource cannot be defined with %s", (_what, define, message) => {
  expect(define).toThrow(expect.objectContaining({ code: "RESOURCE_INVALID", message: expect.stringMatching(message) }));
});

test("an invalid template is refused with its own error code", () => {
  expect(() => defineResource("x:{y", { read: () => "" })).toThrow(expect.objectContaining({ code: "URI_TEMPLATE" }));
});

test("only the result of defineResource counts as a resource", () => {
  expect([
    isDefinedResource(defineResource("x:y", { read: () => "" })),
    isDefinedResource({ uri: "x:y" }),
    isDefinedResource(null),
  ]).toEqual([true, false, false]);
});

test.each([
  ["a/b.MD", "text/markdown"],
  ["x://y/z.json?a=b.png", "application/json"],
  [".png", undefined],
  ["Makefile", undefined],
  ["a.unknown", undefined],
  ["dir.md/file", undefined],
  ["a.ts", "text/typescript"],
])("the media type of %s is %s", (path, type) => {
  expect(mediaTypeOf(path)).toBe(type);
});
