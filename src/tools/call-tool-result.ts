import type { Diagnostic } from "../base/diagnostic.ts";
import type { ContentBlock } from "./prompt.ts";
import { isRecord } from "./schema/walk-schema.ts";
import type { BinaryResult, ToolResult } from "./tool.ts";
import { createNotes, keep, type ResultNotes, resultText, toBinary } from "./tool-result-object.ts";

type Block = Readonly<Record<string, unknown>>;

/** Whether an object is a `CallToolResult` of the Model Context Protocol, and not just data with a `content`. */
export function isCallToolResult(raw: Block): boolean {
  const { content } = raw;
  if (!Array.isArray(content)) return false;
  if (content.length === 0) return Object.keys(raw).every((key) => knownKeys.has(key));
  return content.every((block) => isRecord(block) && typeof block["type"] === "string") && content.some(isKnownBlock);
}

/**
 * Converts an MCP `CallToolResult`: text blocks joined by line breaks (the structured content when there is no text),
 * images, audio and embedded files as binaries, `isError` as a failure. Blocks, structured content and `_meta` are kept
 * as they came. A missing `content` is empty.
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

/** What a model reads of blocks and structured content. */
function textFor(blocks: readonly Block[], structuredContent: unknown, isFailure: boolean): string {
  const texts = blocks.map(textOf).filter((text) => text !== undefined);
  if (texts.length > 0) return texts.join("\n");
  if (structuredContent !== undefined) return JSON.stringify(structuredContent);
  return isFailure ? resultText.failedSilently : "";
}

function textOf(block: Block): string | undefined {
  if (block["type"] === "text" && typeof block["text"] === "string") return block["text"];
  if (block["type"] === "resource_link" && typeof block["uri"] === "string") return linkText(block);
  const { resource } = block;
  if (block["type"] !== "resource" || !isRecord(resource)) return undefined;
  return typeof resource["text"] === "string" && resource["text"] !== "" ? resource["text"] : undefined;
}

/** A link is only of use to a model that reads where it leads. */
function linkText({ uri, name, title, description }: Block): string {
  const label = [title, name].find((text) => typeof text === "string" && text !== "");
  const about = typeof description === "string" && description !== "" ? `: ${description}` : "";
  return `${label === undefined ? "" : `${label} `}<${uri}>${about}`;
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
 * Converts a result into a `CallToolResult`, the other way than `callToolResult`: blocks, structured content and meta
 * data that came from a server go out as they came, unless a hook has changed what the model reads; otherwise the text is
 * a text block and the binaries are images, audio and embedded files. With `hasOutputSchema` the JSON that a tool answered
 * with is its structured content too. Nothing that is only for the log goes out.
 */
export function toCallToolResult(result: ToolResult, options: { readonly hasOutputSchema?: boolean } = {}): CallToolResultBlocks {
  const isError = result.resultType !== "success";
  const isChanged = wasChanged(result, isError);
  // What a hook took out of the text must not go out beside it.
  const structured = isChanged ? undefined : result.structuredContent;
  const structuredContent = structured === undefined && options.hasOutputSchema === true ? jsonOf(result) : structured;
  return {
    content: (isChanged ? undefined : keptBlocks(result)) ?? blocksOf(result),
    ...(structuredContent !== undefined && { structuredContent }),
    ...(isError && { isError }),
    ...(result.meta !== undefined && { _meta: result.meta }),
  };
}

/** Whether the text is another than the one that the blocks gave when they came. */
function wasChanged({ contents, structuredContent, textResultForLlm }: ToolResult, isError: boolean): boolean {
  return contents !== undefined && textFor(contents.filter(isRecord), structuredContent, isError) !== textResultForLlm;
}

/** The blocks as they came. Undefined: there are none, one is faulty, or a binary of them is not part of the result (any more). */
function keptBlocks({ contents, binaryResultsForLlm = [] }: ToolResult): readonly ContentBlock[] | undefined {
  if (!contents?.every(isBlock)) return undefined;
  const shown = new Set<unknown>(binaryResultsForLlm.map(({ data }) => data));
  return contents.map(dataOf).every((data) => data === undefined || shown.has(data)) ? contents : undefined;
}

/** Whether a block has what the protocol demands of its type. Whoever sent it may have left things out. */
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
  // A result without any block would look like one that was lost.
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
    // The tool answered with a text, whatever its schema says: whoever asked sees that.
    return undefined;
  }
}
