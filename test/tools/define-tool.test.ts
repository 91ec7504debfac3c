import { Type } from "@sinclair/typebox";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { createTool } from "../../src/tools/create/create-tool.ts";
import { type DefinedTool, defineTool, isToolLike, type ToolLike } from "../../src/tools/define/define-tool.ts";
import type { ToolContext, ToolInvocation, ToolOrigin } from "../../src/tools/tool.ts";

const origin: ToolOrigin = { kind: "skill", source: "weather", nativeName: "forecast" };
type Units = "celsius" | "fahrenheit";

const invocation: ToolInvocation = {
  sessionId: "s",
  toolCallId: "c",
  toolName: "forecast",
  arguments: {},
  signal: new AbortController().signal,
  workingDirectory: "/",
  services: {},
};
const context = { invocation } as ToolContext;

/** The same tool in each library: `city` is required, `units` has a default. */
const libraries = {
  zod: defineTool("forecast", {
    parameters: z.object({ city: z.string(), units: z.enum(["celsius", "fahrenheit"]).default("celsius") }),
    handler: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; units: Units }>();
      return `${args.city} ${args.units}`;
    },
  }),
  valibot: defineTool("forecast", {
    parameters: toStandardJsonSchema(v.object({ city: v.string(), units: v.optional(v.picklist(["celsius", "fahrenheit"]), "celsius") })),
    handler: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; units: Units }>();
      return `${args.city} ${args.units}`;
    },
  }),
  arktype: defineTool("forecast", {
    parameters: type({ city: "string", units: "'celsius' | 'fahrenheit' = 'celsius'" }),
    handler: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; units: Units }>();
      return `${args.city} ${args.units}`;
    },
  }),
  typebox: defineTool("forecast", {
    parameters: Type.Object({
      city: Type.String(),
      units: Type.Optional(Type.Union([Type.Literal("celsius"), Type.Literal("fahrenheit")], { default: "celsius" })),
    }),
    handler: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; units?: Units }>();
      return `${args.city} ${args.units}`;
    },
  }),
};

describe.each(Object.entries(libraries))("a tool whose schema is of %s", (_, defined) => {
  const tool = createTool(defined, origin);

  test("the JSON Schema describes the input: arguments with a default are not required", () => {
    expect(tool.definition.parameters).toMatchObject({ type: "object", required: ["city"] });
    expect(Object.keys(tool.definition.parameters?.["properties"] as object)).toEqual(["city", "units"]);
    expect(JSON.stringify(tool.definition.parameters)).not.toContain("draft/2020-12");
  });

  test("the handler gets the arguments with defaults applied", async () => {
    const given = { city: "Oslo" };
    const validated = await tool.validate(given);
    expect(validated).toEqual({ ok: true, value: { city: "Oslo", units: "celsius" } });
    expect(given).toEqual({ city: "Oslo" });
    expect(tool.execute(validated.ok && validated.value, context)).toBe("Oslo celsius");
  });

  test("invalid arguments are refused with the name of the argument", async () => {
    for (const [args, path] of [
      [{}, "city"],
      [undefined, "city"],
      [{ city: 1 }, "city"],
      [{ city: "Oslo", units: "kelvin" }, "units"],
    ] as const) {
      const validated = await tool.validate(args);
      expect(validated.ok).toBe(false);
      expect(validated.ok ? [] : validated.issues.map((issue) => issue.path)).toEqual([path]);
      expect(validated.ok ? "" : validated.issues[0]?.message).toMatch(/\w/);
      expect(validated.ok ? "" : validated.issues[0]?.message).not.toMatch(/^city|^units/);
    }
  });

  test("a valid call is answered synchronously, without a promise", () => {
    expect(tool.validate({ city: "Oslo" })).not.toBeInstanceOf(Promise);
  });
});

describe("the types of a handler's arguments", () => {
  test("the argument types follow the schema's output, not its input", () => {
    defineTool("count", {
      parameters: z.object({ text: z.string().transform((text) => text.length) }),
      handler: ({ text }) => {
        expectTypeOf(text).toEqualTypeOf<number>();
      },
      permission: ({ text }) => ({ kind: "read", length: text }),
    });
  });

  test("a JSON Schema that is written in place types the arguments", () => {
    defineTool("book", {
      parameters: {
        type: "object",
        required: ["city", "nights", "guests", "kind"],
        properties: {
          city: { type: "string", minLength: 1 },
          nights: { type: "integer" },
          guests: {
            type: "array",
            items: { type: "object", required: ["name"], properties: { name: { type: "string" }, age: { type: "number" } } },
          },
          kind: { enum: ["room", "flat", 3] },
          pets: { type: "boolean", default: false },
          note: { type: ["string", "null"] },
          price: { anyOf: [{ type: "number" }, { const: "free" }] },
          more: { type: "object" },
          any: {},
          list: { type: "array" },
        },
      },
      handler: (args) => {
        expectTypeOf(args).toEqualTypeOf<{
          city: string;
          nights: number;
          guests: { name: string; age?: number }[];
          kind: "room" | "flat" | 3;
          pets: boolean;
          note?: string | null;
          price?: number | "free";
          more?: Record<string, unknown>;
          any?: unknown;
          list?: unknown[];
        }>();
      },
    });
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const;
    const handler = (args: { city: string }) => args.city;
    defineTool("here", { parameters, handler: ({ city }) => expectTypeOf(city).toEqualTypeOf<string>() });
    defineTool("here", { inputSchema: parameters, execute: ({ city }) => expectTypeOf(city).toEqualTypeOf<string>() });
    defineTool("here", { parameters, handler });
    const fromElsewhere: Record<string, unknown> = { ...parameters };
    defineTool("there", { parameters: fromElsewhere, handler: (args) => expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>() });
  });

  test("the argument types of a JSON Schema can be given by the caller, and are open without properties", () => {
    defineTool<{ query: string }>("search", {
      parameters: { type: "object", properties: { query: { type: "string" } } },
      handler: (args, called, api) => {
        expectTypeOf(args).toEqualTypeOf<{ query: string }>();
        expectTypeOf(called).toEqualTypeOf<ToolInvocation>();
        expectTypeOf(api).toEqualTypeOf<ToolContext>();
      },
    });
    defineTool("search", {
      parameters: { type: "object", properties: {} },
      handler: (args) => {
        expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>();
      },
    });
    defineTool("now", { handler: () => Date.now() });
    const all: DefinedTool[] = Object.values(libraries);
    expectTypeOf(all).toExtend<readonly ToolLike[]>();
  });

  test("a handler that expects other arguments than the schema's is a type error", () => {
    const parameters = z.object({ city: z.string() });
    // @ts-expect-error: the schema says that city is a string
    defineTool("forecast", { parameters, handler: (args: { city: number }) => args.city });
    // @ts-expect-error: not a valid value of defer
    defineTool("forecast", { parameters, defer: "always" });
  });

  test("any object with toJSONSchema is accepted as a schema", () => {
    const parameters = { _output: { city: "" }, toJSONSchema: () => ({ type: "object", required: ["city"] }) };
    const defined = defineTool("forecast", {
      parameters,
      handler: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string }>();
      },
    });
    const tool = createTool(defined, origin);
    expect(tool.validate({})).toEqual({ ok: false, issues: [{ path: "city", message: "is required" }] });
    expect(tool.validate({ city: "Oslo" })).toEqual({ ok: true, value: { city: "Oslo" } });
  });
});

describe("the result of defineTool", () => {
  test("defineTool returns a frozen value that spreads and prints as a plain object", () => {
    const defined = defineTool("now", { description: "Returns the time.", handler: () => 1 });
    expect(Object.isFrozen(defined)).toBe(true);
    expect(Object.keys(defined)).toEqual(["name", "description", "handler"]);
    expect(JSON.stringify(defined)).toBe('{"name":"now","description":"Returns the time."}');
    expect(isToolLike({ ...defined, name: "then" })).toBe(true);
  });

  test.each([
    ["a name that is not a string", () => defineTool(7 as never, {}), /name, not a number/],
    ["options that are not an object", () => defineTool("x", null as never), /options must be an object, not null/],
    [
      "a handler that is not a function",
      () => defineTool("x", { handler: "run" as never }),
      /"x": handler must be a function, not a string/,
    ],
    ["a permission that is not a function", () => defineTool("x", { permission: {} as never }), /permission must be a function/],
    ["parameters that are not a schema", () => defineTool("x", { parameters: [] as never }), /parameters must be a schema, not an array/],
    [
      "a getter that throws",
      () =>
        defineTool("x", {
          get title(): string {
            throw new Error("no");
          },
        }),
      /"x": title cannot be read/,
    ],
  ])("defineTool throws for %s", (_, define, message) => {
    expect(define).toThrow(expect.objectContaining({ name: "HostError", code: "TOOL_INVALID", message: expect.stringMatching(message) }));
  });
});

describe("isToolLike", () => {
  const hostile = new Proxy(
    {},
    {
      get: () => {
        throw new Error("no");
      },
    },
  );

  test.each<[unknown, boolean]>([
    [defineTool("declared", {}), true],
    [{ name: "x", handler: () => 1 }, true],
    [{ [Symbol.for("skillhost.tool")]: true, name: "from another copy of the package" }, true],
    [{ name: "x" }, false],
    [{ name: 1, handler: () => 1 }, false],
    [{ handler: () => 1 }, false],
    [() => 1, false],
    [null, false],
    ["tool", false],
    [hostile, false],
  ])("isToolLike distinguishes tools from other values (%#)", (value, expected) => {
    expect(isToolLike(value)).toBe(expected);
  });
});

describe("aliases of options in MCP and other libraries", () => {
  const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const;
  const execute = ({ city }: { city: string }): string => city;
  const forms: Readonly<Record<string, ToolLike>> = {
    "defineTool with a JSON Schema": defineTool<{ city: string }>("forecast", { description: "x", inputSchema: schema, execute }),
    "defineTool with a library's schema": defineTool("forecast", {
      description: "x",
      inputSchema: z.object({ city: z.string() }),
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string }>();
        return args.city;
      },
    }),
    "a plain object": { name: "forecast", description: "x", inputSchema: schema, execute: execute as never },
  };

  test.each(Object.entries(forms))("are those of the same tool: %s", async (_, form) => {
    expect(isToolLike(form)).toBe(true);
    const reported: string[] = [];
    const tool = createTool(form, origin, { onDiagnostic: ({ code }) => void reported.push(code) });
    expect([tool.hasHandler, reported]).toEqual([true, []]);
    expect(tool.definition.parameters).toMatchObject({ type: "object", required: ["city"] });
    expect(await tool.validate({})).toMatchObject({ ok: false });
    expect(tool.execute({ city: "Oslo" }, context)).toBe("Oslo");
    expect(tool.signature).toBe(
      createTool({ ...form, name: "forecast", parameters: tool.definition.parameters, handler: () => 1 }, origin).signature,
    );
  });

  test("an alias beside the usual option is ignored and reported", () => {
    const reported: string[] = [];
    const both = defineTool("forecast", {
      description: "x",
      parameters: schema,
      inputSchema: { type: "object" },
      handler: () => "handler",
      execute: () => "execute",
    } as never);
    const tool = createTool(both, origin, {
      onDiagnostic: ({ code, message }) => void reported.push(`${code} ${/"(\w+)" and/.exec(message)?.[1]}`),
    });
    expect(tool.execute({}, context)).toBe("handler");
    expect(tool.definition.parameters).toMatchObject({ required: ["city"] });
    expect(reported).toEqual(["TOOL_OPTION_TWICE inputSchema", "TOOL_OPTION_TWICE execute"]);
  });
});

test.each<[string, ToolLike]>([
  ["defineTool", defineTool("forecast", { description: "x", handler: () => 1, paramters: {}, Handler: 1 } as never)],
  ["a plain object", { name: "forecast", description: "x", handler: () => 1, paramters: {}, Handler: 1 } as never],
])("keys without an effect are reported as for JSON: %s", (_, form) => {
  const reported: string[] = [];
  createTool(form, origin, { onDiagnostic: ({ severity, code, message }) => void reported.push(`${severity} ${code} ${message}`) });
  expect(reported).toEqual([expect.stringMatching(/^info TOOL_UNKNOWN_KEYS .*"paramters", "Handler"/)]);
});
