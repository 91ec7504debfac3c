import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fitSchema, lossesOf, type SchemaLoss } from "../../src/models/fit-schema.ts";
import { type SchemaTarget, schemaTargets } from "../../src/models/schema-rules.ts";
import type { JsonSchema } from "../../src/tools/tool.ts";

// biome-ignore lint/suspicious/noExplicitAny: schemas are read at many depths
type Data = Record<string, any>;

function losses(found: readonly SchemaLoss[]): readonly string[] {
  return found.filter(({ weight }) => weight !== "none").map(({ path, what, weight }) => `${weight} ${[...path, what].join(".")}`);
}

/** The keywords of OpenAPI 3.0 that the `Schema` of the Gemini API has. */
const geminiFields = new Set(
  "type format title description nullable enum items properties required anyOf propertyOrdering minItems maxItems minimum maximum minLength maxLength minProperties maxProperties pattern default".split(
    " ",
  ),
);

/** The faults for which the Gemini API refuses a schema, found independently of the table of rules. */
function geminiFaults(schema: unknown, path = "$"): string[] {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return [`${path}: not a schema`];
  const own = schema as Data;
  const faults = Object.keys(own).flatMap((word) => (geminiFields.has(word) ? [] : [`${path}: unknown name ${word}`]));
  if (own["anyOf"] === undefined && typeof own["type"] !== "string") faults.push(`${path}: no type`);
  if (own["anyOf"] !== undefined && Object.keys(own).length > 1) faults.push(`${path}: fields beside anyOf`);
  if (own["type"] === "array" && own["items"] === undefined) faults.push(`${path}: no items`);
  for (const value of own["enum"] ?? []) if (typeof value !== "string" || value === "") faults.push(`${path}: enum`);
  for (const name of own["required"] ?? []) if (!Object.hasOwn(own["properties"] ?? {}, name)) faults.push(`${path}: required ${name}`);
  for (const [name, child] of Object.entries(own["properties"] ?? {})) faults.push(...geminiFaults(child, `${path}.${name}`));
  if (own["items"] !== undefined) faults.push(...geminiFaults(own["items"], `${path}[]`));
  for (const child of own["anyOf"] ?? []) faults.push(...geminiFaults(child, `${path}|`));
  return faults;
}

const event: JsonSchema = z.toJSONSchema(
  z.object({
    calendar: z.string().describe("Id of the calendar."),
    start: z.iso.datetime().describe("When it begins."),
    minutes: z.number().int().positive().max(1_440).default(60),
    status: z.enum(["confirmed", "tentative"]).optional(),
    place: z.string().nullable(),
    priority: z.union([z.literal(1), z.literal(2)]).optional(),
    guests: z.array(z.object({ email: z.email(), isOptional: z.boolean().optional() })).max(50),
    labels: z.record(z.string(), z.string()).optional(),
  }),
) as JsonSchema;

const tree: JsonSchema = {
  type: "object",
  properties: { root: { $ref: "#/$defs/node" } },
  required: ["root"],
  $defs: {
    node: {
      type: "object",
      properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/node" } } },
      required: ["name"],
    },
  },
};

/** As pydantic 1 writes an optional recursive field. */
const chain: JsonSchema = {
  type: "object",
  properties: { next: { allOf: [{ $ref: "#" }], description: "The next one." }, value: { type: "string" } },
};

describe("schemas of real tools", () => {
  test("an ordinary schema is sent as it is, the same object every time", () => {
    const plain = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    for (const target of ["openai", "anthropic", "gemini"] as const) {
      const { schema, losses } = fitSchema(plain, target);
      expect([schema === plain, losses]).toEqual([true, []]);
      expect(fitSchema(plain, target)).toBe(fitSchema(plain, target));
    }
  });

  test("OpenAI and Anthropic get a schema of zod whole", () => {
    for (const target of ["openai", "anthropic"] as const) expect(losses(fitSchema(event, target).losses)).toEqual([]);
    expect(fitSchema(event, "openai").schema).toEqual(event);
  });

  test("Gemini gets a schema of zod in its own words, and the descriptions keep what it cannot say", () => {
    const { schema, losses: found } = fitSchema(event, "gemini");
    expect(geminiFaults(schema)).toEqual([]);
    const { properties } = schema as Data;
    expect(properties["place"]).toEqual({ type: "string", nullable: true });
    expect(properties["minutes"].description).toContain("exclusiveMinimum: 0");
    expect(properties["guests"].items.properties.email.description).toContain("format: email");
    expect(properties["start"].format).toBe("date-time");
    expect(losses(found)).toContain("loss properties.labels.additionalProperties");
    expect(losses(found)).toContain("hint properties.minutes.exclusiveMinimum");
    expect(losses(found).filter((loss) => loss.startsWith("refused"))).toEqual([]);
  });

  test("with strict, optional properties are refused, and closed objects are made of open ones", () => {
    const { schema, losses: found } = fitSchema(event, "openai-strict");
    expect(losses(found)).toContain("refused properties.status.required");
    expect(losses(found)).not.toContain("refused properties.calendar.required");
    expect((schema as Data)["properties"].guests.items.additionalProperties).toBe(false);
    expect(losses(fitSchema(event, "anthropic-strict").losses).filter((loss) => loss.startsWith("refused"))).toEqual([]);
    expect(JSON.stringify(fitSchema(event, "anthropic-strict").schema)).not.toMatch(/"(?:maximum|maxItems|exclusiveMinimum)":/);
  });

  test("a union at the top becomes one object, with all properties, and what is lost is reported", () => {
    const either: JsonSchema = {
      anyOf: [{ properties: { id: { type: "number" } }, required: ["id"] }, { $ref: "#/$defs/named" }],
      $defs: { named: { type: "object", properties: { name: { type: "string" } } } },
    };
    for (const target of ["openai", "anthropic", "gemini"] as const) {
      const { schema, losses: found } = fitSchema(either, target);
      expect(schema).toMatchObject({ type: "object", properties: { id: { type: "number" }, name: { type: "string" } } });
      expect(schema).not.toHaveProperty("anyOf");
      expect(losses(found)).toContain("loss anyOf");
    }
  });

  test("allOf at the top keeps what its parts require, and a reference at the top is followed", () => {
    const both: JsonSchema = {
      $ref: "#/definitions/All",
      definitions: {
        All: {
          allOf: [
            { properties: { a: { type: "string" } }, required: ["a"] },
            { properties: { b: {} }, required: ["b"] },
          ],
        },
      },
    };
    for (const target of ["openai", "anthropic"] as const)
      expect(fitSchema(both, target).schema).toMatchObject({
        type: "object",
        properties: { a: { type: "string" }, b: {} },
        required: ["a", "b"],
      });
  });

  test("a property whose name Anthropic refuses is left out, so that the other tools of the request work", () => {
    const odata: JsonSchema = {
      type: "object",
      properties: { $top: { type: "number" }, "drive-id": { type: "string" } },
      required: ["$top"],
    };
    const { schema, losses: found } = fitSchema(odata, "anthropic");
    expect(schema).toEqual({ type: "object", properties: { "drive-id": { type: "string" } }, required: [] });
    expect(losses(found)).toEqual(['loss properties."$top"']);
    expect(losses(fitSchema(odata, "openai").losses)).toEqual([]);
    expect(losses(fitSchema(odata, "gemini").losses)).toEqual(['refused properties."$top"', 'refused properties."drive-id"']);
  });

  test("arrays without items get some for the APIs that want them", () => {
    const list: JsonSchema = { type: "object", properties: { tags: { type: "array" } } };
    expect(fitSchema(list, "openai").schema).toMatchObject({ properties: { tags: { type: "array", items: {} } } });
    expect(fitSchema(list, "anthropic").schema).toBe(list);
    expect(geminiFaults(fitSchema(list, "gemini").schema)).toEqual([]);
  });

  test("keywords of older drafts are sent to Anthropic in those of the current one", () => {
    const old: JsonSchema = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { pair: { type: "array", items: [{ type: "string" }, { type: "number", minimum: 0, exclusiveMinimum: true }] } },
    };
    expect(fitSchema(old, "anthropic")).toEqual({
      schema: {
        type: "object",
        properties: { pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number", exclusiveMinimum: 0 }] } },
      },
      losses: [],
    });
  });

  test("Gemini gets unions, constants and lists of types in the words of OpenAPI", () => {
    const mixed: JsonSchema = {
      type: "object",
      properties: {
        kind: { const: "a" },
        either: { type: ["string", "number", "null"], description: "Which." },
        shape: { oneOf: [{ type: "string" }, { type: "object", properties: { x: { type: "number" } } }], description: "Its shape." },
        choice: { enum: [1, 2, 3] },
        empty: { type: "string", enum: ["", "a"] },
        anything: {},
        always: true,
        group: { type: "object", properties: { a: { type: "string" } }, required: ["a", "b"], anyOf: [{ required: ["a"] }] },
      },
      required: ["kind", "ghost"],
    };
    const { schema, losses: found } = fitSchema(mixed, "gemini");
    expect(geminiFaults(schema)).toEqual([]);
    expect(schema).toMatchObject({
      properties: {
        kind: { type: "string", enum: ["a"] },
        either: {
          anyOf: [
            { type: "string", nullable: true, description: "Which." },
            { type: "number", nullable: true, description: "Which." },
          ],
        },
        shape: { anyOf: [{ type: "string", description: "Its shape." }, { type: "object" }] },
        choice: { type: "number", description: "(One of: [1,2,3])" },
        empty: { enum: ["a"] },
        group: { type: "object", required: ["a"] },
      },
      required: ["kind"],
    });
    expect(losses(found)).toEqual(expect.arrayContaining(["loss properties.anything.type", "loss properties.group.anyOf"]));
  });

  test("names and descriptions of tools are compared, too", () => {
    const found = (name: string, target: SchemaTarget): readonly string[] => losses(lossesOf({ name }, target));
    expect([found("2fa", "gemini"), found("2fa", "openai"), found("get.it", "anthropic")]).toEqual([
      ["refused name"],
      [],
      ["refused name"],
    ]);
    expect(losses(lossesOf({ name: "long", description: "x".repeat(1_025) }, "openai"))).toEqual(["hint description"]);
  });
});

describe("hostile schemas", () => {
  const deep = (levels: number): JsonSchema => {
    let schema: Data = { type: "string" };
    for (let level = 0; level < levels; level++)
      schema = level % 2 === 0 ? { type: "object", properties: { in: schema } } : { type: "array", items: schema };
    return { type: "object", properties: { top: schema } };
  };
  const wide: JsonSchema = {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`p${index}`, { const: index }])),
  };
  const doubled: JsonSchema = {
    type: "object",
    properties: { a: { $ref: "#/$defs/l0" } },
    $defs: Object.fromEntries(
      Array.from({ length: 40 }, (_, level) => [
        `l${level}`,
        { type: "object", properties: { x: { $ref: `#/$defs/l${level + 1}` }, y: { $ref: `#/$defs/l${level + 1}` } } },
      ]),
    ),
  };
  const proto = JSON.parse('{"anyOf":[{"properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}]}') as JsonSchema;
  const odd = {
    type: "object",
    properties: { a: null, b: 1, c: [], d: { $ref: 7, enum: {}, anyOf: 3, type: 9, required: "x" } },
  } as JsonSchema;
  const loops: JsonSchema = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
  const unions: JsonSchema = { type: "object", properties: { a: { anyOf: [{ $ref: "#/properties/a" }, { type: "null" }] } } };

  const cases = { deep: deep(1_000), wide, doubled, tree, chain, proto, odd, loops, unions };

  test.each(schemaTargets.flatMap((target) => Object.keys(cases).map((name) => [target, name] as const)))(
    "for %s, the schema %s becomes one that can be sent, within bounds",
    (target, name) => {
      const { schema, losses: found } = fitSchema(cases[name as keyof typeof cases], target);
      const text = JSON.stringify(schema);
      expect(schema).toMatchObject({ type: "object", properties: expect.any(Object) });
      expect([text.length < 5_000_000, found.length <= 1_000]).toEqual([true, true]);
      if (target === "gemini" && name !== "odd") expect(geminiFaults(schema).slice(0, 5)).toEqual([]);
    },
  );

  test("a schema that refers to itself has one level for Gemini, is refused with Anthropic's strict, and is kept elsewhere", () => {
    const { schema, losses: found } = fitSchema(tree, "gemini");
    expect((schema as Data)["properties"].root.properties.children.items).toEqual({ type: "object" });
    expect(losses(found)).toEqual(["loss properties.root.properties.children.items.$ref"]);
    expect(losses(fitSchema(tree, "anthropic-strict").losses)).toContain("refused $ref");
    expect(fitSchema(tree, "openai").schema).toBe(tree);
    expect((fitSchema(chain, "gemini").schema as Data)["properties"].next).toMatchObject({ description: "The next one." });
    expect(JSON.stringify(fitSchema(chain, "gemini").schema).length).toBeLessThan(500);
  });

  test("the limits of OpenAI's strict mode are counted", () => {
    expect(losses(fitSchema(wide, "openai-strict").losses)).toContain("refused properties.p0.required");
    const many = { ...wide, required: Object.keys((wide as Data)["properties"]) };
    expect(losses(fitSchema(many, "openai-strict").losses)).toEqual(["refused properties"]);
    const values: JsonSchema = {
      type: "object",
      properties: { v: { type: "string", enum: Array.from({ length: 1_001 }, (_, index) => `v${index}`) } },
      required: ["v"],
    };
    expect(losses(fitSchema(values, "openai-strict").losses)).toEqual(["refused values of enumerations"]);
    expect(losses(fitSchema(deep(22), "openai-strict").losses)).toContain("refused levels of objects");
  });

  test("names of properties are data, not prototypes", () => {
    const { schema } = fitSchema(proto, "openai");
    expect(Object.keys((schema as Data)["properties"])).toEqual(["__proto__", "constructor"]);
  });
});
