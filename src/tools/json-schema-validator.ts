import type { Ajv, Options, ValidateFunction } from "ajv";
import { errorMessage } from "../base/errors.ts";
import { issuesOf } from "./argument-issues.ts";
import { allFormats, makeAjv, missingRefOf } from "./load-ajv.ts";
import { type Dialect, repairSchema } from "./repair-schema.ts";
import { boundedPattern, type Pattern, trustedPattern } from "./schema-pattern.ts";
import { createStepBudget, type StepBudget, StepsExceeded } from "./step-budget.ts";
import type { ArgumentIssue, Validated } from "./tool.ts";
import { isRecord, walkSchema } from "./walk-schema.ts";

/** Checks arguments and applies defaults, on a copy. Never throws, never changes what it is given. */
export type JsonValidator = (args: unknown) => Validated;

/** A schema that cannot be compiled: why, for the people who can change it. */
export interface SchemaProblem {
  readonly code: "SCHEMA_REF_UNRESOLVED" | "SCHEMA_INVALID";
  readonly message: string;
}

export interface CompiledSchema {
  readonly validate: JsonValidator;
  readonly problem: SchemaProblem | null;
}

const maxSchemaLength = 1_000_000;
const maxNodesExplained = 20_000;

/**
 * Compiles a schema, given as its JSON text, with a validator instance of its own: one that lives on would keep every
 * schema it ever compiled. A stranger's schema gets patterns and references whose work is bounded. A schema that cannot be compiled gives a validator that refuses every call.
 */
export function compileSchemaText(text: string, untrusted: boolean): CompiledSchema {
  try {
    if (text.length > maxSchemaLength) throw new Error(`it is larger than ${maxSchemaLength} characters`);
    return { validate: createValidator(text, untrusted), problem: null };
  } catch (error) {
    return refuseAll(error);
  }
}

export function dialectOf(schema: unknown): Dialect {
  const named = isRecord(schema) ? schema["$schema"] : undefined;
  if (typeof named !== "string") return "2020-12";
  if (/draft-0[3-7]/.test(named)) return "draft-07";
  return named.includes("2019-09") ? "2019-09" : "2020-12";
}

export function createAjv(dialect: Dialect, options: Options): Ajv {
  const common: Options = { strict: false, strictNumbers: true, logger: false, messages: false, ...options };
  return makeAjv(dialect, common);
}

function createValidator(text: string, untrusted: boolean): JsonValidator {
  const budget = untrusted ? createStepBudget() : null;
  const check = compile(text, budget, {});
  const copyArguments = copierFor(text);
  let explain: ValidateFunction | undefined;
  const explainAll = (value: unknown): readonly ArgumentIssue[] => {
    const first = check.errors ?? [];
    // All errors of a huge value could be millions: then only the first is told.
    if (countNodes(value, maxNodesExplained) >= maxNodesExplained) return issuesOf(first, value, undefined);
    explain ??= compile(text, budget, { allErrors: true, verbose: true });
    explain(value);
    return issuesOf(explain.errors ?? first, value, explain.schema);
  };
  return (args) => {
    try {
      budget?.restart();
      const value = copyArguments(args ?? {});
      return check(value) ? { ok: true, value } : { ok: false, issues: explainAll(value) };
    } catch (error) {
      return { ok: false, issues: [{ path: "", message: refusalOf(error) }] };
    }
  };
}

function compile(text: string, budget: StepBudget | null, options: Options): ValidateFunction {
  const schema: unknown = JSON.parse(text);
  const dialect = dialectOf(schema);
  const toPattern = budget === null ? trustedPattern : boundedPattern;
  repairSchema(schema, dialect, toPattern);
  budget?.mark(schema);
  const ajv = createAjv(dialect, {
    meta: /"\$ref":"https?:\/\/json-schema\.org\//.test(text),
    validateSchema: false,
    useDefaults: true,
    inlineRefs: false,
    multipleOfPrecision: 9,
    formats: allFormats(),
    keywords: budget === null ? [] : [budget.definition],
    // Names that every object inherits (`constructor`) would count as present arguments.
    ownProperties: /"(?:constructor|toString|toLocaleString|valueOf|hasOwnProperty|isPrototypeOf|propertyIsEnumerable)"/.test(text),
    code: { optimize: false, regExp: patternEngine(toPattern) },
    ...options,
  });
  return ajv.compile(schema as object);
}

function patternEngine(toPattern: (source: string) => Pattern | null): NonNullable<NonNullable<Options["code"]>["regExp"]> {
  const engine = (source: string): Pattern & { toString(): string } => {
    const pattern = toPattern(source);
    if (pattern === null) throw new Error(`the pattern ${JSON.stringify(source)} cannot be matched`);
    // The validator tells patterns apart by their text form.
    return { test: (text) => pattern.test(text), toString: () => JSON.stringify(source) };
  };
  return Object.assign(engine, { code: "skillhostPattern" });
}

/** Defaults are written into the value, so it is copied as far as the schema has defaults, and not at all without. */
function copierFor(text: string): (args: unknown) => unknown {
  if (!text.includes('"default"')) return (args) => args;
  const depths = new Set<"top" | "deep">();
  // A reference may lead to where no schema is expected, and so to defaults that a walk does not see.
  if (/"\$(?:ref|dynamicRef|recursiveRef)"/.test(text)) depths.add("deep");
  walkSchema(JSON.parse(text), (schema, path) => {
    if (schema["default"] !== undefined) depths.add(path.length === 2 && path[0] === "properties" ? "top" : "deep");
  });
  if (depths.has("deep")) return (args) => copyDeep(args, new Map());
  return depths.has("top") ? (args) => (isRecord(args) ? { ...args } : args) : (args) => args;
}

function copyDeep(value: unknown, copies: Map<object, unknown>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  const copy: unknown = Array.isArray(value) ? [...value] : { ...value };
  copies.set(value, copy);
  if (Array.isArray(copy)) for (const [index, member] of copy.entries()) copy[index] = copyDeep(member, copies);
  else if (isRecord(copy)) {
    for (const key of Object.keys(copy)) if (key !== "__proto__") copy[key] = copyDeep(copy[key], copies);
  }
  return copy;
}

function countNodes(value: unknown, limit: number): number {
  const waiting: unknown[] = [value];
  let count = 0;
  while (waiting.length > 0 && count < limit) {
    const next = waiting.pop();
    count++;
    if (typeof next !== "object" || next === null) continue;
    const members: unknown[] = Array.isArray(next) ? next : Object.values(next);
    if (members.length > limit) return limit;
    for (const member of members) waiting.push(member);
  }
  return count;
}

function refusalOf(error: unknown): string {
  if (error instanceof StepsExceeded) return "cannot be checked: the schema of this tool takes too long to follow";
  return error instanceof RangeError ? "is nested too deeply, or contains itself" : "cannot be read";
}

function refuseAll(error: unknown): CompiledSchema {
  const reference = missingReference(error);
  const message =
    reference === undefined
      ? "cannot be checked: the schema of this tool is faulty"
      : "cannot be checked: the schema of this tool refers to something that is not part of it";
  const problem: SchemaProblem =
    reference === undefined
      ? {
          code: "SCHEMA_INVALID",
          message: `The schema cannot be used: ${errorMessage(error)}. Correct it; until then every call is refused.`,
        }
      : {
          code: "SCHEMA_REF_UNRESOLVED",
          message: `"$ref": ${JSON.stringify(reference)} leads nowhere in this schema, and nothing is fetched. Copy what it refers to into "$defs".`,
        };
  return { validate: () => ({ ok: false, issues: [{ path: "", message }] }), problem };
}

function missingReference(error: unknown): string | undefined {
  return missingRefOf(error);
}
