import { extname } from "node:path";
import { faultText } from "../fault-texts.ts";
import { maxEditedBytes, openFile, readWhole } from "../operations/open-file.ts";
import { readLines } from "../operations/read-lines.ts";
import { decodeText } from "../operations/text-encoding.ts";
import { type Call, failure, placeFor, type WorkspaceTool } from "../workspace-tool.ts";

interface ReadArgs {
  readonly filePath: string;
  readonly startLineNumberBaseOne?: number;
  readonly endLineNumberBaseOne?: number;
  readonly offset?: number;
  readonly limit?: number;
}

const maxLines = 2_000;
const maxChars = 50_000;

export const readFileTool: WorkspaceTool<ReadArgs> = {
  name: "read_file",
  description: `Reads a text file or a range of its lines, at most ${maxLines} at once. Prefer one large range to several small ones.`,
  parameters: {
    type: "object",
    properties: {
      filePath: { type: "string", description: "The absolute path of the file to read." },
      startLineNumberBaseOne: { type: "number", description: "The first line to read, counted from 1. Default: 1." },
      endLineNumberBaseOne: { type: "number", description: "The last line to read, counted from 1. Default: the end of the file." },
      offset: { type: "number", description: "The same as startLineNumberBaseOne." },
      limit: { type: "number", description: "Maximum number of lines to read." },
    },
    required: ["filePath"],
  },
  annotations: { readOnlyHint: true },
  overridesBuiltInTool: true,
  async describe({ filePath }, call) {
    const found = await placeFor(filePath, call, "read");
    if ("refusal" in found) return found;
    return { request: { kind: "read", intention: `Read ${found.place.path}`, path: found.place.real }, places: [found.place] };
  },
  run: read,
};

interface Part {
  readonly lines: readonly string[];
  /** Undefined: the file is too large to count its lines. */
  readonly total: number | undefined;
}

async function read(args: ReadArgs, call: Call): Promise<unknown> {
  const { filePath } = args;
  const found = await placeFor(filePath, call, "read");
  if ("refusal" in found) return failure(found.refusal);
  const { place } = found;
  const opened = await openFile(place);
  if (!opened.ok) return failure(faultText(opened.fault, place));
  const range = rangeOf(args);
  try {
    const bytes = await readWhole(opened.file, opened.size, maxEditedBytes);
    const part = bytes === undefined ? await readPart(opened.file, range) : partOf(bytes, range);
    if (part === undefined) return failure(`File ${place.path} is binary and cannot be read as text.`);
    return part.lines.length === 0 ? nothingRead(filePath, range, part, bytes) : toText(filePath, range, part);
  } finally {
    await opened.file.close();
  }
}

/** Both are inclusive and counted from 1. */
interface Range {
  readonly from: number;
  readonly to: number;
  /** Whether the range goes to the end of the file. */
  readonly isOpen: boolean;
}

function rangeOf({ startLineNumberBaseOne, endLineNumberBaseOne, offset, limit }: ReadArgs): Range {
  const from = Math.max(1, Math.floor(startLineNumberBaseOne ?? offset ?? 1));
  const ends = [endLineNumberBaseOne, limit === undefined ? undefined : from + Math.max(1, limit) - 1].filter((end) => end !== undefined);
  const end = Math.floor(Math.min(...ends, Number.MAX_SAFE_INTEGER));
  return { from, to: Math.min(end, from + maxLines - 1), isOpen: end > from + maxLines - 1 };
}

function partOf(bytes: Buffer, { from, to }: Range): Part | undefined {
  const decoded = decodeText(bytes);
  if (decoded === undefined) return undefined;
  const all = decoded.text.split("\n");
  // The text after the last line break is not a line.
  if (all.at(-1) === "") all.pop();
  const lines = all.slice(from - 1, to).map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  return { lines: cut(lines), total: all.length };
}

async function readPart(file: Parameters<typeof readLines>[0], range: Range): Promise<Part | undefined> {
  const found = await readLines(file, range, maxChars);
  return found.kind === "binary" ? undefined : { lines: found.lines, total: undefined };
}

/** As many lines as fit; a single longer line is cut. */
function cut(lines: readonly string[]): readonly string[] {
  let chars = 0;
  const end = lines.findIndex((line) => {
    chars += line.length + 1;
    return chars > maxChars;
  });
  if (end === -1) return lines;
  return end === 0 ? [lines[0]!.slice(0, maxChars)] : lines.slice(0, end);
}

function toText(filePath: string, { from, to, isOpen }: Range, { lines, total }: Part): string {
  const last = from + lines.length - 1;
  const isCut = total === undefined ? last < to || isOpen : last < Math.min(to, total) || (isOpen && last < total);
  const counted = total === undefined ? "It is too large for its lines to be counted." : `Total ${total} lines.`;
  const fence = fenceFor(lines);
  return [
    `File \`${filePath}\`. ${counted} Line range (1-based) ${from} to ${last}:`,
    `${fence}${extname(filePath).slice(1)}`,
    ...lines,
    fence,
    ...(isCut ? [`[File content truncated at line ${last}. Use read_file with startLineNumberBaseOne ${last + 1} to view more.]`] : []),
  ].join("\n");
}

/** Longer than any fence in the lines. */
function fenceFor(lines: readonly string[]): string {
  const longest = lines.reduce((most, line) => Math.max(most, /^\s*(`{3,})/.exec(line)?.[1]?.length ?? 0), 2);
  return "`".repeat(longest + 1);
}

function nothingRead(filePath: string, { from, to }: Range, { total }: Part, bytes: Buffer | undefined): unknown {
  if (bytes?.length === 0) return `The file \`${filePath}\` exists, but is empty.`;
  const counted = total === undefined ? "fewer" : String(total);
  return failure(`There are no lines ${from} to ${to}: the file \`${filePath}\` has ${counted} lines.`);
}
