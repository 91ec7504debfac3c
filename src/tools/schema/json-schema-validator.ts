import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { LruMap } from "../../base/lru-map.ts";
import type { ArgumentIssue, JsonSchema, Validated } from "../tool.ts";
import { issuesOf } from "./argument-issues.ts";
import { EvaluationRun, pause, type RunOptions, StepsExceeded, TooDeep } from "./evaluation-run.ts";
import { allFormats, checkKeywords, SchemaEvaluator } from "./schema-evaluator.ts";
import { boundedPattern, type Pattern, trustedPattern } from "./schema-pattern.ts";
import { type Dialect, dialectOf, type SchemaNode, UnresolvedReference, walkSchema } from "./schema-structure.ts";

/**
 * Checks arguments and applies defaults, on a copy. Never throws, never changes its input. Synchronous unless the work would block the
 * event loop: then it runs in slices and returns a promise.
 */
export type JsonValidator = (args: unknown) => Validated | Promise<Validated>;

/** Why a schema cannot be compiled, for its author. */
interface SchemaProblem {
  readonly code: "SCHEMA_REF_UNRESOLVED" | "SCHEMA_INVALID";
  readonly message: string;
}

interface CompiledSchema {
  readonly validate: JsonValidator;
  /** The arguments without their optional nulls, if they are valid then; otherwise undefined. */
  readonly omitNulls: (args: unknown) => unknown;
  readonly problem: SchemaProblem | null;
  /** Whether it refuses because of the machine, such as one without free file descriptors, so that another attempt may succeed. */
  readonly isPassing?: boolean;
}

const maxSchemaLength = 1_000_000;
/** Enough for 250,000 records; references that multiply reach it after a few seconds. */
const maxSteps = 10_000_000;
const maxNodesExplained = 20_000;

/**
 * Compiles a schema, given as JSON text. The work of a check is bounded by steps for any schema. Patterns are matched in linear time;
 * with `isCode`, only where that is possible. An unusable schema yields a validator that refuses every call.
 */
function compileSchemaText(text: string, isCode: boolean): CompiledSchema {
  try {
    if (text.length > maxSchemaLength) throw new Error(`it is larger than ${maxSchemaLength} characters`);
    return { ...createValidator(text, isCode), problem: null };
  } catch (error) {
    return refuseAll(error);
  }
}

function createValidator(text: string, isCode: boolean): Omit<CompiledSchema, "problem"> {
  const schema: unknown = JSON.parse(text);
  const toPattern = isCode ? trustedPattern : boundedPattern;
  repairSchema(schema, dialectOf(schema), toPattern);
  const evaluator = new SchemaEvaluator(schema, { toPattern, formats: allFormats() });
  checkKeywords(evaluator.index);
  const copyArguments = copierFor(text, schema);
  const validate: JsonValidator = (args) => {
    try {
      const value = copyArguments(args ?? {});
      const run = new EvaluationRun(evaluator.index.rootBase, { limit: maxSteps, appliesDefaults: true });
      const fits = evaluator.advance(value, run);
      if (fits === true) return { ok: true, value };
      if (fits === pause) return finish(evaluator, value, run);
      const repaired = withoutNulls(evaluator, args, copyArguments);
      return repaired === undefined ? explain(evaluator, value) : { ok: true, value: repaired };
    } catch (error) {
      return refuse(error);
    }
  };
  return { validate, omitNulls: (args) => withoutNulls(evaluator, args, (value) => value) };
}

/** Only for small, refused arguments: a model does not write huge ones. */
function withoutNulls(evaluator: SchemaEvaluator, args: unknown, applyDefaults: (value: unknown) => unknown): unknown {
  if (!isRecord(args) || !hasNull(args)) return undefined;
  try {
    const value = copyDeep(args);
    const run = new EvaluationRun(evaluator.index.rootBase, { limit: maxStepsOfRepair, slice: maxStepsOfRepair, omitsNulls: true });
    if (evaluator.advance(value, run) !== true) return undefined;
    const whole = applyDefaults(value);
    const again = new EvaluationRun(evaluator.index.rootBase, { limit: maxStepsOfRepair, slice: maxStepsOfRepair, appliesDefaults: true });
    return evaluator.advance(whole, again) === true ? whole : undefined;
  } catch {
    // Nested too deeply, too much work, or a throwing getter: the earlier issues stand.
    return undefined;
  }
}

const maxStepsOfRepair = 50_000;

function hasNull(args: object): boolean {
  const waiting: unknown[] = [args];
  for (let count = 0; waiting.length > 0 && count < maxNodesExplained; count++) {
    const next = waiting.pop();
    if (next === null) return true;
    if (typeof next !== "object") continue;
    const members: unknown[] = Array.isArray(next) ? next : Object.values(next);
    if (members.length > maxNodesExplained) return false;
    for (const member of members) waiting.push(member);
  }
  return false;
}

async function finish(evaluator: SchemaEvaluator, value: unknown, run: EvaluationRun): Promise<Validated> {
  try {
    return (await advanceToEnd(evaluator, value, run)) ? { ok: true, value } : await explain(evaluator, value);
  } catch (error) {
    return refuse(error);
  }
}

async function advanceToEnd(evaluator: SchemaEvaluator, value: unknown, run: EvaluationRun): Promise<boolean> {
  for (;;) {
    await new Promise(setImmediate);
    const fits = evaluator.advance(value, run);
    if (fits !== pause) return fits;
  }
}

/** A huge value could have millions of faults, so only the first is reported. */
function explain(evaluator: SchemaEvaluator, value: unknown): Validated | Promise<Validated> {
  const isHuge = countNodes(value, maxNodesExplained) >= maxNodesExplained;
  const options: RunOptions = { limit: maxSteps, faults: isHuge ? "first" : "all" };
  const run = new EvaluationRun(evaluator.index.rootBase, options);
  const refused = (): Validated => ({ ok: false, issues: toIssues(run, value) });
  const fits = evaluator.advance(value, run);
  return fits === pause ? advanceToEnd(evaluator, value, run).then(refused, refuse) : refused();
}

function toIssues({ faults }: EvaluationRun, value: unknown): readonly ArgumentIssue[] {
  return issuesOf(faults ?? [], value);
}

/** Defaults are written into the value, so it is copied as deep as the schema has defaults, and not at all without any. */
function copierFor(text: string, schema: unknown): (args: unknown) => unknown {
  if (!text.includes('"default"')) return (args) => args;
  const depths = new Set<"top" | "deep">();
  // A reference may point outside of schema positions, to defaults that a walk does not find.
  if (/"\$(?:ref|dynamicRef|recursiveRef)"/.test(text)) depths.add("deep");
  walkSchema(schema, (part, path) => {
    if (part["default"] !== undefined) depths.add(path.length === 2 && path[0] === "properties" ? "top" : "deep");
  });
  if (depths.has("deep")) return copyDeep;
  return depths.has("top") ? (args) => (isRecord(args) ? copyMembers(args) : args) : (args) => args;
}

/** `{ ...value }` has a hidden class of its own in V8: each default added to it would create another one, for every call. */
function copyMembers(value: object): object {
  return { __proto__: Object.prototype, ...value };
}

/** Without recursion: excessive nesting is found by the check, and cycles stay cycles. */
function copyDeep(root: unknown): unknown {
  const copies = new Map<object, object>();
  const waiting: object[] = [];
  const copyOf = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const known = copies.get(value);
    if (known !== undefined) return known;
    const copy: object = Array.isArray(value) ? [...value] : copyMembers(value);
    copies.set(value, copy);
    waiting.push(copy);
    return copy;
  };
  const copy = copyOf(root);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const members = next as Record<string, unknown>;
    for (const key of Object.keys(members)) if (key !== "__proto__") members[key] = copyOf(members[key]);
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

function refuse(error: unknown): Validated {
  return { ok: false, issues: [{ path: "", message: refusalOf(error) }] };
}

function refusalOf(error: unknown): string {
  if (error instanceof StepsExceeded)
    return "cannot be checked, because this tool's schema makes it take too long. Pass fewer values, or call the tool several times";
  return error instanceof TooDeep || error instanceof RangeError ? "is nested too deeply, or contains itself" : "cannot be read";
}

function refuseAll(error: unknown): CompiledSchema {
  // Errors of the system, and of modules that are loaded at the first use, have a code.
  if (error instanceof Error && "code" in error) return refuseForNow(error);
  const reference = error instanceof UnresolvedReference ? error.reference : undefined;
  const message =
    reference === undefined
      ? "cannot be checked: the schema of this tool is not valid"
      : "cannot be checked: the schema of this tool has a reference without a target";
  const problem: SchemaProblem =
    reference === undefined
      ? {
          code: "SCHEMA_INVALID",
          message: `The schema is not valid: ${errorMessage(error)}. Fix it; until then every call is rejected.`,
        }
      : {
          code: "SCHEMA_REF_UNRESOLVED",
          message: `"$ref": ${JSON.stringify(reference)} does not exist in this schema, and references are not fetched. Copy the target into "$defs".`,
        };
  return { validate: () => ({ ok: false, issues: [{ path: "", message }] }), omitNulls: () => undefined, problem };
}

function refuseForNow(error: Error): CompiledSchema {
  const message = `cannot be checked now, because a file of skillhost could not be read: ${errorMessage(error)}. Try again later`;
  return { validate: () => ({ ok: false, issues: [{ path: "", message }] }), omitNulls: () => undefined, problem: null, isPassing: true };
}

interface CompileOptions {
  /**
   * The schema comes from JSON or another program: patterns that cannot be matched in linear time are not checked. Those of the host's
   * own code are then matched as JavaScript does. The work of a check is bounded either way.
   */
  readonly untrustedPatterns?: boolean;
  /** Called once, at the first call, when the schema cannot be compiled. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/**
 * A validator of arguments for a JSON Schema. It is compiled at its first call; equal schemas share one compiled validator. It applies
 * defaults to a copy, never coerces, never throws and never changes the arguments; absent arguments count as `{}`. Large arguments are
 * checked in slices, with a promise as the result. A schema that cannot be compiled refuses every call and reports why as a diagnostic.
 */
export function compileSchema(schema: JsonSchema, options: CompileOptions = {}): JsonValidator {
  let validate: JsonValidator | undefined;
  return (args) => {
    if (validate !== undefined) return validate(args);
    const compiled = compileShared(schema, options);
    if (compiled.isPassing !== true) ({ validate } = compiled);
    return compiled.validate(args);
  };
}

/**
 * For arguments that a library's own validation refused: the arguments without optional nulls, if they match its JSON Schema then;
 * otherwise undefined.
 */
export function nullOmitter(schema: JsonSchema): (args: unknown) => unknown {
  return (args) => shareCompiled(textOf(schema), false).omitNulls(args);
}

/** Keyed by the hash of the text. Tools keep their validators; this cache helps reloads. */
const shared = new LruMap<string, CompiledSchema>(256);

function compileShared(schema: JsonSchema, options: CompileOptions): CompiledSchema {
  const compiled = shareCompiled(textOf(schema), options.untrustedPatterns === true);
  if (compiled.problem !== null) options.onDiagnostic?.({ severity: "error", ...compiled.problem });
  return compiled;
}

function shareCompiled(text: string, untrustedPatterns: boolean): CompiledSchema {
  const key = `${untrustedPatterns} ${sha256(text)}`;
  const known = shared.get(key);
  if (known !== undefined) return known;
  const compiled = compileSchemaText(text, !untrustedPatterns);
  if (compiled.isPassing !== true) shared.set(key, compiled);
  return compiled;
}

function textOf(schema: JsonSchema): string {
  try {
    return canonicalJson(schema);
  } catch {
    // Cyclic, or with a throwing getter: no text, which the compiler reports as an invalid schema.
    return "";
  }
}

const types = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/**
 * Converts keywords of older drafts and of OpenAPI, which servers still send under another dialect or none, to the schema's own dialect,
 * and removes patterns that `toPattern` cannot match. The validator would refuse the whole schema for each of them. Changes the schema in
 * place.
 */
function repairSchema(root: unknown, dialect: Dialect, toPattern: (source: string) => Pattern | null): void {
  walkSchema(root, (schema) => {
    if (typeof schema["id"] === "string") delete schema["id"];
    if (typeof schema["required"] === "boolean") delete schema["required"];
    // An asynchronous validator would answer with a promise, which counts as "valid".
    delete schema["$async"];
    const { type } = schema;
    if (Array.isArray(type)) {
      const known = type.filter((name) => types.has(name));
      if (known.length < type.length) schema["type"] = known;
      if (known.length === 0) delete schema["type"];
    } else if (type !== undefined && !types.has(type as string)) {
      delete schema["type"];
    }
    // OpenAPI's `nullable` has no meaning beside a `$ref` or a union.
    if ("nullable" in schema && (schema["type"] === undefined || typeof schema["nullable"] !== "boolean")) delete schema["nullable"];
    repairPatterns(schema, toPattern);
    repairBound(schema, "exclusiveMinimum", "minimum");
    repairBound(schema, "exclusiveMaximum", "maximum");
    if (dialect === "2020-12" && Array.isArray(schema["items"])) {
      const items = schema["items"];
      if (items.length > 0) schema["prefixItems"] = items;
      delete schema["items"];
      const rest = schema["additionalItems"];
      if (isRecord(rest) || typeof rest === "boolean") schema["items"] = rest;
    }
  });
}

function repairPatterns(schema: SchemaNode, toPattern: (source: string) => Pattern | null): void {
  const { pattern, patternProperties } = schema;
  if (pattern !== undefined && (typeof pattern !== "string" || toPattern(pattern) === null)) delete schema["pattern"];
  if (!isRecord(patternProperties)) return;
  for (const name of Object.keys(patternProperties)) {
    if (toPattern(name) !== null) continue;
    delete patternProperties[name];
    // Without the pattern, allowed and additional properties cannot be distinguished.
    delete schema["additionalProperties"];
    delete schema["unevaluatedProperties"];
  }
}

function repairBound(schema: SchemaNode, exclusive: string, bound: string): void {
  if (typeof schema[exclusive] !== "boolean") return;
  const isExclusive = schema[exclusive];
  delete schema[exclusive];
  if (!isExclusive || typeof schema[bound] !== "number") return;
  schema[exclusive] = schema[bound];
  delete schema[bound];
}
