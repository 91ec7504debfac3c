import fc from "fast-check";
import type { Tool } from "skillhost";
import { describe, expect, test } from "vitest";
import { findServer } from "../../../plugins/language-server/find-server.ts";
import { sanitizeSchema } from "../../../plugins/language-server/sanitize-schema.ts";
import { lintRegistration, nameForModel, selectTools, serverOwnedNames } from "../../../plugins/language-server/select-tools.ts";
import { limited } from "../../../plugins/language-server/tool-reply.ts";
import { faultOf, registerParams } from "../../doubles/language-server/wire-schemas.ts";

const schema = { type: "object", properties: { a: { type: "string", description: "d" } }, required: [] };

function tool(name: string, more: object = {}, kind: Tool["origin"]["kind"] = "skill"): Pick<Tool, "definition" | "origin"> {
  return { definition: { name, description: "d", ...more }, origin: { kind, source: "somewhere", nativeName: name } };
}

describe("a registration that the server would reject", () => {
  test.each([
    ["a schema without required", { inputSchema: { type: "object", properties: {} } }, "/inputSchema/required"],
    ["a schema without properties", { inputSchema: { type: "object", required: [] } }, "/inputSchema/properties"],
    ["a schema without a type", { inputSchema: { properties: {}, required: [] } }, "/inputSchema/type"],
    [
      "a property without a description",
      { inputSchema: { ...schema, properties: { a: { type: "string" } } } },
      "/inputSchema/properties/a/description",
    ],
    [
      "a property without a type",
      { inputSchema: { ...schema, properties: { "a/b": { description: "d" } } } },
      "/inputSchema/properties/a~1b/type",
    ],
    [
      "a property of two types",
      { inputSchema: { ...schema, properties: { a: { type: ["string", "null"], description: "d" } } } },
      "/inputSchema/properties/a/type",
    ],
    ["a property that is not an object", { inputSchema: { ...schema, properties: { a: true } } }, "/inputSchema/properties/a"],
    ["a required entry that is not a name", { inputSchema: { ...schema, required: [1] } }, "/inputSchema/required/0"],
    ["a tool without a description", { description: undefined }, "/description"],
    ["half a confirmation", { confirmationMessages: { title: "t" } }, "/confirmationMessages/message"],
    ["a schema that is a text", { inputSchema: "object" }, "/inputSchema"],
  ])("names the place of %s", (_what, more, pointer) => {
    const registration = { name: "tool", description: "d", ...more };
    expect(lintRegistration(registration).map((issue) => issue.pointer)).toEqual([pointer]);
    expect(faultOf(registerParams, { tools: [registration] })).toContain(`/tools/0${pointer}`);
  });

  test("has no issue if the server accepts it", () => {
    for (const inputSchema of [undefined, null, schema]) expect(lintRegistration({ name: "t", description: "d", inputSchema })).toEqual([]);
  });

  test("is repaired for any schema, without changing the schema itself", () => {
    const property = fc.oneof(
      fc.record(
        { type: fc.oneof(fc.string(), fc.array(fc.string()), fc.constant(3)), description: fc.oneof(fc.string(), fc.constant(0)) },
        { requiredKeys: [] },
      ),
      fc.record({ anyOf: fc.array(fc.record({ type: fc.constantFrom("null", "string") })), title: fc.string() }, { requiredKeys: [] }),
      fc.record(
        { enum: fc.array(fc.jsonValue()), const: fc.jsonValue(), $ref: fc.constantFrom("#/$defs/x", "#", "#/properties", "no", "#/%") },
        { requiredKeys: [] },
      ),
      fc.constant(true),
    );
    const names = fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "a/b", "~"));
    const given = fc.record(
      {
        type: fc.jsonValue(),
        properties: fc.oneof(
          fc.dictionary(names, property),
          fc.jsonValue().filter((value) => !isObject(value)),
        ),
        required: fc.jsonValue(),
        $defs: fc.constant({ x: { type: "number" } }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(given, (author) => {
        const before = JSON.stringify(author);
        const { schema: inputSchema, changes } = sanitizeSchema(author);
        expect(lintRegistration({ name: "t", description: "d", inputSchema })).toEqual([]);
        expect(faultOf(registerParams, { tools: [{ name: "t", description: "d", inputSchema }] })).toBeUndefined();
        expect(JSON.stringify(author)).toBe(before);
        if (changes.length === 0) expect(inputSchema).toEqual(author);
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    [{ type: ["null", "integer"] }, "integer"],
    [{ anyOf: [{ type: "null" }, { $ref: "#/$defs/kind" }] }, "string"],
    [{ oneOf: [{ enum: [1, 2] }, { type: "string" }] }, "number"],
    [{ const: null }, "null"],
    [{ properties: {} }, "object"],
    [{ items: {} }, "array"],
    [{ $ref: "#/$defs/loop" }, "string"],
    [true, "string"],
  ])("gives a property of %j one type", (property, type) => {
    const $defs = { kind: { enum: ["a", "b"] }, loop: { $ref: "#/$defs/loop" } };
    const { properties } = sanitizeSchema({ type: "object", properties: { a: property }, required: [], $defs }).schema;
    expect(properties).toMatchObject({ a: { type } });
  });
});

describe("the tools that the server receives", () => {
  test("include only the first of two with the same name for its model", () => {
    const long = "n".repeat(70);
    const { registrations, diagnostics } = selectTools([tool("my.tool"), tool("my_tool"), tool(`${long}1`), tool(`${long}2`)], true);
    expect([...registrations.keys()]).toEqual(["my.tool", `${long}1`]);
    expect(diagnostics.map(({ code, source }) => [code, source])).toEqual([
      ["LANGUAGE_SERVER_NAME_COLLISION", "my_tool"],
      ["LANGUAGE_SERVER_NAME_COLLISION", `${long}2`],
    ]);
    expect(diagnostics[0]?.message).toContain('"my.tool" and "my_tool" are both "my_tool"');
    expect(nameForModel(`${long}1`)).toHaveLength(64);
  });

  test("exclude one that has the name of a server's tool without overriding it", () => {
    const names = [...serverOwnedNames];
    expect(names).toHaveLength(16);
    expect(
      selectTools(
        names.map((name) => tool(name)),
        true,
      ).diagnostics.map(({ code }) => code),
    ).toEqual(names.map(() => "LANGUAGE_SERVER_NAME_TAKEN"));
    const meant = names.map((name) => tool(name, { overridesBuiltInTool: true }));
    expect([...selectTools(meant, true).registrations.keys()]).toEqual(names);
    expect(selectTools([tool("read_file", {}, "builtin")], true).registrations.size).toBe(1);
  });

  test("exclude only an invalid one, and report where it is wrong", () => {
    const bad = tool("bad", { parameters: { type: "object", properties: { a: false } } });
    const { registrations, diagnostics } = selectTools(
      [tool("good"), bad, tool("untold", { description: undefined, title: "Untold" })],
      true,
    );
    expect(Array.from(registrations.values(), ({ name, description }) => [name, description])).toEqual([
      ["good", "d"],
      ["untold", "Untold"],
    ]);
    expect(diagnostics.filter(({ severity }) => severity === "error")).toMatchObject([
      {
        code: "LANGUAGE_SERVER_TOOL_INVALID",
        source: "bad",
        message: expect.stringContaining("/inputSchema/properties/a must be an object"),
      },
    ]);
  });

  test("have the author's confirmation texts", () => {
    const confirmationMessages = { title: "Sure?", message: "Is that so?" };
    const { registrations } = selectTools([tool("ask", { metadata: { confirmationMessages } })], true);
    expect(registrations.get("ask")).toEqual({ name: "ask", description: "d", confirmationMessages });
  });
});

describe("the result that the model receives", () => {
  test("is never longer than the limit and never splits a character", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "🙂"), { maxLength: 300 }),
        fc.integer({ min: 100, max: 200 }),
        fc.boolean(),
        (parts, limit, keepsEnd) => {
          const text = parts.join("");
          const cut = limited(text, limit, keepsEnd);
          expect(cut.length).toBeLessThanOrEqual(limit);
          if (text.length <= limit) expect(cut).toBe(text);
          else expect(cut).toMatch(/\d+ more characters were left out/);
          expect(cut).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
        },
      ),
    );
  });

  test("is the end of outputs whose important part is last", () => {
    const cut = limited(`${"a".repeat(500)}${"z".repeat(500)}`, 300, true);
    expect(cut).toMatch(/^a+\n\[\d+ more characters were left out\. Ask for a smaller part\.\]\nz+$/);
    const missing = Number(/\d+/.exec(cut)?.[0]);
    expect(cut.replace(/\n\[.*\]\n/, "")).toHaveLength(1000 - missing);
  });
});

test("a missing server is reported with a remedy", () => {
  expect(() => findServer("./nothing", "/tmp")).toThrow(
    expect.objectContaining({ code: "LANGUAGE_SERVER_NOT_FOUND", message: expect.stringContaining("/tmp/nothing") }),
  );
});

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
