import { isRecord } from "../base/json.ts";
import { childSchemas, SchemaIndex, type SchemaNode, schemaKeywords } from "../tools/schema/schema-structure.ts";
import type { JsonSchema, ToolDefinition } from "../tools/tool.ts";
import { droppedBy, type LossWeight, notable, noted, type SchemaRules, type SchemaTarget, schemaRules } from "./schema-rules.ts";

/** One difference between a tool's schema and what an API receives, or a reason why the API refuses it. */
export interface SchemaLoss {
  /** Keywords and names from the top: `["properties", "city"]`. */
  readonly path: readonly string[];
  /** What it concerns, such as a keyword. */
  readonly what: string;
  readonly weight: LossWeight;
  readonly effect: string;
}

export interface FittedSchema {
  /** The schema to send. The same object, if nothing changes. */
  readonly schema: JsonSchema;
  /** At most `maxLosses`. */
  readonly losses: readonly SchemaLoss[];
}

export const maxLosses = 1_000;

/** Our own bounds: schemas come from anyone, and inlined references multiply. */
const maxDepth = 100;
const maxSchemas = 20_000;

/**
 * Fits the parameters of a tool to the limits of an API. Never throws for a schema. Calls are still checked against the original one,
 * so a loss costs an attempt at worst.
 */
export function fitSchema(parameters: JsonSchema | undefined, target: SchemaTarget): FittedSchema {
  if (parameters === undefined) return { schema: { type: "object", properties: {} }, losses: [] };
  const known = fitted.get(parameters) ?? new Map<SchemaTarget, FittedSchema>();
  fitted.set(parameters, known);
  const found = known.get(target) ?? new SchemaFit(parameters, schemaRules[target]).fit();
  known.set(target, found);
  return found;
}

/** What an API does not take of a whole tool. */
export function lossesOf({ name, description = "", parameters }: ToolDefinition, target: SchemaTarget): readonly SchemaLoss[] {
  const { name: rule, maxDescription = Number.POSITIVE_INFINITY } = schemaRules[target];
  const losses: SchemaLoss[] = [];
  if (!rule.test(name))
    losses.push({ path: [], what: "name", weight: "refused", effect: `It must match ${rule.source}. Rename the tool.` });
  if (description.length > maxDescription) {
    const effect = `It has ${description.length} characters, and some endpoints of this API refuse more than ${maxDescription}.`;
    losses.push({ path: [], what: "description", weight: "hint", effect });
  }
  return [...losses, ...fitSchema(parameters, target).losses];
}

/** Each request has the tools of the one before. */
const fitted = new WeakMap<JsonSchema, Map<SchemaTarget, FittedSchema>>();

/** Where a schema is within its tool's parameters. */
interface At {
  readonly path: readonly string[];
  /** The targets of references that lead here. */
  readonly within: ReadonlySet<unknown>;
}

const union = "All its properties are sent as optional. The model does not see which belong together, and wrong combinations fail.";
const topEffects: Readonly<Record<string, string>> = {
  anyOf: union,
  oneOf: union,
  allOf: "Its properties are sent as those of one object. The model does not see its other conditions.",
};

class SchemaFit {
  readonly #root: JsonSchema;
  readonly #rules: SchemaRules;
  readonly #index: SchemaIndex;
  readonly #losses: SchemaLoss[] = [];
  readonly #seen = { schemas: 0, properties: 0, enumValues: 0, characters: 0, depth: 0 };

  constructor(root: JsonSchema, rules: SchemaRules) {
    this.#root = root;
    this.#rules = rules;
    this.#index = new SchemaIndex(root);
  }

  fit(): FittedSchema {
    const top = this.#fitTop(this.#root);
    const schema = this.#fit(top, { path: [], within: new Set([this.#root]) }) as JsonSchema;
    if (this.#rules.references === "acyclic" && hasCycle(this.#root, this.#index))
      this.#lose([], "$ref", "refused", "The schema refers to itself, which this API refuses. Write the levels out that are needed.");
    this.#checkLimits();
    return { schema, losses: this.#losses };
  }

  #lose(path: readonly string[], what: string, weight: LossWeight, effect: string): void {
    if (this.#losses.length < maxLosses) this.#losses.push({ path, what, weight, effect });
  }

  /** The top level as an object with properties. One schema of another kind makes APIs refuse all tools of a request. */
  #fitTop(root: JsonSchema): SchemaNode {
    const { refusedOnTop } = this.#rules;
    const followed = typeof root["$ref"] === "string" ? this.#followAll(root) : root;
    const own = typeof followed["$ref"] === "string" ? without(followed, "$ref") : followed;
    if (own !== followed) this.#lose([], "$ref", "loss", "It leads back to itself. The model sees an object without properties.");
    const refused = Object.keys(own).filter((word) => refusedOnTop.has(word));
    if (own["type"] === "object" && isRecord(own["properties"]) && refused.length === 0) return own;
    for (const word of refused) {
      this.#lose([], word, "loss", topEffects[word] ?? "The model does not see this condition, and calls that break it fail.");
    }
    const rest = Object.entries(own).filter(([word]) => !refusedOnTop.has(word));
    const choices = ["anyOf", "oneOf", "allOf"].flatMap((word) => this.#choicesOf(own, word));
    const merged = Object.assign(Object.create(null), ...choices.map(({ properties }) => properties)) as SchemaNode;
    const properties = { ...merged, ...(isRecord(own["properties"]) ? own["properties"] : {}) };
    const names = [...namesIn(own["required"]), ...choices.flatMap(({ isAlways, required }) => (isAlways ? required : []))];
    const required = names.length === 0 ? {} : { required: [...new Set(names)] };
    return { ...Object.fromEntries(rest), type: "object", properties, ...required };
  }

  #choicesOf(
    schema: SchemaNode,
    word: string,
  ): readonly { readonly properties: SchemaNode; readonly required: readonly string[]; readonly isAlways: boolean }[] {
    const choices = Array.isArray(schema[word]) ? (schema[word] as readonly unknown[]) : [];
    return choices.filter(isRecord).map((choice) => {
      const { properties, required } = this.#followAll(choice);
      return { properties: isRecord(properties) ? properties : {}, required: namesIn(required), isAlways: word === "allOf" };
    });
  }

  /** A schema with the targets of its references in their place, for a few steps. */
  #followAll(schema: SchemaNode): SchemaNode {
    let own = schema;
    for (let step = 0; step < 10 && typeof own["$ref"] === "string"; step++) {
      const { $ref, ...beside } = own;
      const target = this.#index.find($ref as string, schema);
      own = isRecord(target) ? { ...target, ...beside } : beside;
    }
    return own;
  }

  #fit(schema: unknown, at: At): unknown {
    if (schema === true && this.#rules.isOpenApi) return this.#typed({}, at);
    if (!isRecord(schema)) return schema;
    this.#seen.schemas += 1;
    if (at.path.length > maxDepth * 2 || this.#seen.schemas > maxSchemas) {
      this.#lose(at.path.slice(0, 20), "nesting", "loss", "The schema is too deep or too large here. The model does not see this part.");
      return this.#rules.isOpenApi ? { type: "object" } : {};
    }
    if (this.#rules.references === "inlined" && typeof schema["$ref"] === "string") return this.#inline(schema, at);
    const { references, isOpenApi, isCurrentDraft, isClosed, needsItems } = this.#rules;
    let own = isCurrentDraft ? modernised(schema) : schema;
    own = this.#withoutUnions(own, at);
    if (Array.isArray(own["allOf"]) && droppedBy(this.#rules, "allOf") !== undefined) return this.#fitMerged(own, own["allOf"], at);
    if (isOpenApi) own = this.#typed(own, at);
    // An optional reference is a union with null.
    if (references === "inlined" && typeof own["$ref"] === "string") return this.#inline(own, at);
    own = this.#withoutKeywords(own, at);
    own = this.#withoutFormat(own, at);
    if (needsItems && hasType(own, "array") && own["items"] === undefined && own["prefixItems"] === undefined)
      own = { ...own, items: isOpenApi ? { type: "string" } : {} };
    own = this.#withoutNames(own, at);
    own = this.#fitChildren(own, at);
    if (isClosed && (isRecord(own["properties"]) || hasType(own, "object"))) own = this.#closed(own, at, isClosed.allRequired);
    this.#count(own, at);
    return isOpenApi ? this.#standsAlone(own, at) : own;
  }

  #inline(schema: SchemaNode, at: At): unknown {
    const { $ref, ...beside } = schema;
    const target = this.#index.find($ref as string, schema);
    if (at.within.has(target)) {
      this.#lose(at.path, "$ref", "loss", "The schema refers to itself. The model sees one level, and beneath it any object.");
      const { description } = beside;
      return { type: "object", ...(typeof description === "string" && { description }) };
    }
    return this.#fit(isRecord(target) ? { ...target, ...beside } : beside, { ...at, within: new Set([...at.within, target]) });
  }

  /** Writes unions, constants and combinations in words that the API takes. */
  #withoutUnions(schema: SchemaNode, { path }: At): SchemaNode {
    const drops = (word: string): boolean => Object.hasOwn(schema, word) && droppedBy(this.#rules, word) !== undefined;
    let own = schema;
    if (drops("const") && typeof own["const"] === "string") own = { ...without(own, "const"), enum: [own["const"]] };
    if (drops("oneOf") && Array.isArray(own["oneOf"]) && own["anyOf"] === undefined) {
      own = { ...without(own, "oneOf"), anyOf: own["oneOf"] };
      this.#lose(path, "oneOf", "hint", "It is sent as anyOf, which allows more than one.");
    }
    return own;
  }

  /** The parts of `allOf` as one schema. */
  #fitMerged(schema: SchemaNode, parts: readonly unknown[], { path, within }: At): unknown {
    let own = without(schema, "allOf");
    const targets = new Set(within);
    for (const part of parts.slice(0, maxDepth).filter(isRecord)) {
      const target = typeof part["$ref"] === "string" ? this.#index.find(part["$ref"], part) : undefined;
      if (target !== undefined && targets.has(target)) {
        this.#lose(path, "$ref", "loss", "The schema refers to itself. The model sees one level, and beneath it any object.");
        continue;
      }
      if (target !== undefined) targets.add(target);
      const { allOf: Nested, ...next } = this.#followAll(part);
      if (Nested !== undefined) this.#lose(path, "allOf", "loss", "The model does not see the conditions within its parts.");
      const clash = Object.keys(next).some((word) => word in own && !["properties", "required", "type", "description"].includes(word));
      if (clash) this.#lose(path, "allOf", "loss", "Its parts have the same keyword. The model sees the first of them.");
      const properties =
        isRecord(own["properties"]) || isRecord(next["properties"])
          ? { properties: { ...(next["properties"] as object), ...(own["properties"] as object) } }
          : {};
      const names = [...new Set([...namesIn(own["required"]), ...namesIn(next["required"])])];
      own = { ...next, ...own, ...properties, ...(names.length > 0 && { required: names }) };
    }
    return this.#fit(own, { path, within: targets });
  }

  /** A union stands alone in OpenAPI as Vertex AI reads it: what is said beside it goes into its branches. */
  #standsAlone(schema: SchemaNode, { path }: At): SchemaNode {
    if (!Array.isArray(schema["anyOf"])) return schema;
    const { anyOf, type, nullable, description, ...beside } = schema;
    // Branches that only say which properties are required mean nothing alone.
    if (isRecord(beside["properties"]) || beside["items"] !== undefined) {
      this.#lose(path, "anyOf", "loss", "The model sees only the schema beside it, and calls that fit no branch fail.");
      return { ...without(schema, "anyOf"), type: type ?? guessType(beside) };
    }
    const shared = { ...(description !== undefined && { description }), ...(nullable !== undefined && { nullable }) };
    return { anyOf: (anyOf as readonly unknown[]).map((branch) => (isRecord(branch) ? { ...shared, ...branch } : branch)) };
  }

  /** A schema with one type, as OpenAPI 3.0 has it: `nullable` instead of null, a union instead of a list of types. */
  #typed(schema: SchemaNode, { path }: At): SchemaNode {
    let own = schema;
    const branches = Array.isArray(own["anyOf"]) ? (own["anyOf"] as readonly unknown[]) : undefined;
    if (branches?.some(isNull)) {
      const others = branches.filter((branch) => !isNull(branch));
      own = { ...own, nullable: true, anyOf: others };
      if (others.length === 1 && isRecord(others[0])) own = { ...others[0], ...without(own, "anyOf") };
      if (others.length === 0) own = without(own, "anyOf");
    }
    if (Array.isArray(own["type"])) {
      const names = (own["type"] as readonly unknown[]).filter((name) => name !== "null");
      if (names.length < own["type"].length) own = { ...own, nullable: true };
      if (names.length < 2 || own["anyOf"] !== undefined) own = { ...own, type: names[0] ?? "string" };
      else own = { ...without(own, "type"), anyOf: names.map((type) => ({ type })) };
    }
    if (own["type"] === "null") own = { ...own, type: "string", nullable: true };
    if (own["type"] === undefined && own["anyOf"] === undefined && own["$ref"] === undefined && own["oneOf"] === undefined) {
      const type = guessType(own);
      if (type === undefined) this.#lose(path, "type", "loss", "The schema allows any value, and the model is asked for a text.");
      own = { ...own, type: type ?? "string" };
    }
    if (Array.isArray(own["enum"])) own = this.#textsOnly(own, own["enum"], path);
    return own;
  }

  #textsOnly(schema: SchemaNode, values: readonly unknown[], path: readonly string[]): SchemaNode {
    const texts = values.filter((value) => typeof value === "string" && value !== "");
    const rest = values.filter((value) => value !== null && !texts.includes(value));
    if (rest.length === 0 && texts.length === values.length) return schema;
    const nullable = values.includes(null) ? { nullable: true } : {};
    if (rest.length === 0 && texts.length > 0) return { ...schema, ...nullable, enum: texts };
    this.#lose(path, "enum", "hint", "Only texts that are not empty can be listed. The model reads the values in the description instead.");
    const kept = texts.length > 0 && schema["type"] === "string" && rest.every((value) => value === "") ? { enum: texts } : {};
    return { ...withNote(without(schema, "enum"), `One of: ${JSON.stringify(values).slice(0, 500)}`), ...nullable, ...kept };
  }

  #withoutKeywords(schema: SchemaNode, { path }: At): SchemaNode {
    const { maxMinItems = Number.POSITIVE_INFINITY } = this.#rules;
    let own = schema;
    for (const keyword of Object.keys(schema)) {
      const isTooMany = keyword === "minItems" && Number(schema[keyword]) > maxMinItems;
      const dropped = isTooMany ? noted : droppedBy(this.#rules, keyword);
      if (dropped === undefined) continue;
      if (keyword === "additionalProperties" && schema[keyword] !== false && isRecord(schema[keyword]))
        this.#lose(path, keyword, "loss", "The model does not see that other properties are allowed, and what they hold.");
      else this.#lose(path, keyword, dropped.weight, dropped.effect);
      own = without(own, keyword);
      if (notable.has(keyword)) own = withNote(own, `${keyword}: ${JSON.stringify(schema[keyword]).slice(0, 200)}`);
    }
    return own;
  }

  #withoutFormat(schema: SchemaNode, { path }: At): SchemaNode {
    const { formats } = this.#rules;
    const { format, type } = schema;
    if (formats === undefined || typeof format !== "string") return schema;
    const accepted = formats[typeof type === "string" ? type : "string"];
    if (accepted?.has(format) === true) return schema;
    this.#lose(path, "format", "hint", "The model reads this format in the description instead.");
    return withNote(without(schema, "format"), `format: ${format.slice(0, 100)}`);
  }

  /** Without the properties that the API refuses by name, and without names of required properties that do not exist. */
  #withoutNames(schema: SchemaNode, { path }: At): SchemaNode {
    const { properties, required } = schema;
    if (!isRecord(properties)) return schema;
    const { propertyName, isOpenApi } = this.#rules;
    const isChecked = propertyName !== undefined && (propertyName.where === "everywhere" || path.length === 0);
    const bad = isChecked ? Object.keys(properties).filter((name) => !propertyName.rule.test(name)) : [];
    for (const name of bad) {
      const what = JSON.stringify(name.slice(0, 100));
      const rule = `Names of properties must match ${propertyName!.rule.source}.`;
      const effect = propertyName!.isDropped ? `${rule} The model does not see this one.` : rule;
      this.#lose([...path, "properties"], what, propertyName!.isDropped ? "loss" : "refused", effect);
    }
    const gone = new Set(propertyName?.isDropped ? bad : []);
    const names = namesIn(required);
    const kept = names.filter((name) => !gone.has(name) && (!isOpenApi || Object.hasOwn(properties, name)));
    if (gone.size === 0 && kept.length === names.length) return schema;
    const left = Object.fromEntries(Object.entries(properties).filter(([name]) => !gone.has(name)));
    return { ...schema, properties: left, required: kept };
  }

  #fitChildren(schema: SchemaNode, at: At): SchemaNode {
    let own = schema;
    for (const keyword of Object.keys(schema)) {
      const kind = schemaKeywords.get(keyword);
      const value = schema[keyword];
      if (kind === undefined || typeof value !== "object" || value === null) continue;
      const fitChild = (child: unknown, ...path: readonly string[]): unknown =>
        this.#fit(child, { ...at, path: [...at.path, keyword, ...path] });
      const next =
        kind === "schema" && !Array.isArray(value)
          ? fitChild(value)
          : Array.isArray(value)
            ? mapped(value, (child, index) => fitChild(child, String(index)))
            : mappedRecord(value as SchemaNode, (child, name) => fitChild(child, name));
      if (next !== value) own = { ...own, [keyword]: next };
    }
    return own;
  }

  #closed(schema: SchemaNode, { path }: At, allRequired: boolean): SchemaNode {
    const { additionalProperties, properties } = schema;
    if (additionalProperties !== false && additionalProperties !== undefined)
      this.#lose(path, "additionalProperties", "loss", "It is sent as false, so the model cannot pass other properties.");
    const required = new Set(namesIn(schema["required"]));
    const optional = allRequired && isRecord(properties) ? Object.keys(properties).filter((name) => !required.has(name)) : [];
    for (const name of optional)
      this.#lose(
        [...path, "properties", name],
        "required",
        "refused",
        'Every property must be required. Let it be null instead ("type": ["string", "null"]).',
      );
    return additionalProperties === false ? schema : { ...schema, additionalProperties: false };
  }

  #count(schema: SchemaNode, { path }: At): void {
    const names = isRecord(schema["properties"]) ? Object.keys(schema["properties"]) : [];
    const values = Array.isArray(schema["enum"]) ? (schema["enum"] as readonly unknown[]) : [];
    const texts = [...names, ...Object.keys(isRecord(schema["$defs"]) ? schema["$defs"] : {}), ...values, schema["const"]];
    this.#seen.properties += names.length;
    this.#seen.enumValues += values.length;
    this.#seen.characters += texts.reduce<number>((sum, text) => sum + (typeof text === "string" ? text.length : 0), 0);
    this.#seen.depth = Math.max(this.#seen.depth, path.filter((word) => word === "properties").length + (names.length > 0 ? 1 : 0));
  }

  #checkLimits(): void {
    const { limits } = this.#rules;
    if (limits === undefined) return;
    const over = (what: string, count: number, limit: number): void => {
      if (count > limit) this.#lose([], what, "refused", `The schema has ${count}, and this API takes at most ${limit}.`);
    };
    over("properties", this.#seen.properties, limits.properties);
    over("levels of objects", this.#seen.depth, limits.depth);
    over("values of enumerations", this.#seen.enumValues, limits.enumValues);
    over("characters in names and values", this.#seen.characters, limits.characters);
  }
}

function without(schema: SchemaNode, keyword: string): SchemaNode {
  const { [keyword]: _dropped, ...rest } = schema;
  return rest;
}

function withNote(schema: SchemaNode, note: string): SchemaNode {
  const { description } = schema;
  return { ...schema, description: typeof description === "string" && description !== "" ? `${description} (${note})` : `(${note})` };
}

function namesIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((name): name is string => typeof name === "string") : [];
}

function isNull(schema: unknown): boolean {
  return isRecord(schema) && (schema["type"] === "null" || schema["const"] === null);
}

function hasType({ type }: SchemaNode, wanted: string): boolean {
  return type === wanted || (Array.isArray(type) && type.includes(wanted));
}

function guessType(schema: SchemaNode): string | undefined {
  if (isRecord(schema["properties"]) || schema["additionalProperties"] !== undefined || schema["patternProperties"]) return "object";
  if (schema["items"] !== undefined || schema["prefixItems"] !== undefined) return "array";
  const samples = [...(Array.isArray(schema["enum"]) ? schema["enum"] : []), schema["const"]].filter((value) => value !== undefined);
  const types = new Set(samples.filter((value) => value !== null).map((value) => typeof value));
  const [type] = types;
  if (types.size === 1 && (type === "string" || type === "number" || type === "boolean")) return type;
  if (["minLength", "maxLength", "pattern", "format"].some((word) => schema[word] !== undefined)) return "string";
  return ["minimum", "maximum", "multipleOf"].some((word) => schema[word] !== undefined) ? "number" : undefined;
}

/** Keywords of older drafts in those of draft 2020-12, with the same meaning. */
function modernised(schema: SchemaNode): SchemaNode {
  let own = schema;
  if (typeof own["$schema"] === "string" && !own["$schema"].includes("2020-12")) own = without(own, "$schema");
  if (Array.isArray(own["items"])) {
    const { items, additionalItems, ...rest } = own;
    own = { ...rest, prefixItems: items, ...(additionalItems !== undefined && { items: additionalItems }) };
  }
  for (const [flag, limit] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (typeof own[flag] !== "boolean") continue;
    const { [flag]: isExclusive, [limit]: bound, ...rest } = own;
    own = bound === undefined ? rest : { ...rest, [isExclusive === true ? flag : limit]: bound };
  }
  return own;
}

/** The same array if nothing changes. */
function mapped(values: readonly unknown[], change: (value: unknown, index: number) => unknown): readonly unknown[] {
  const next = values.map(change);
  return next.some((value, index) => value !== values[index]) ? next : values;
}

function mappedRecord(values: SchemaNode, change: (value: unknown, name: string) => unknown): SchemaNode {
  const next = Object.entries(values).map(([name, value]) => [name, change(value, name)] as const);
  return next.some(([name, value]) => value !== values[name]) ? Object.fromEntries(next) : values;
}

/** Whether references of a schema lead back to a schema around them. */
function hasCycle(root: unknown, index: SchemaIndex): boolean {
  const done = new Set<unknown>();
  const open = new Set<unknown>();
  const waiting: { readonly schema: unknown; readonly isLeft: boolean }[] = [{ schema: root, isLeft: false }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { schema, isLeft } = next;
    if (isLeft) {
      open.delete(schema);
      done.add(schema);
      continue;
    }
    if (!isRecord(schema) || done.has(schema)) continue;
    if (open.has(schema)) return true;
    open.add(schema);
    waiting.push({ schema, isLeft: true });
    const target = typeof schema["$ref"] === "string" ? index.find(schema["$ref"], schema) : undefined;
    const children = [...childSchemas(schema)].map(([child]) => child);
    for (const child of [...children, target]) if (isRecord(child)) waiting.push({ schema: child, isLeft: false });
  }
  return false;
}
