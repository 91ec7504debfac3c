import { stat } from "node:fs/promises";
import { faultText } from "../fault-texts.ts";
import { listFolder } from "../operations/list-folder.ts";
import { openFile, readHead, readWhole } from "../operations/open-file.ts";
import type { Place } from "../operations/places.ts";
import { type LineRange, readLines } from "../operations/read-lines.ts";
import { type Call, failure, placeFor, type WorkspaceTool } from "../workspace-tool.ts";
import { cutViewText, imageText, largeFileText } from "./copilot-texts.ts";

interface ViewArgs {
  readonly path: string;
  readonly view_range?: readonly [number, number];
  readonly forceReadLargeFiles?: boolean;
}

export const viewTool: WorkspaceTool<ViewArgs> = {
  name: "view",
  description: `Shows a file or folder.
- A text file is shown with line numbers, as "N. line". They are not part of the file.
- Use view_range for part of a file; a large file is shown only in parts.
- An image is shown as an image. A folder is shown as a list of its entries, one per line.`,
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "Path of the file or folder, absolute or relative to the working directory." },
      view_range: {
        type: "array",
        items: { type: "integer" },
        minItems: 2,
        maxItems: 2,
        description:
          "The first and last line to show, counted from 1. [11, 20] shows ten lines; -1 as the second number means the end of the file.",
      },
      forceReadLargeFiles: { type: "boolean", description: "Shows the file even if it is large. Default: false." },
    },
    required: ["path"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
  async describe({ path }, call) {
    const found = await placeFor(path, call, "read");
    if ("refusal" in found) return found;
    return { request: { kind: "read", intention: `View ${found.place.path}`, path: found.place.real }, places: [found.place] };
  },
  run: view,
};

/** Larger files are shown only in ranges. */
const maxWholeBytes = 20_000;
const maxForcedChars = 1_000_000;
const maxRangeChars = 50_000;
const maxNames = 1_000;
const maxImageBytes = 5 * 1024 * 1024;

async function view(args: ViewArgs, call: Call): Promise<unknown> {
  const found = await placeFor(args.path, call, "read");
  if ("refusal" in found) return failure(found.refusal);
  const { place } = found;
  const opened = await openFile(place);
  if (!opened.ok) return opened.fault === "folder" || (await isFolder(place)) ? viewFolder(place) : failure(faultText(opened.fault, place));
  const { file, size } = opened;
  try {
    const image = imageTypeOf(await readHead(file, 16));
    if (image !== undefined) return viewImage(await readWhole(file, size, maxImageBytes), image, place);
    const range = rangeOf(args.view_range);
    if (typeof range === "string") return failure(range);
    const isWhole = args.view_range === undefined;
    if (isWhole && size > maxWholeBytes && args.forceReadLargeFiles !== true) return largeFileText(size);
    const read = await readLines(file, range, isWhole ? maxForcedChars : maxRangeChars);
    if (read.kind === "binary") return failure(`File ${place.path} is binary and cannot be shown.`);
    if (read.lines.length === 0) return failure(`Invalid view_range: [${args.view_range?.join(", ")}]. The file has ${read.seen} lines.`);
    return toText(read.lines, range.from, read.cutAt);
  } finally {
    await file.close();
  }
}

/** An empty last line, as after a final line break, has no space after its number. */
function toText(lines: readonly string[], from: number, cutAt: number | undefined): string {
  const numbered = lines.map((line, index) => `${from + index}. ${line}`).join("\n");
  const text = lines.at(-1) === "" ? numbered.trimEnd() : numbered;
  return cutAt === undefined ? text : `${text}\n${cutViewText(cutAt)}`;
}

function rangeOf(range: readonly [number, number] | undefined): LineRange | string {
  if (range === undefined) return { from: 1, to: Number.POSITIVE_INFINITY };
  const [from, to] = range;
  if (from >= 1 && (to === -1 || to >= from)) return { from, to: to === -1 ? Number.POSITIVE_INFINITY : to };
  return `Invalid view_range: [${from}, ${to}]. Give the first and the last line, counted from 1, or -1 for the end of the file.`;
}

async function isFolder({ real }: Place): Promise<boolean> {
  const stats = await stat(real).catch(() => undefined);
  return stats?.isDirectory() === true;
}

async function viewFolder(place: Place): Promise<unknown> {
  const listing = await listFolder(place, maxNames);
  if (listing === undefined) return failure(faultText("unreadable", place));
  const more = listing.isPart ? [`[There are more than these ${maxNames} names. Use glob to find others.]`] : [];
  return listing.names.length === 0 ? "The folder is empty." : [...listing.names, ...more].join("\n");
}

function viewImage(bytes: Buffer | undefined, mimeType: string, { path }: Place): unknown {
  if (bytes === undefined) return failure(`The image ${path} is larger than the ${maxImageBytes / 1024 / 1024} MB that can be shown.`);
  const binary = { data: bytes.toString("base64"), mimeType, type: "image", description: `Image file at path ${path}` };
  return { textResultForLlm: imageText, resultType: "success", binaryResultsForLlm: [binary] };
}

const signatures: readonly (readonly [mimeType: string, at: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
];

/** The MIME type of an image that models can read, by its first bytes. Undefined: not such an image. */
function imageTypeOf(head: Buffer): string | undefined {
  return signatures.find(([, at, bytes]) => head.toString("latin1", at, at + bytes.length) === bytes)?.[0];
}
