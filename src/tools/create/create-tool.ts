import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import type { ToolLike } from "../define/define-tool.ts";
import { checkSchema } from "../schema/check-schema.ts";
import { compileSchema, nullOmitter } from "../schema/json-schema-validator.ts";
import { type LibrarySchema, standardValidator } from "../schema/standard-schema.ts";
import { checkToolName, type Tool, type ToolDefinition, type ToolOrigin, type Validated } from "../tool.ts";
import { readDefinition, revisionOf, signatureOf } from "./tool-definition.ts";

export interface CreateToolOptions {
  /**
   * Identifies the version of the code behind the tool, so that a reload changes the tool's revision. Absent: derived from the identity
   * of the handler, the permission function and the schema object.
   */
  readonly generation?: string | number;
  /** Receives non-fatal problems: a missing description, a field that was left out, a doubtful schema. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
  /**
   * The schema comes from data, not from code: its patterns are matched in linear time, or not at all. Default: true for `mcp` and
   * `external` tools.
   */
  readonly untrustedSchema?: boolean;
  /** False: skips the check of the schemas against their meta-schema. */
  readonly checkSchemas?: boolean;
}

/**
 * Creates the tool that a host calls from a definition, which is copied and frozen. Hashes and validators are created on first use.
 * @throws HostError `TOOL_INVALID` for an illegal name, a handler that is not a function, or parameters that are not an object schema or
 * have no JSON form. The message names the tool, the field and the fix.
 */
export function createTool(source: ToolLike, origin: ToolOrigin, options: CreateToolOptions = {}): Tool {
  const report = reporterFor(origin, options.onDiagnostic);
  const { definition, library, functions } = readDefinition(source, report);
  const untrusted = options.untrustedSchema ?? (origin.kind === "mcp" || origin.kind === "external");
  if (options.onDiagnostic !== undefined) advise(definition, untrusted, options.checkSchemas !== false, report);
  const { handler, permission } = functions;
  return new AssembledTool({
    definition,
    origin: Object.freeze({ ...origin }),
    hashes: new ToolHashes(definition, () => revisionOf(definition, options.generation ?? identityOf(handler, permission, library))),
    hasHandler: handler !== undefined,
    validate: validatorFor(definition, library, untrusted, report),
    ...(permission && { permission: (args, context) => permission.call(source, args, context) }),
    execute(args, context) {
      if (handler === undefined) throw withoutHandler(definition.name);
      return handler.call(source, args, context.invocation, context);
    },
  });
}

/**
 * The same tool under another name; its origin keeps the native one.
 * @throws HostError `TOOL_INVALID` when the name is not one that models can call.
 */
export function renameTool(tool: Tool, name: string): Tool {
  const check = checkToolName(name);
  if (!check.ok) throw new HostError("TOOL_INVALID", check.message);
  const definition: ToolDefinition = Object.freeze({ ...tool.definition, name });
  return derive(tool, { definition, hashes: new ToolHashes(definition, () => revisionOf(definition, tool.revision)) });
}

/** The same tool with another origin; contract, revision and behaviour stay. */
export function withOrigin(tool: Tool, origin: ToolOrigin): Tool {
  return derive(tool, { origin: Object.freeze({ ...origin }) });
}

/** The same tool, contract and revision, with a wrapper around `execute` and a hold. Used to count running calls. */
export function wrapExecute(tool: Tool, wrap: (execute: Tool["execute"]) => Tool["execute"], hold?: () => Disposable): Tool {
  return derive(tool, { execute: wrap(tool.execute), ...(hold && { hold }) });
}

/** The same tool, contract and revision; its own permission statements cannot allow a call. */
export function alwaysAsked(tool: Tool): Tool {
  return derive(tool, { isAlwaysAsked: true });
}

/** The same tool, contract and revision; rules about URLs, commands and paths see what its calls reach. */
export function withReach(tool: Tool, reach: NonNullable<Tool["reach"]>): Tool {
  return derive(tool, { reach });
}

/** A copy of the tool with some parts replaced. Spreading the tool itself would compute its hashes. */
function derive(tool: Tool, changes: Partial<Parts>): Tool {
  return new AssembledTool({
    definition: tool.definition,
    origin: tool.origin,
    hashes: tool instanceof AssembledTool ? AssembledTool.hashesOf(tool) : new ToolHashes(tool.definition, () => tool.revision),
    hasHandler: tool.hasHandler,
    isAlwaysAsked: tool.isAlwaysAsked,
    validate: tool.validate,
    permission: tool.permission,
    reach: tool.reach,
    hold: tool.hold,
    execute: tool.execute,
    ...changes,
  });
}

/** The hashes of a tool, computed on first read: most tools are loaded more often than compared. Copies of a tool share them. */
class ToolHashes {
  readonly #definition: ToolDefinition;
  #signature: string | undefined;
  #revision: string | (() => string);

  constructor(definition: ToolDefinition, revision: () => string) {
    this.#definition = definition;
    this.#revision = revision;
  }

  get signature(): string {
    this.#signature ??= signatureOf(this.#definition);
    return this.#signature;
  }

  get revision(): string {
    if (typeof this.#revision !== "string") this.#revision = this.#revision();
    return this.#revision;
  }
}

type OptionalParts = "isAlwaysAsked" | "permission" | "reach" | "hold";
type Parts = Omit<Tool, "signature" | "revision" | OptionalParts> & {
  readonly [Key in OptionalParts]?: Tool[Key] | undefined;
} & { readonly hashes: ToolHashes };

/** A class gives thousands of tools one hidden class, which halves the time to assemble a catalog of them. */
class AssembledTool implements Tool {
  readonly definition: ToolDefinition;
  readonly origin: ToolOrigin;
  readonly hasHandler: boolean;
  readonly isAlwaysAsked: boolean;
  readonly validate: Tool["validate"];
  declare readonly permission?: NonNullable<Tool["permission"]>;
  declare readonly reach?: NonNullable<Tool["reach"]>;
  declare readonly hold?: NonNullable<Tool["hold"]>;
  readonly execute: Tool["execute"];
  readonly #hashes: ToolHashes;

  constructor({ definition, origin, hashes, hasHandler, isAlwaysAsked = false, validate, permission, reach, hold, execute }: Parts) {
    this.definition = definition;
    this.origin = origin;
    this.hasHandler = hasHandler;
    this.isAlwaysAsked = isAlwaysAsked;
    this.validate = validate;
    if (permission !== undefined) this.permission = permission;
    if (reach !== undefined) this.reach = reach;
    if (hold !== undefined) this.hold = hold;
    this.execute = execute;
    this.#hashes = hashes;
    Object.freeze(this);
  }

  static hashesOf(tool: AssembledTool): ToolHashes {
    return tool.#hashes;
  }

  get signature(): string {
    return this.#hashes.signature;
  }

  get revision(): string {
    return this.#hashes.revision;
  }
}

function reporterFor(origin: ToolOrigin, onDiagnostic: CreateToolOptions["onDiagnostic"]): (diagnostic: Diagnostic) => void {
  if (onDiagnostic === undefined) return () => undefined;
  const place = { source: origin.source, ...(origin.file !== undefined && { file: origin.file }) };
  return (diagnostic) => onDiagnostic({ ...diagnostic, ...place });
}

function advise(definition: ToolDefinition, untrusted: boolean, checkSchemas: boolean, report: (diagnostic: Diagnostic) => void): void {
  const { name, description, parameters, outputSchema } = definition;
  if (description === undefined || description.trim() === "") {
    const message = `Tool "${name}" has no description. Models choose tools by description: say what the tool does and when to use it.`;
    report({ severity: "warning", code: "TOOL_DESCRIPTION_MISSING", message });
  }
  if (!checkSchemas) return;
  const ofParameters = parameters === undefined ? [] : checkSchema(parameters, { untrustedPatterns: untrusted });
  const fault = ofParameters.find(({ severity }) => severity === "error");
  // Without a valid schema no call can be checked.
  if (fault !== undefined) throw new HostError(fault.code, `Tool "${name}": ${fault.message} The tool is not available.`);
  const found = [
    ...ofParameters,
    ...(outputSchema === undefined ? [] : checkSchema(outputSchema, { of: "output", untrustedPatterns: untrusted })),
  ];
  for (const diagnostic of found) report({ ...diagnostic, message: `Tool "${name}": ${diagnostic.message}` });
}

function validatorFor(
  { name, parameters }: ToolDefinition,
  library: LibrarySchema | undefined,
  untrustedPatterns: boolean,
  report: (diagnostic: Diagnostic) => void,
): Tool["validate"] {
  if (parameters === undefined) return (args): Validated => ({ ok: true, value: args ?? {} });
  const own = library === undefined ? null : standardValidator(library);
  if (own !== null) return orWithoutNulls((args) => own(args ?? {}), nullOmitter(parameters));
  const onDiagnostic = (diagnostic: Diagnostic): void => report({ ...diagnostic, message: `Tool "${name}": ${diagnostic.message}` });
  return compileSchema(parameters, { untrustedPatterns, onDiagnostic });
}

/** Models write null for omitted values. Where the schema does not allow null, it is treated as omitted. */
function orWithoutNulls(validate: Tool["validate"], omitNulls: (args: unknown) => unknown): Tool["validate"] {
  const again = (checked: Validated, args: unknown): Validated | Promise<Validated> => {
    const repaired = checked.ok ? undefined : omitNulls(args);
    if (repaired === undefined) return checked;
    const second = validate(repaired);
    return second instanceof Promise ? second.then((settled) => (settled.ok ? settled : checked)) : second.ok ? second : checked;
  };
  return (args) => {
    const first = validate(args);
    return first instanceof Promise ? first.then((settled) => again(settled, args)) : again(first, args);
  };
}

const identities = new WeakMap<object, number>();
let lastIdentity = 0;

function identityOf(...parts: readonly (object | undefined)[]): string {
  return parts.map((part) => (part === undefined ? 0 : numberOf(part))).join(".");
}

function numberOf(part: object): number {
  const known = identities.get(part);
  if (known !== undefined) return known;
  identities.set(part, ++lastIdentity);
  return lastIdentity;
}

function withoutHandler(name: string): HostError {
  return new HostError(
    "TOOL_WITHOUT_HANDLER",
    `Tool "${name}" is a client tool without a handler: only an attached client can answer its calls.`,
  );
}
