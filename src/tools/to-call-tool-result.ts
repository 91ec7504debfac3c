import { textFor } from "./call-tool-result.ts";
import type { ContentBlock } from "./prompt.ts";
import type { BinaryResult, ToolResult } from "./tool.ts";
import { isRecord } from "./walk-schema.ts";

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
