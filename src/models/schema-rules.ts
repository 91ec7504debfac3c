/** The APIs whose limits on the schemas of tools are known. `-strict`: with `strict: true`, so that the API enforces the schema. */
export const schemaTargets = ["openai", "openai-strict", "anthropic", "anthropic-strict", "gemini"] as const;

export type SchemaTarget = (typeof schemaTargets)[number];

/**
 * `none`: no call changes. `hint`: the model reads it in another form. `loss`: the model knows less than the schema says. `refused`: no
 * change keeps the meaning, so the API refuses the tool, and with it the request.
 */
export type LossWeight = "none" | "hint" | "loss" | "refused";

interface Dropped {
  readonly weight: LossWeight;
  readonly effect: string;
}

/** What an API takes. A keyword without an entry in `dropped`, and in `kept` if that is there, is not sent. */
export interface SchemaRules {
  readonly title: string;
  readonly name: RegExp;
  /** A longer description of a tool is refused by some endpoints. */
  readonly maxDescription?: number;
  /** Names of properties. `dropped`: one other name makes the API refuse the request. */
  readonly propertyName?: { readonly rule: RegExp; readonly where: "top" | "everywhere"; readonly isDropped: boolean };
  /** Keywords that the top level must not have. */
  readonly refusedOnTop: ReadonlySet<string>;
  readonly kept?: ReadonlySet<string>;
  readonly dropped: Readonly<Record<string, Dropped>>;
  /** By type: the formats that are accepted. */
  readonly formats?: Readonly<Record<string, ReadonlySet<string>>>;
  readonly references: "kept" | "acyclic" | "inlined";
  /** `type` is one name, and every schema has one; enumerations hold texts only; a union stands alone. */
  readonly isOpenApi?: boolean;
  /** An array says what its items are. */
  readonly needsItems?: boolean;
  /** Schemas are read as draft 2020-12, whatever `$schema` names. */
  readonly isCurrentDraft?: boolean;
  /** Objects take no other properties, and name all theirs as required. */
  readonly isClosed?: { readonly allRequired: boolean };
  /** An array may require at most one item. */
  readonly maxMinItems?: number;
  readonly limits?: {
    readonly properties: number;
    readonly depth: number;
    readonly enumValues: number;
    /** Of names of properties and definitions, values of enumerations and constants together. */
    readonly characters: number;
  };
}

const annotations = ["$schema", "$id", "$anchor", "$comment", "title", "examples", "deprecated", "readOnly", "writeOnly"];

const unseen: Dropped = { weight: "none", effect: "The model does not see it, which changes no call." };
const unenforced: Dropped = { weight: "loss", effect: "The model does not see this limit, and calls beyond it fail." };
const unsaid: Dropped = { weight: "loss", effect: "The model does not see this condition, and calls that break it fail." };
export const noted: Dropped = { weight: "hint", effect: "The model reads it in the description instead." };

function all(names: readonly string[], dropped: Dropped): Readonly<Record<string, Dropped>> {
  return Object.fromEntries(names.map((name) => [name, dropped]));
}

/** Keywords of single values, which fit into a description. */
export const notable: ReadonlySet<string> = new Set([
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format"],
  ...["minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "const"],
]);

const conditions = ["not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"];
const objectLimits = ["patternProperties", "propertyNames", "unevaluatedProperties"];
const arrayLimits = ["contains", "minContains", "maxContains", "unevaluatedItems", "additionalItems"];

const formats = new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]);
const legalName = /^[a-zA-Z0-9_-]{1,64}$/;

const unions = ["oneOf", "anyOf", "allOf"];

// Checked in November 2026. OpenAI: guides "Function calling" and "Structured outputs" (supported schemas), and the texts of its
// refusals ("schema must have type 'object' and not have …", "array schema missing items").
const openai: SchemaRules = {
  title: "OpenAI",
  name: legalName,
  maxDescription: 1_024,
  refusedOnTop: new Set([...unions, "enum", "const", "not"]),
  dropped: {},
  references: "kept",
  needsItems: true,
};

// Anthropic: "Tool use" and "Structured outputs" (JSON Schema limitations), and the texts of its refusals ("input_schema does not
// support oneOf, allOf, or anyOf at the top level", "Property keys should match pattern", "It must match JSON Schema draft 2020-12").
const anthropic: SchemaRules = {
  title: "Anthropic",
  name: legalName,
  propertyName: { rule: /^[a-zA-Z0-9_.-]{1,64}$/, where: "top", isDropped: true },
  refusedOnTop: new Set([...unions, "enum", "const", "not"]),
  dropped: {},
  references: "kept",
  isCurrentDraft: true,
};

export const schemaRules: Readonly<Record<SchemaTarget, SchemaRules>> = {
  openai,
  "openai-strict": {
    ...openai,
    title: "OpenAI (strict)",
    dropped: {
      ...all(annotations.slice(1, 3), unseen),
      ...all(["minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties", "default"], noted),
      ...all([...objectLimits, ...arrayLimits, "prefixItems"], unenforced),
      ...all(["oneOf", "allOf", ...conditions], unsaid),
    },
    formats: { string: formats },
    isClosed: { allRequired: true },
    limits: { properties: 5_000, depth: 10, enumValues: 1_000, characters: 120_000 },
  },
  anthropic,
  "anthropic-strict": {
    ...anthropic,
    title: "Anthropic (strict)",
    dropped: {
      ...all(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"], noted),
      ...all(["maxItems", "uniqueItems", "minProperties", "maxProperties"], noted),
      ...all([...objectLimits, ...arrayLimits, "prefixItems"], unenforced),
      ...all(["oneOf", ...conditions], unsaid),
    },
    formats: { string: new Set([...formats, "uri"]) },
    references: "acyclic",
    isClosed: { allRequired: false },
    maxMinItems: 1,
  },
  // Google: `FunctionDeclaration` and `Schema` of the Gemini API, whose OpenAI-compatible endpoint converts to them. Refusals name an
  // unknown keyword ("Cannot find field"), a missing type or missing items, and a required property that is not defined.
  gemini: {
    title: "Gemini",
    name: /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/,
    propertyName: { rule: /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/, where: "everywhere", isDropped: false },
    refusedOnTop: new Set([...unions, "enum", "const", "not"]),
    kept: new Set([
      ...["type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf", "propertyOrdering"],
      ...["minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "minProperties", "maxProperties", "pattern", "default"],
    ]),
    dropped: {
      ...all([...annotations, "$defs", "definitions", "example"], unseen),
      ...all(["additionalProperties"], { weight: "none", effect: "The model does not see whether other properties are allowed." }),
      ...all(["exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "const"], noted),
      ...all([...objectLimits, ...arrayLimits, "prefixItems"], unenforced),
      ...all(["oneOf", "allOf", ...conditions], unsaid),
    },
    formats: {
      string: new Set(["enum", "date-time"]),
      number: new Set(["float", "double"]),
      integer: new Set(["int32", "int64"]),
    },
    references: "inlined",
    isOpenApi: true,
    needsItems: true,
  },
};

/** What happens to a keyword. Undefined: it is sent. */
export function droppedBy({ kept, dropped }: SchemaRules, keyword: string): Dropped | undefined {
  if (Object.hasOwn(dropped, keyword)) return dropped[keyword];
  return kept === undefined || kept.has(keyword) ? undefined : unseen;
}
