import { counted } from "../../base/text.ts";
import type { ArgumentIssue } from "../tool.ts";
import type { SchemaFault } from "./evaluation-run.ts";

export const maxIssues = 8;
const maxValuesListed = 20;
const maxPathLength = 120;

/** Describes what is wrong with the arguments: the first eight faults, each with the argument's path. */
export function issuesOf(faults: readonly SchemaFault[], args: unknown): readonly ArgumentIssue[] {
  const issues: ArgumentIssue[] = [];
  const known = new Set<string>();
  for (const error of faults) {
    if (issues.length === maxIssues) break;
    const issue = toIssue(error, args);
    const key = `${issue.path}\n${issue.message}`;
    if (!known.has(key)) issues.push(issue);
    known.add(key);
  }
  return issues;
}

/** `range.start`, `tags[2]`, `["two words"].x`: a path as text for messages. */
export function pathText(segments: readonly PropertyKey[], root: unknown): string {
  let text = "";
  let at: unknown = root;
  for (const segment of segments) {
    const key = String(segment);
    if (Array.isArray(at) || typeof segment === "number") text += `[${key}]`;
    else if (/^[\w$-]+$/.test(key)) text += text === "" ? key : `.${key}`;
    else text += `[${JSON.stringify(key)}]`;
    at = typeof at === "object" && at !== null && Object.hasOwn(at, key) ? (at as Record<string, unknown>)[key] : undefined;
  }
  return text.length > maxPathLength ? `${text.slice(0, maxPathLength)}…` : text;
}

function toIssue(error: SchemaFault, args: unknown): ArgumentIssue {
  const extra =
    error.params["missingProperty"] ??
    error.params["additionalProperty"] ??
    error.params["unevaluatedProperty"] ??
    error.params["propertyName"];
  const isOfMember = typeof extra === "string" && memberKeywords.has(error.keyword);
  return { path: pathText(isOfMember ? [...error.path, extra] : error.path, args), message: describe(error, args) };
}

const memberKeywords = new Set(["required", "additionalProperties", "unevaluatedProperties", "propertyNames"]);

function describe(error: SchemaFault, args: unknown): string {
  const { keyword, params } = error;
  const simple = sentences[keyword];
  if (simple !== undefined) return simple(params, error);
  if (keyword === "anyOf" || keyword === "oneOf") return describeUnion(error, args);
  return `breaks the rule "${keyword}" of the schema`;
}

type Params = Readonly<Record<string, unknown>>;

const sentences: Readonly<Record<string, (params: Params, error: SchemaFault) => string>> = {
  required: () => "is required",
  additionalProperties: (_, error) => `is not known${knownNames(error)}`,
  unevaluatedProperties: () => "is not known",
  "false schema": () => "is not allowed",
  type: (params, error) => `must be ${listOfTypes([params["type"]].flat())}${whatItIs(error)}`,
  enum: (params) => `must be ${listOfValues(params["allowedValues"])}`,
  const: (params) => `must be ${listOfValues([params["allowedValue"]])}`,
  minimum: (params) => `must be at least ${params["limit"]}`,
  maximum: (params) => `must be at most ${params["limit"]}`,
  exclusiveMinimum: (params) => `must be greater than ${params["limit"]}`,
  exclusiveMaximum: (params) => `must be less than ${params["limit"]}`,
  multipleOf: (params) => `must be a multiple of ${params["multipleOf"]}`,
  minLength: (params) => `must have at least ${counted(params["limit"] as number, "character")}`,
  maxLength: (params) => `must have at most ${counted(params["limit"] as number, "character")}`,
  minItems: (params) => `must have at least ${counted(params["limit"] as number, "item")}`,
  maxItems: (params) => `must have at most ${counted(params["limit"] as number, "item")}`,
  additionalItems: (params) => `must have at most ${counted(params["limit"] as number, "item")}`,
  items: (params) => `must have at most ${counted(params["limit"] as number, "item")}`,
  unevaluatedItems: (params) => `must have at most ${counted(params["len"] as number, "item")}`,
  minProperties: (params) => `must have at least ${counted(params["limit"] as number, "member")}`,
  maxProperties: (params) => `must have at most ${counted(params["limit"] as number, "member")}`,
  uniqueItems: (params) => `must not contain duplicate items (items ${params["j"]} and ${params["i"]} are the same)`,
  contains: (params) => `must contain at least ${counted(params["minContains"] as number, "item")} that match the schema`,
  pattern: (params) => `must match the pattern ${shown(params["pattern"])}`,
  format: (params) => `must have the format "${params["format"]}"`,
  dependentRequired: (params) => `must also have ${shown(params["missingProperty"])}, because ${shown(params["property"])} is present`,
  dependencies: (params) => `must also have ${shown(params["missingProperty"])}, because ${shown(params["property"])} is present`,
  propertyNames: () => "is not an allowed name",
  not: () => "must not match the excluded schema",
};

function describeUnion(error: SchemaFault, args: unknown): string {
  if (Array.isArray(error.params["passingSchemas"])) return "matches more than one of the forms of which exactly one must match";
  const branches = flat(error.branches ?? []);
  const isPlain = branches.every((branch) => branch.path.length === error.path.length && plainKeywords.has(branch.keyword));
  if (isPlain && branches.length > 0) return `must be ${[...new Set(branches.map(wanted))].join(" or ")}`;
  const forms = branches.slice(0, 3).map((branch) => {
    const issue = toIssue(branch, args);
    return issue.path === "" ? issue.message : `${issue.path} ${issue.message}`;
  });
  return forms.length === 0
    ? "matches none of the allowed forms"
    : `matches none of the allowed forms: ${[...new Set(forms)].join("; or ")}`;
}

/** Flattens the branches of nested unions. */
function flat(branches: readonly SchemaFault[]): readonly SchemaFault[] {
  return branches.flatMap((branch) => (branch.branches === undefined ? [branch] : flat(branch.branches)));
}

const plainKeywords = new Set(["type", "const", "enum"]);

function wanted(branch: SchemaFault): string {
  const params: Params = branch.params;
  if (branch.keyword === "type") return listOfTypes([params["type"]].flat());
  return listOfValues(branch.keyword === "enum" ? params["allowedValues"] : [params["allowedValue"]]);
}

const typeNames: ReadonlyMap<unknown, string> = new Map([
  ["string", "a string"],
  ["number", "a number"],
  ["integer", "an integer"],
  ["boolean", "true or false"],
  ["object", "an object"],
  ["array", "an array"],
  ["null", "null"],
]);

function listOfTypes(types: readonly unknown[]): string {
  return types.map((type) => typeNames.get(type) ?? String(type)).join(" or ");
}

/** Names only the type of the value: the value itself may be long or secret. */
function whatItIs(error: SchemaFault): string {
  const { data } = error;
  if (typeof data === "number" && !Number.isFinite(data)) return `, not ${data}`;
  if (typeof data === "number" && error.params["type"] === "integer") return "";
  const type = data === null ? "null" : Array.isArray(data) ? "array" : typeof data;
  return type === "boolean" ? ", not a boolean" : `, not ${typeNames.get(type) ?? `a ${type}`}`;
}

function knownNames(error: SchemaFault): string {
  const properties: unknown = error.parentSchema["properties"];
  if (typeof properties !== "object" || properties === null) return "";
  const names = Object.keys(properties);
  return names.length === 0 || names.length > maxValuesListed ? "" : ` (known: ${names.join(", ")})`;
}

function listOfValues(values: unknown): string {
  const list = Array.isArray(values) ? values : [];
  const listed = list.slice(0, maxValuesListed).map(shown).join(", ");
  const more = list.length > maxValuesListed ? ` and ${list.length - maxValuesListed} more` : "";
  return list.length === 1 ? listed : `one of ${listed}${more}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
