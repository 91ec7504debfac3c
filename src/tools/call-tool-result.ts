import type { Diagnostic } from "../base/diagnostic.ts";
import { resultText } from "./result-text.ts";
import type { BinaryResult, ToolResult } from "./tool.ts";
import { createNotes, keep, type ResultNotes, toBinary } from "./tool-result-object.ts";
import { isRecord } from "./walk-schema.ts";

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
export function textFor(blocks: readonly Block[], structuredContent: unknown, isFailure: boolean): string {
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
