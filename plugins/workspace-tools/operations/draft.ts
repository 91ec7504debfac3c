import { readText, type TextFault } from "./open-file.ts";
import type { Place } from "./places.ts";
import type { DecodedText } from "./text-encoding.ts";

/** A file as it is and as it is to be. */
export interface FileChange {
  readonly place: Place;
  /** Undefined: it is not there yet. */
  readonly before: DecodedText | undefined;
  /** Undefined: it goes. */
  readonly after: string | undefined;
  /** The permissions that a new file gets; undefined: the usual ones. */
  readonly mode: number | undefined;
}

export type DraftText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly fault: TextFault };

interface DraftFile {
  readonly place: Place;
  readonly before: DecodedText | undefined;
  readonly ownMode: number | undefined;
  after: string | undefined;
  mode: number | undefined;
}

/** Changes of files that are thought through before any of them is made: each step sees what those before it did. */
export class Draft {
  readonly #files = new Map<string, DraftFile>();

  /** What differs from the files as they were read, in the order in which they were first looked at. */
  get changes(): readonly FileChange[] {
    return [...this.#files.values()].filter(({ before, after }) => before?.text !== after);
  }

  async read(place: Place): Promise<DraftText> {
    const file = await this.#find(place);
    if (typeof file === "string") return { ok: false, fault: file };
    return file.after === undefined ? { ok: false, fault: "missing" } : { ok: true, text: file.after };
  }

  /** Also makes a file that is not there. Otherwise why it cannot be. */
  async write(place: Place, text: string): Promise<TextFault | undefined> {
    const file = await this.#find(place);
    if (typeof file === "string") return file;
    file.after = text;
    return undefined;
  }

  async remove(place: Place): Promise<TextFault | undefined> {
    const file = await this.#find(place);
    if (typeof file === "string") return file;
    if (file.after === undefined) return "missing";
    file.after = undefined;
    return undefined;
  }

  /** The new file may be run by whoever could run the old one. */
  async move(from: Place, to: Place, text: string): Promise<TextFault | undefined> {
    const source = await this.#find(from);
    const fault = (await this.remove(from)) ?? (await this.write(to, text));
    const target = await this.#find(to);
    if (typeof source !== "string" && typeof target !== "string") target.mode = source.ownMode;
    return fault;
  }

  async #find(place: Place): Promise<DraftFile | TextFault> {
    const known = this.#files.get(place.real);
    if (known !== undefined) return known;
    const read = await readText(place);
    if (typeof read === "string" && read !== "missing") return read;
    const before = typeof read === "string" ? undefined : read.decoded;
    const ownMode = typeof read === "string" ? undefined : read.mode;
    const file: DraftFile = { place, before, after: before?.text, ownMode, mode: undefined };
    this.#files.set(place.real, file);
    return file;
  }
}
