import { Type } from "@sinclair/typebox";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as zodMini from "zod/mini";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { type CreateToolOptions, createTool, renameTool, wrapExecute } from "../../src/tools/create/create-tool.ts";
import { defineTool, type ToolLike } from "../../src/tools/define/define-tool.ts";
import type { ToolContext, ToolOrigin } from "../../src/tools/tool.ts";

const origin: ToolOrigin = { kind: "skill", source: "weather", nativeName: "forecast", file: "/skills/weather/tools/forecast.ts" };
const object = { type: "object", properties: { city: { type: "string" } } };

const context: ToolContext = {
  invocation: {
    sessionId: "s",
    toolCallId: "c",
    toolName: "forecast",
    arguments: {},
    signal: new AbortController().signal,
    workingDirectory: "/",
    services: {},
  },
  ask: () => Promise.reject(new Error("no client")),
  callTool: () => Promise.reject(new Error("no tools")),
  progress: () => undefined,
  fileChanged: () => undefined,
  background: () => undefined,
};

function createReporting(
  source: ToolLike,
  options: CreateToolOptions = {},
): { tool: ReturnType<typeof createTool>; diagnostics: Diagnostic[] } {
  const diagnostics: Diagnostic[] = [];
  return { tool: createTool(source, origin, { ...options, onDiagnostic: (diagnostic) => diagnostics.push(diagnostic) }), diagnostics };
}

describe("the definition of a tool", () => {
  test("a tool's definition is a frozen copy that later changes of its source do not affect", () => {
    const metadata = { list: [{ a: 1 }] };
    const parameters = structuredClone(object);
    const { definition } = createTool({ name: "forecast", parameters, metadata }, origin);
    metadata.list[0]!.a = 2;
    parameters.properties.city.type = "number";
    expect(definition).toEqual({ name: "forecast", parameters: object, metadata: { list: [{ a: 1 }] } });
    expect(() => Object.assign(definition.parameters?.["properties"] as object, { x: 1 })).toThrow(TypeError);
    expect(Object.isFrozen(definition)).toBe(true);
  });

  test("a tool's definition has exactly the given fields", () => {
    const all = {
      name: "forecast",
      title: "Forecast",
      description: "Says what the weather will be.",
      parameters: object,
      outputSchema: { type: "object" },
      annotations: { readOnlyHint: true },
      overridesBuiltInTool: false,
      skipPermission: true,
      defer: "never",
      isTerminal: true,
      metadata: { a: null },
      timeout: 500,
    } as const;
    const { tool, diagnostics } = createReporting({ ...all, handler: () => 1 });
    expect(tool.definition).toEqual(all);
    expect(diagnostics).toEqual([]);
    expect(Object.keys(createTool({ name: "now", title: undefined, handler: undefined }, origin).definition)).toEqual(["name"]);
  });

  test("a TypeBox schema is taken as the JSON Schema that it is", () => {
    const { definition } = createTool(defineTool("forecast", { parameters: Type.Object({ city: Type.String() }) }), origin);
    expect(definition.parameters).toEqual({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
  });

  test("what a library cannot express as JSON Schema stays open and is reported", async () => {
    const { tool, diagnostics } = createReporting({ name: "forecast", description: "d", parameters: z.object({ day: z.coerce.date() }) });
    expect(tool.definition.parameters).toEqual({ type: "object", properties: { day: {} }, required: ["day"] });
    expect(diagnostics).toMatchObject([{ severity: "warning", code: "SCHEMA_PARTIAL" }]);
    expect(await tool.validate({ day: "2026-11-02T00:00:00Z" })).toEqual({ ok: true, value: { day: new Date("2026-11-02T00:00:00Z") } });
  });
});

describe("unusable options of a tool are omitted with a diagnostic:", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = { again: cyclic };
  const big = Array.from({ length: 50 }).reduce<unknown>((inner) => [inner, inner], "x");

  test.each<[string, Record<string, unknown>, RegExp]>([
    ["a title that is not a string", { title: 7 }, /title must be a string/],
    ["a flag that is a string", { skipPermission: "true" }, /skipPermission must be true or false/],
    ["an unknown deferral", { defer: "always" }, /defer must be "auto" or "never"/],
    ["a timeout of zero", { timeout: 0 }, /timeout must be a positive number of milliseconds/],
    ["an endless timeout", { timeout: Number.POSITIVE_INFINITY }, /timeout must be/],
    ["annotations that are a list", { annotations: [] }, /annotations must be an object/],
    ["a function in metadata", { metadata: { a: { run: () => 1 } } }, /metadata \(a\.run\) is a function, which JSON does not support/],
    ["a BigInt in metadata", { metadata: { a: [1n] } }, /metadata \(a\.0\) is a BigInt/],
    ["a map in metadata", { metadata: { a: new Map() } }, /metadata \(a\) is a Map/],
    ["metadata that contains itself", { metadata: cyclic }, /metadata .* is nested too deeply, or contains itself/],
    ["metadata that multiplies itself", { metadata: { big } }, /metadata .* is too large/],
    [
      "a getter in metadata that throws",
      {
        metadata: {
          get a() {
            throw new Error("secret");
          },
        },
      },
      /metadata \(a\) cannot be read/,
    ],
    ["an output schema that is a string", { outputSchema: "text" }, /outputSchema must be a schema/],
  ])("%s", (_, fields, message) => {
    const { tool, diagnostics } = createReporting({ name: "forecast", description: "d", ...fields });
    expect(tool.definition).toEqual({ name: "forecast", description: "d" });
    expect(diagnostics).toEqual([
      { severity: "warning", code: "TOOL_FIELD_INVALID", message: expect.stringMatching(message), source: "weather", file: origin.file },
    ]);
    expect(diagnostics[0]?.message).not.toContain("secret");
  });
});

describe("options that a tool requires throw TOOL_INVALID:", () => {
  const cyclic: Record<string, unknown> = { type: "object" };
  cyclic["not"] = cyclic;

  test.each<[string, unknown, RegExp]>([
    ["nothing at all", null, /A tool must be an object with a name/],
    ["an illegal name", { name: "my.tool" }, /Name it "my_tool"/],
    ["no name", {}, /this one is not a string \(undefined\)/],
    [
      "a name whose getter throws",
      {
        get name() {
          throw new Error("x");
        },
      },
      /name cannot be read/,
    ],
    ["a handler that is not a function", { name: "a", handler: "run" }, /"a": handler must be a function, not a string/],
    ["a permission that is not a function", { name: "a", permission: true }, /"a": permission must be a function/],
    [
      "a handler whose getter throws",
      {
        name: "a",
        get handler() {
          throw new Error("x");
        },
      },
      /"a": handler cannot be read/,
    ],
    ["parameters that are a string", { name: "a", parameters: "x" }, /parameters must be a schema, not a string/],
    ["parameters that describe a list", { name: "a", parameters: { type: "array" } }, /type "array", but it must be "object"/],
    [
      "a function in parameters",
      { name: "a", parameters: { type: "object", properties: { x: { default: () => 1 } } } },
      /parameters\.properties\.x\.default is a function/,
    ],
    ["parameters that contain themselves", { name: "a", parameters: cyclic }, /parameters\.not\..* nested too deeply, or contains itself/],
    ["parameters of a library for something else than an object", { name: "a", parameters: z.string() }, /type "string"/],
    [
      "a Valibot schema without its JSON form",
      { name: "a", parameters: v.object({ a: v.string() }) },
      /\(valibot\) cannot be converted to JSON Schema.*toStandardJsonSchema/,
    ],
    [
      "a schema of a library that offers no JSON form",
      { name: "a", parameters: zodMini.object({ a: zodMini.string() }) },
      /\(zod\) cannot be converted to JSON Schema.*Use Zod 4/,
    ],
    [
      "a conversion that throws",
      {
        name: "a",
        parameters: {
          toJSONSchema() {
            throw new Error("no bigints");
          },
        },
      },
      /cannot be converted to JSON Schema: no bigints/,
    ],
    [
      "a proxy as parameters that throws",
      {
        name: "a",
        parameters: new Proxy(
          {},
          {
            has() {
              throw new Error("x");
            },
          },
        ),
      },
      /"a": parameters cannot be read/,
    ],
  ])("%s", (_, source, message) => {
    expect(() => createTool(source as ToolLike, origin)).toThrow(
      expect.objectContaining({ name: "HostError", code: "TOOL_INVALID", message: expect.stringMatching(message) }),
    );
  });
});

describe("diagnostics of tools", () => {
  test("a diagnostic about a missing description names the tool, its skill and its file", () => {
    expect(createReporting({ name: "forecast", description: " " }).diagnostics).toEqual([
      {
        severity: "warning",
        code: "TOOL_DESCRIPTION_MISSING",
        message: expect.stringContaining('"forecast"'),
        source: "weather",
        file: origin.file,
      },
    ]);
  });

  test("invalid schemas are reported before the first call unless that check is disabled", () => {
    const source = {
      name: "forecast",
      description: "d",
      outputSchema: { type: "strin" },
    };
    const { diagnostics } = createReporting(source);
    expect(diagnostics.map(({ code, message }) => `${code} ${message}`)).toEqual([
      expect.stringMatching(/^SCHEMA_INVALID Tool "forecast": outputSchema\.type /),
    ]);
    const faulty = { ...source, parameters: { type: "object", required: "city" } };
    expect(() => createReporting(faulty)).toThrow(/^Tool "forecast": parameters\.required must be an array.* is not available\.$/);
    expect(createReporting(faulty, { checkSchemas: false }).diagnostics).toEqual([]);
    expect(createReporting(source, { checkSchemas: false }).diagnostics).toEqual([]);
  });

  test("a schema that cannot be compiled is reported on the first call", () => {
    const parameters = { type: "object", properties: { a: { $ref: "other.json" } } };
    const { tool, diagnostics } = createReporting({ name: "forecast", description: "d", parameters }, { checkSchemas: false });
    expect(diagnostics).toEqual([]);
    expect(tool.validate({})).toMatchObject({ ok: false });
    expect(diagnostics).toMatchObject([{ severity: "error", code: "SCHEMA_REF_UNRESOLVED", source: "weather" }]);
  });
});

describe("a call of a tool", () => {
  test("the handler gets the arguments, the invocation and the context", () => {
    const tool = createTool({ name: "forecast", handler: (...all: unknown[]) => all }, origin);
    const args = { city: "Oslo" };
    expect(tool.execute(args, context)).toEqual([args, context.invocation, context]);
  });

  test("the handler is called with its own object as this", () => {
    const source = {
      name: "forecast",
      greeting: "hello",
      handler(this: { greeting: string }) {
        return this.greeting;
      },
    };
    expect(createTool(source, origin).execute({}, context)).toBe("hello");
  });

  test("a call returns and throws exactly what the handler does", async () => {
    const error = new Error("no");
    const throwing = createTool(
      {
        name: "a",
        handler: () => {
          throw error;
        },
      },
      origin,
    );
    expect(() => throwing.execute({}, context)).toThrow(error);
    const rejecting = createTool({ name: "a", handler: () => Promise.reject(error) }, origin);
    await expect(rejecting.execute({}, context)).rejects.toBe(error);
  });

  test("calling a client tool directly is refused", () => {
    const tool = createTool({ name: "forecast" }, origin);
    expect(tool.hasHandler).toBe(false);
    expect(() => tool.execute({}, context)).toThrow(expect.objectContaining({ code: "TOOL_WITHOUT_HANDLER" }));
  });

  test("the handler is read only once, when the tool is created", () => {
    let reads = 0;
    const source = {
      name: "a",
      get handler() {
        reads++;
        return () => "x";
      },
    };
    const tool = createTool(source, origin);
    tool.execute({}, context);
    tool.execute({}, context);
    expect(reads).toBe(1);
  });

  test("a tool without parameters accepts absent arguments as none", () => {
    const tool = createTool({ name: "now" }, origin);
    expect(tool.validate(undefined)).toEqual({ ok: true, value: {} });
    expect(tool.validate({ a: 1 })).toEqual({ ok: true, value: { a: 1 } });
  });

  test("a tool can describe what a call is about to do", () => {
    const tool = createTool(
      {
        name: "a",
        permission: (args: { path: string }, { invocation }) => ({ kind: "write", fileName: args.path, by: invocation.toolName }),
      },
      origin,
    );
    expect(tool.permission?.({ path: "x" }, context)).toEqual({ kind: "write", fileName: "x", by: "forecast" });
    expect("permission" in createTool({ name: "a" }, origin)).toBe(false);
  });

  test("the schema library validates arguments, asynchronously if the schema is asynchronous", async () => {
    const parameters = z.object({ city: z.string().refine((city) => Promise.resolve(city !== "Atlantis"), "is not a place") });
    const tool = createTool({ name: "forecast", parameters }, origin);
    expect(await tool.validate({ city: "Oslo" })).toEqual({ ok: true, value: { city: "Oslo" } });
    expect(await tool.validate({ city: "Atlantis" })).toEqual({ ok: false, issues: [{ path: "city", message: "is not a place" }] });
  });

  test("a schema that throws refuses the call without showing the error", async () => {
    const throwing = z.object({
      city: z.string().refine(() => {
        throw new Error("secret");
      }),
    });
    const rejecting = {
      "~standard": { version: 1, vendor: "own", validate: () => Promise.reject(new Error("secret")) },
      toJSONSchema: () => object,
    };
    const senseless = { "~standard": { version: 1, vendor: "own", validate: () => "yes" }, toJSONSchema: () => object };
    for (const parameters of [throwing, rejecting, senseless]) {
      const validated = await createTool({ name: "forecast", parameters }, origin).validate({ city: "Oslo" });
      expect(validated).toEqual({
        ok: false,
        issues: [{ path: "", message: "cannot be checked: validating this tool's arguments failed" }],
      });
    }
  });

  test("issues have readable paths, and at most eight are listed", async () => {
    const parameters = z.object({ range: z.object({ "two words": z.array(z.number()) }) });
    const tool = createTool({ name: "forecast", parameters }, origin);
    const validated = await tool.validate({ range: { "two words": [1, "2", ...new Array(20).fill("x")] } });
    expect(validated.ok ? [] : validated.issues.map((issue) => issue.path).slice(0, 2)).toEqual([
      'range["two words"][1]',
      'range["two words"][2]',
    ]);
    expect(validated.ok ? [] : validated.issues).toHaveLength(8);
  });

  test("the patterns of an untrusted tool are matched in bounded time", () => {
    const parameters = { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } };
    const tool = createTool({ name: "a", parameters }, { ...origin, kind: "mcp" });
    expect(tool.validate({ text: `${"a".repeat(5_000)}!` })).toMatchObject({ ok: false });
  });
});

describe("the signature and revision of a tool", () => {
  const handler = (): string => "x";
  const source = { name: "forecast", description: "d", parameters: object, handler };

  test("signature and revision are equal for the same tool created twice, and the tool is frozen", () => {
    const [a, b] = [createTool({ ...source }, origin), createTool({ ...source }, origin)];
    expect(a.signature).toBe(b.signature);
    expect(a.revision).toBe(b.revision);
    expect(Object.isFrozen(a) && Object.isFrozen(a.origin)).toBe(true);
  });

  test("a new generation, another handler and a field outside the contract change only the revision", () => {
    const first = createTool(source, origin, { generation: 1 });
    const others = [
      createTool(source, origin, { generation: 2 }),
      createTool({ ...source, handler: () => "y" }, origin),
      createTool({ ...source, permission: () => null }, origin),
      createTool({ ...source, timeout: 1 }, origin, { generation: 1 }),
    ];
    expect(new Set([first, ...others].map((tool) => tool.revision)).size).toBe(5);
    expect(new Set([first, ...others].map((tool) => tool.signature)).size).toBe(1);
  });
});

describe("a tool derived from another tool", () => {
  const tool = createTool(
    { name: "forecast", description: "d", parameters: object, handler: () => "x", permission: () => ({ kind: "read" }) },
    origin,
  );

  test("a derived tool can have another name and is otherwise the same", () => {
    const renamed = renameTool(tool, "weather-forecast");
    expect(renamed.definition).toEqual({ ...tool.definition, name: "weather-forecast" });
    expect(renamed.origin).toBe(tool.origin);
    expect(renamed.validate({ city: 1 })).toMatchObject({ ok: false });
    expect(renamed.execute({}, context)).toBe("x");
    expect(renamed.permission?.({}, context)).toEqual({ kind: "read" });
    expect([renamed.signature, renamed.revision]).not.toEqual([tool.signature, tool.revision]);
    expect(renamed.revision).toBe(renameTool(tool, "weather-forecast").revision);
    expect(() => renameTool(tool, "a.b")).toThrow(expect.objectContaining({ code: "TOOL_INVALID" }));
  });

  test("a derived tool can wrap the execution without changing contract and revision", () => {
    let calls = 0;
    const counted = wrapExecute(tool, (execute) => (args, api) => {
      calls++;
      return execute(args, api);
    });
    expect(counted.execute({}, context)).toBe("x");
    expect(calls).toBe(1);
    expect([counted.signature, counted.revision]).toEqual([tool.signature, tool.revision]);
  });
});

describe("null for an optional argument", () => {
  const parameters = {
    type: "object",
    required: ["city", "code"],
    properties: {
      city: { type: "string" },
      code: { type: ["string", "null"] },
      units: { type: "string", default: "celsius" },
      filter: { type: "object", properties: { tag: { type: "string" }, min: { type: ["integer", "null"] } } },
      list: { type: "array", items: { type: "object", properties: { n: { type: "integer" } } } },
    },
    additionalProperties: false,
  } as const;
  const validate = (args: unknown) => createTool({ name: "forecast", parameters }, origin).validate(args);

  test("null counts as absent at any depth, and the default applies", () => {
    const args = Object.freeze({ city: "Oslo", code: null, units: null, filter: { tag: null, min: null }, list: [{ n: null }] });
    expect(validate(args)).toEqual({
      ok: true,
      value: { city: "Oslo", code: null, units: "celsius", filter: { min: null }, list: [{}] },
    });
    expect(args.filter).toEqual({ tag: null, min: null });
  });

  test("null is refused for required arguments and beside other issues", () => {
    expect(validate({ city: null, code: null })).toMatchObject({ ok: false, issues: [{ path: "city" }] });
    expect(validate({ city: "Oslo", code: 7, units: null })).toMatchObject({ ok: false, issues: [{ path: "code" }, { path: "units" }] });
    expect(validate({ city: "Oslo", code: null, list: [null] })).toMatchObject({ ok: false, issues: [{ path: "list[0]" }] });
  });

  test("null is passed to a library schema that accepts it and omitted for one that does not", async () => {
    const schema = z.object({
      city: z.string(),
      day: z.string().optional(),
      note: z.string().nullable().optional(),
      n: z.number().default(3),
    });
    const tool = createTool({ name: "forecast", parameters: schema as never }, origin);
    expect(await tool.validate({ city: "Oslo", day: null, note: null, n: null })).toEqual({
      ok: true,
      value: { city: "Oslo", note: null, n: 3 },
    });
    expect(await tool.validate({ city: null })).toMatchObject({ ok: false, issues: [{ path: "city" }] });
  });
});
