import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { isRecord, isTextNestedTooDeep } from "../base/json.ts";
import { shorten } from "../base/text.ts";
import { toBase64 } from "./define/content-block.ts";
import { copyJson } from "./json-copy.ts";
import type { ContentBlock } from "./prompt.ts";
import type { BinaryResult, CallResult, ResultType, ToolResult } from "./tool.ts";

export interface NormalizeOptions {
  /**
   * Who answered: a `handler`, an `execute` module (whose text parts and `{ result, message }` have a meaning too), or a client over a
   * `wire`. An empty string is a success from all of them.
   */
  readonly form?: "handler" | "execute" | "wire";
  /** Receives what was removed from a result because it was invalid; `sessionLog` of the result lists the same. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/**
 * Converts any answer of a tool to a result. Text is a success as it is, other data becomes its JSON, and no value is a failure. A tool
 * result object is checked field by field; an MCP `CallToolResult` is converted and kept. A value that JSON cannot represent is a failure
 * that says so. Never throws.
 */
export function normalizeResult(raw: unknown, options: NormalizeOptions = {}): ToolResult {
  try {
    if (typeof raw === "string") return successResult(raw);
    if (raw === null || raw === undefined) return failureResult(resultText.noResult);
    if (raw instanceof Error) return resultOfThrow(raw);
    if (options.form === "execute") {
      const result = fromExecute(raw);
      if (result !== undefined) return result;
    }
    if (!isRecord(raw)) return fromJson(raw);
    if (typeof raw["textResultForLlm"] === "string") return toolResultObject(raw, options.onDiagnostic);
    return isCallToolResult(raw) ? callToolResult(raw, options.onDiagnostic) : fromJson(raw);
  } catch (error) {
    // A getter, proxy or toJSON that throws.
    return failureResult(resultText.unreadable, { error: errorMessage(error) });
  }
}

/**
 * Gives a result that came as data, such as from another machine, what results of `callTool` have: `ok`, `text` and `json()`. They are on a
 * prototype, so its own keys stay the data. `json()` throws HostError `RESULT_FAILED` and `RESULT_NOT_JSON`.
 */
export function toCallResult(result: ToolResult): CallResult {
  return new ReadableResult(result) as ReadableResult & ToolResult;
}

class ReadableResult {
  declare readonly resultType: ResultType;
  declare readonly textResultForLlm: string;
  declare readonly structuredContent?: unknown;

  constructor(result: ToolResult) {
    Object.assign(this, result);
  }

  get ok(): boolean {
    return this.resultType === "success";
  }

  get text(): string {
    return this.textResultForLlm;
  }

  json<Value = unknown>(): Value {
    const shown = shorten(JSON.stringify(this.text), 200);
    if (!this.ok) throw new HostError("RESULT_FAILED", `The call ended with ${this.resultType}: ${shown}`);
    if (this.structuredContent !== undefined) return this.structuredContent as Value;
    try {
      return JSON.parse(this.text) as Value;
    } catch (cause) {
      throw new HostError("RESULT_NOT_JSON", `The result is text and not JSON: ${shown}. Read it as result.text.`, { cause });
    }
  }
}

/** The result for a thrown error. Its message goes to the log; the model learns only that there was an error. */
export function resultOfThrow(error: unknown): ToolResult {
  return failureResult(resultText.threw, { error: errorMessage(error) });
}

export function successResult(text: string): ToolResult {
  return { resultType: "success", textResultForLlm: text };
}

/** A failure with a text for the model; `error` and `sessionLog` are for the log only. */
export function failureResult(
  text: string,
  details: { readonly resultType?: Exclude<ResultType, "success">; readonly error?: string; readonly sessionLog?: string } = {},
): ToolResult {
  return { resultType: "failure", textResultForLlm: text, ...details };
}

/** The two forms of a language server's tool module: a list of text parts, or an outcome with a message. */
function fromExecute(raw: unknown): ToolResult | undefined {
  if (Array.isArray(raw)) {
    const isParts = raw.every((part) => isRecord(part) && part["type"] === "text" && typeof part["value"] === "string");
    return isParts ? successResult(raw.map((part) => part.value).join("\n")) : undefined;
  }
  if (!isRecord(raw)) return undefined;
  const { result, message } = raw;
  const text = typeof message === "string" && message !== "" ? message : undefined;
  if (result === "error") return failureResult(text ?? resultText.failedSilently);
  if (result !== "success") return undefined;
  const hasMore = Object.keys(raw).some((key) => key !== "result" && key !== "message");
  return hasMore ? undefined : successResult(text ?? resultText.succeededSilently);
}

function fromJson(raw: unknown): ToolResult {
  if (typeof raw === "number" && !Number.isFinite(raw)) return failureResult(resultText.notJson, { error: `The tool returned ${raw}.` });
  try {
    const text: string | undefined = JSON.stringify(raw);
    if (text === undefined) return failureResult(resultText.notJson, { error: `The tool returned a ${typeof raw}.` });
    return isTextNestedTooDeep(text, maxResultDepth) ? failureResult(resultText.notJson, { error: tooDeep }) : successResult(text);
  } catch (error) {
    // A cycle, a BigInt, a toJSON that throws, or nesting beyond the stack.
    return failureResult(resultText.notJson, {
      error: error instanceof RangeError ? `${tooDeep} (${error.message})` : errorMessage(error),
    });
  }
}

/** Far less than the stack of any thread allows, so that a result does not depend on the thread in which its tool runs. */
const maxResultDepth = 1_000;
const tooDeep = `The tool returned data that is nested more than ${maxResultDepth} levels deep, or whose JSON is too long. Return it as a text.`;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Collects what was removed from a result, for the session log and as diagnostics. */
interface ResultNotes {
  readonly texts: string[];
  add(code: string, text: string): void;
}

function createNotes(onDiagnostic: ((diagnostic: Diagnostic) => void) | undefined): ResultNotes {
  const texts: string[] = [];
  return {
    texts,
    add(code, text) {
      texts.push(text);
      onDiagnostic?.({ severity: "warning", code, message: text });
    },
  };
}

/**
 * Reads an object with a `textResultForLlm`, field by field. An invalid field is removed with a note; an unknown result type is a
 * failure, because success cannot be assumed.
 */
function toolResultObject(raw: Readonly<Record<string, unknown>>, onDiagnostic?: (diagnostic: Diagnostic) => void): ToolResult {
  const notes = createNotes(onDiagnostic);
  const result: Writable<ToolResult> = {
    resultType: resultTypeOf(raw["resultType"], notes),
    textResultForLlm: String(raw["textResultForLlm"]),
  };
  const binaries = binariesOf(raw["binaryResultsForLlm"], notes);
  if (binaries.length > 0) result.binaryResultsForLlm = binaries;
  const error = logText(raw["error"]);
  if (error !== undefined) result.error = error;
  const telemetry = keep(raw, "toolTelemetry", isRecord, notes);
  if (isRecord(telemetry)) result.toolTelemetry = telemetry;
  const references = keep(raw, "toolReferences", Array.isArray, notes);
  if (Array.isArray(references)) result.toolReferences = references;
  const contents = keep(raw, "contents", Array.isArray, notes);
  if (Array.isArray(contents)) result.contents = contents;
  const meta = keep(raw, "meta", isRecord, notes);
  if (isRecord(meta)) result.meta = meta;
  const structured = keep(raw, "structuredContent", () => true, notes);
  if (structured !== undefined) result.structuredContent = structured;
  const log = logText(raw["sessionLog"]);
  const lines = log === undefined ? notes.texts : [log, ...notes.texts];
  if (lines.length > 0) result.sessionLog = lines.join("\n");
  return result;
}

/** A checked binary, or null with a note about the problem. */
function toBinary(raw: unknown, notes: ResultNotes): BinaryResult | null {
  if (!isRecord(raw)) return refuse(notes, "A binary result that is not an object was removed.");
  const { data, mimeType, type, description } = raw;
  if (typeof mimeType !== "string" || !/^[\w.+-]+\/[\w.+-]+(?:\s*;.*)?$/.test(mimeType))
    return refuse(notes, 'A binary result without a media type such as "image/png" was removed.');
  const base64 = typeof data === "string" ? toBase64(data) : null;
  if (base64 === null || base64 === "")
    return refuse(notes, `A binary result (${mimeType.slice(0, 80)}) whose data is not base64 was removed.`);
  return {
    data: base64,
    mimeType,
    type: typeof type === "string" && type !== "" ? type : mimeType.startsWith("image/") ? "image" : "resource",
    ...(typeof description === "string" && { description }),
  };
}

const resultTypes: ReadonlySet<unknown> = new Set<ResultType>(["success", "failure", "rejected", "denied", "timeout"]);

function resultTypeOf(value: unknown, notes: ResultNotes): ResultType {
  if (value === undefined || value === null) return "success";
  if (resultTypes.has(value)) return value as ResultType;
  notes.add("RESULT_TYPE_UNKNOWN", `Unknown resultType ${shown(value)}, treated as "failure". Use ${[...resultTypes].join(", ")}.`);
  return "failure";
}

function binariesOf(value: unknown, notes: ResultNotes): readonly BinaryResult[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map((raw) => toBinary(raw, notes)).filter((binary) => binary !== null);
  notes.add("RESULT_FIELD_INVALID", "binaryResultsForLlm is not an array and was removed.");
  return [];
}

/** A frozen JSON copy of a member, so that later uses cannot see it change or fail. */
function keep(raw: Readonly<Record<string, unknown>>, key: string, isExpected: (value: unknown) => boolean, notes: ResultNotes): unknown {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (!isExpected(value)) return void notes.add("RESULT_FIELD_INVALID", `${key} has the wrong type and was removed.`);
  const copy = copyJson(value);
  if (copy.ok) return copy.value;
  notes.add("RESULT_FIELD_INVALID", `${[key, copy.path].filter(Boolean).join(".")} ${copy.reason}; ${key} was removed.`);
  return undefined;
}

function logText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  if (value instanceof Error) return errorMessage(value);
  const copy = copyJson(value);
  return copy.ok ? JSON.stringify(copy.value) : `(a value that ${copy.reason})`;
}

function refuse(notes: ResultNotes, text: string): null {
  notes.add("RESULT_BINARY_INVALID", text);
  return null;
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 60)) : `of type ${typeof value}`;
}

/** What a model reads when the tool's answer has no text of its own. */
export const resultText = {
  noResult: "Tool returned no result",
  threw: "Invoking this tool produced an error. Detailed information is not available.",
  notJson: "Tool returned a result that cannot be represented in JSON.",
  unreadable: "Tool returned a result that cannot be read.",
  failedSilently: "Tool reported an error without details.",
  succeededSilently: "success",
} as const;

type Block = Readonly<Record<string, unknown>>;

/** Whether an object is a `CallToolResult` of the Model Context Protocol, and not just data with a `content`. */
function isCallToolResult(raw: Block): boolean {
  const { content } = raw;
  if (!Array.isArray(content)) return false;
  if (content.length === 0) return Object.keys(raw).every((key) => knownKeys.has(key));
  return content.every((block) => isRecord(block) && typeof block["type"] === "string") && content.some(isKnownBlock);
}

/**
 * Converts an MCP `CallToolResult`: text blocks joined by line breaks (the structured content when there is no text), images, audio and
 * embedded files as binaries, `isError` as a failure. Blocks, structured content and `_meta` are kept unchanged. A missing `content`
 * counts as empty.
 */
export function callToolResult(raw: Block, onDiagnostic?: (diagnostic: Diagnostic) => void): ToolResult {
  const notes = createNotes(onDiagnostic);
  const contents = keep(raw, "content", Array.isArray, notes);
  const structuredContent = keep(raw, "structuredContent", () => true, notes);
  const meta = keep(raw, "_meta", isRecord, notes);
  const blocks = Array.isArray(contents) ? contents.filter(isRecord) : [];
  const binaries = blocks.map((block) => binaryOf(block, notes)).filter((binary) => binary !== null);
  const isFailure = raw["isError"] === true;
  return {
    resultType: isFailure ? "failure" : "success",
    textResultForLlm: textFor(blocks, structuredContent, isFailure),
    ...(binaries.length > 0 && { binaryResultsForLlm: binaries }),
    ...(structuredContent !== undefined && { structuredContent }),
    ...(Array.isArray(contents) && { contents }),
    ...(isRecord(meta) && { meta }),
    ...(notes.texts.length > 0 && { sessionLog: notes.texts.join("\n") }),
  };
}

const knownKeys = new Set(["content", "isError", "structuredContent", "_meta", "resultType"]);

function isKnownBlock(block: Block): boolean {
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string";
    case "image":
    case "audio":
      return typeof block["data"] === "string";
    case "resource":
      return isRecord(block["resource"]);
    case "resource_link":
      return typeof block["uri"] === "string";
    default:
      return false;
  }
}

/** The text of blocks and structured content for a model. */
function textFor(blocks: readonly Block[], structuredContent: unknown, isFailure: boolean): string {
  const texts = blocks.map(textOf).filter((text) => text !== undefined);
  if (texts.length > 0) return texts.join("\n");
  if (structuredContent !== undefined) return JSON.stringify(structuredContent);
  return isFailure ? resultText.failedSilently : "";
}

function textOf(block: Block): string | undefined {
  if (block["type"] === "text" && typeof block["text"] === "string") return block["text"];
  if (block["type"] === "resource_link" && typeof block["uri"] === "string") {
    // A link is useful to a model only with its target.
    const { uri, name, title, description } = block;
    const label = [title, name].find((text) => typeof text === "string" && text !== "");
    const about = typeof description === "string" && description !== "" ? `: ${description}` : "";
    return `${label === undefined ? "" : `${label} `}<${uri}>${about}`;
  }
  const { resource } = block;
  if (block["type"] !== "resource" || !isRecord(resource)) return undefined;
  return typeof resource["text"] === "string" && resource["text"] !== "" ? resource["text"] : undefined;
}

function binaryOf(block: Block, notes: ResultNotes): BinaryResult | null {
  const { type, data, mimeType, resource } = block;
  if (type === "image" || type === "audio") {
    if (data === "" || data === undefined) return null;
    return toBinary({ data, mimeType, type: type === "image" ? "image" : "resource" }, notes);
  }
  if (type !== "resource" || !isRecord(resource) || typeof resource["blob"] !== "string" || resource["blob"] === "") return null;
  const { blob, uri } = resource;
  return toBinary({ data: blob, mimeType: resource["mimeType"] ?? "application/octet-stream", type: "resource", description: uri }, notes);
}

/** A `CallToolResult` of the Model Context Protocol. */
export interface CallToolResultBlocks {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError?: true;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/**
 * Converts a result to a `CallToolResult`, the inverse of `callToolResult`. Blocks, structured content and metadata from a server go out
 * unchanged, unless a hook has changed the text for the model; otherwise the text becomes a text block and the binaries become images,
 * audio and embedded files. With `hasOutputSchema`, a JSON answer of the tool becomes its structured content too. Data for the log stays
 * here.
 */
export function toCallToolResult(result: ToolResult, options: { readonly hasOutputSchema?: boolean } = {}): CallToolResultBlocks {
  const isError = result.resultType !== "success";
  const isChanged = wasChanged(result, isError);
  // Text that a hook removed must not go out as structured content.
  const structured = isChanged ? undefined : result.structuredContent;
  const structuredContent = structured === undefined && options.hasOutputSchema === true ? jsonOf(result) : structured;
  return {
    content: (isChanged ? undefined : keptBlocks(result)) ?? blocksOf(result),
    ...(structuredContent !== undefined && { structuredContent }),
    ...(isError && { isError }),
    ...(result.meta !== undefined && { _meta: result.meta }),
  };
}

/** Whether the text differs from what the blocks said originally. */
function wasChanged({ contents, structuredContent, textResultForLlm }: ToolResult, isError: boolean): boolean {
  return contents !== undefined && textFor(contents.filter(isRecord), structuredContent, isError) !== textResultForLlm;
}

/** The original blocks. Undefined: there are none, one is invalid, or one of their binaries was removed from the result. */
function keptBlocks({ contents, binaryResultsForLlm = [] }: ToolResult): readonly ContentBlock[] | undefined {
  if (!contents?.every(isBlock)) return undefined;
  const shown = new Set<unknown>(binaryResultsForLlm.map(({ data }) => data));
  return contents.map(dataOf).every((data) => data === undefined || shown.has(data)) ? contents : undefined;
}

/** Whether a block has the fields that the protocol requires for its type; servers may omit some. */
function isBlock(block: unknown): block is ContentBlock {
  if (!isRecord(block)) return false;
  const { type, text, data, mimeType, uri, name, resource } = block;
  if (type === "text") return typeof text === "string";
  if (type === "image" || type === "audio") return typeof data === "string" && typeof mimeType === "string";
  if (type === "resource_link") return typeof uri === "string" && typeof name === "string";
  if (type !== "resource" || !isRecord(resource)) return false;
  return typeof resource["uri"] === "string" && (typeof resource["text"] === "string" || typeof resource["blob"] === "string");
}

function dataOf({ type, data, resource }: ContentBlock): unknown {
  if (type === "image" || type === "audio") return data || undefined;
  return type === "resource" && isRecord(resource) ? resource["blob"] || undefined : undefined;
}

function blocksOf({ textResultForLlm, binaryResultsForLlm = [] }: ToolResult): readonly ContentBlock[] {
  const binaries = binaryResultsForLlm.map(toBlock);
  // A result without any block would look lost.
  return textResultForLlm === "" && binaries.length > 0 ? binaries : [{ type: "text", text: textResultForLlm }, ...binaries];
}

function toBlock({ data, mimeType, type, description }: BinaryResult, index: number): ContentBlock {
  if (type === "image" || mimeType.startsWith("image/")) return { type: "image", data, mimeType };
  if (mimeType.startsWith("audio/")) return { type: "audio", data, mimeType };
  const uri = description !== undefined && URL.canParse(description) ? description : `attachment:///${index + 1}`;
  return { type: "resource", resource: { uri, mimeType, blob: data } };
}

function jsonOf({ textResultForLlm, resultType }: ToolResult): unknown {
  if (resultType !== "success") return undefined;
  try {
    return JSON.parse(textResultForLlm);
  } catch {
    // The tool answered with plain text despite its schema, which the client can see.
    return undefined;
  }
}
