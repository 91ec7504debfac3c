import { dirname, sep } from "node:path";
import { Draft, type FileChange } from "../operations/draft.ts";
import type { TextFault } from "../operations/open-file.ts";
import type { Place } from "../operations/places.ts";
import { encodeText } from "../operations/text-encoding.ts";
import { unifiedDiff } from "../operations/unified-diff.ts";
import type { FileWriter } from "../operations/write-files.ts";
import { type Call, type Described, failure, placeFor, type Refusal, type WorkspaceTool } from "../workspace-tool.ts";
import { textFaultText, unwritableText } from "./editor-texts.ts";

/** A tool that changes files. It drafts its changes twice: first to describe them, then to make them. */
export interface EditTool<Args> extends Pick<WorkspaceTool<Args>, "name" | "description" | "parameters"> {
  /** The files that a call changes. */
  paths(args: Args): readonly string[] | Refusal;
  draft(args: Args, files: DraftedFiles): Promise<Refusal | undefined>;
  /** Describes the intended change to the user if it cannot be drafted yet, since an earlier edit may have to be made first. Absent: such a call is refused. */
  sketch?(args: Args): string;
  /** The result for the model. */
  done(changes: readonly FileChange[], args: Args): string;
}

/** The files of one call, by the paths in its arguments. */
export class DraftedFiles {
  readonly #draft = new Draft();
  readonly #places: ReadonlyMap<string, Place>;

  constructor(places: ReadonlyMap<string, Place>) {
    this.#places = places;
  }

  get changes(): readonly FileChange[] {
    return this.#draft.changes;
  }

  place(path: string): Place {
    return this.#places.get(path)!;
  }

  /** The text of a file. Undefined: the file does not exist. */
  async find(path: string): Promise<{ readonly text: string | undefined } | Refusal> {
    const read = await this.#draft.read(this.place(path));
    if (read.ok) return read;
    return read.fault === "missing" ? { text: undefined } : this.#refusal(read.fault, path);
  }

  async read(path: string): Promise<{ readonly text: string } | Refusal> {
    const read = await this.#draft.read(this.place(path));
    return read.ok ? read : this.#refusal(read.fault, path);
  }

  async write(path: string, text: string): Promise<Refusal | undefined> {
    return this.#refusalOf(await this.#draft.write(this.place(path), text), path);
  }

  async remove(path: string): Promise<Refusal | undefined> {
    return this.#refusalOf(await this.#draft.remove(this.place(path)), path);
  }

  async move(from: string, to: string, text: string): Promise<Refusal | undefined> {
    return this.#refusalOf(await this.#draft.move(this.place(from), this.place(to), text), to);
  }

  #refusalOf(fault: TextFault | undefined, path: string): Refusal | undefined {
    return fault === undefined ? undefined : this.#refusal(fault, path);
  }

  #refusal(fault: TextFault, path: string): Refusal {
    return { refusal: textFaultText(fault, this.place(path)) };
  }
}

export function toWorkspaceTool<Args>(tool: EditTool<Args>, writer: FileWriter): WorkspaceTool<Args> {
  const { name, description, parameters } = tool;
  return {
    name,
    description,
    parameters,
    overridesBuiltInTool: true,
    describe: (args, call) => describe(tool, args, call),
    async run(args, call) {
      const places = await placesOf(tool, args, call);
      if ("refusal" in places) return failure(places.refusal);
      return writer.alone([...places.values()], () => edit(tool, args, { places, call, writer }));
    },
  };
}

type Places = ReadonlyMap<string, Place>;

async function placesOf<Args>(tool: EditTool<Args>, args: Args, call: Call): Promise<Places | Refusal> {
  const paths = tool.paths(args);
  if ("refusal" in paths) return paths;
  const places = new Map<string, Place>();
  for (const path of paths) {
    const found = await placeFor(path, call, "write");
    if ("refusal" in found) return found;
    places.set(path, found.place);
  }
  return places;
}

/** Longer contents are not sent in addition to the diff. */
const maxContents = 100_000;

async function describe<Args>(tool: EditTool<Args>, args: Args, call: Call): Promise<Described | Refusal> {
  const named = await placesOf(tool, args, call);
  if ("refusal" in named) return named;
  const places = [...new Map([...named.values()].map((place) => [place.real, place])).values()];
  const files = new DraftedFiles(named);
  const refusal = await tool.draft(args, files);
  if (refusal !== undefined && tool.sketch === undefined) return refusal;
  const { changes } = files;
  const diff = refusal === undefined ? changes.map(diffOf).join("\n") : tool.sketch!(args);
  const only = changes.length === 1 && refusal === undefined ? changes[0]!.after : undefined;
  const reals = places.map(({ real }) => real);
  const request = {
    kind: "write",
    intention: places.length === 1 ? `Edit ${places[0]!.path}` : `Edit ${places.length} files`,
    fileName: commonPath(reals),
    ...(reals.length > 1 && { possiblePaths: reals }),
    diff,
    ...(only !== undefined && only.length <= maxContents && { newFileContents: only }),
    canOfferSessionApproval: true,
  };
  return { request, places };
}

/** The only file, or the folder that contains all of them. */
function commonPath(reals: readonly string[]): string {
  let [common = ""] = reals;
  while (reals.some((real) => real !== common && !real.startsWith(common.endsWith(sep) ? common : common + sep))) common = dirname(common);
  return common;
}

function diffOf({ place, before, after }: FileChange): string {
  return unifiedDiff(place.path, before?.text, after);
}

interface EditCall {
  readonly places: Places;
  readonly call: Call;
  readonly writer: FileWriter;
}

async function edit<Args>(tool: EditTool<Args>, args: Args, { places, call, writer }: EditCall): Promise<unknown> {
  const files = new DraftedFiles(places);
  const refusal = await tool.draft(args, files);
  if (refusal !== undefined) return failure(refusal.refusal);
  const { changes } = files;
  const fault = await writer.commit(changes);
  if (fault !== undefined) return failure(unwritableText(fault.place.path, changes.length > 1));
  for (const { place, before, after } of changes) {
    if (after !== undefined)
      call.context.fileChanged(place.path, after, { before: before === undefined ? null : encodeText(before.text, before) });
  }
  return tool.done(changes, args);
}
