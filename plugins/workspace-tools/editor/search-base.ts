import { join, sep } from "node:path";
import { missingText } from "../fault-texts.ts";
import type { Place } from "../operations/places.ts";
import { type FileFilter, filesOf, toSearchRoot } from "../operations/search-tree.ts";
import { SearchSteps } from "../operations/walk-files.ts";
import { boundsOf, type Call, type Described, placeFor, type Refusal } from "../workspace-tool.ts";

/** The folder where a search begins, and the pattern relative to it. */
export interface SearchBase {
  /** As the call names it. */
  readonly folder: string;
  readonly pattern: string;
}

/** An absolute pattern starts at the folder that its names without wildcards lead to. */
export function baseOf(pattern: string): SearchBase {
  const local = sep === "\\" ? pattern.replaceAll("\\", "/") : pattern;
  if (!/^(\/|[a-z]:\/)/i.test(local)) return { folder: ".", pattern: local.replace(/^(\.\/+)+/, "") };
  const names = local.split("/");
  const wild = names.findIndex((name) => /[*?[{]/.test(name));
  const end = wild === -1 ? names.length : wild;
  return { folder: names.slice(0, end).join("/") || "/", pattern: names.slice(end).join("/") };
}

/** The permission request to read everything below a folder. */
export async function describeSearch(folder: string, intention: string, call: Call): Promise<Described | Refusal> {
  const found = await placeFor(folder, call, "read");
  if ("refusal" in found) return found;
  return { request: { kind: "read", intention, path: found.place.real }, places: [found.place] };
}

export interface SearchedFile {
  /** Absolute, and below the folder as the call names it. */
  readonly shown: string;
  /** With links resolved. */
  readonly path: string;
  /** Relative to the searched folder. */
  readonly names: readonly string[];
  readonly steps: SearchSteps;
}

/** Visits the files of a search until `visit` stops it. `isPart`: the step limit ended it early. */
export async function searchFiles(
  folder: string,
  filter: FileFilter,
  call: Call,
  visit: (file: SearchedFile) => Promise<boolean> | boolean,
): Promise<{ readonly isPart: boolean } | Refusal> {
  const found = await placeFor(folder, call, "read");
  if ("refusal" in found) return found;
  const root = await toSearchRoot(found.place);
  if (root === undefined) return { refusal: missingText(found.place.path) };
  const steps = new SearchSteps();
  const files = filesOf(root, filter, boundsOf(call, steps));
  for (let step = await files.next(); ; step = await files.next()) {
    if (step.done === true) return { isPart: step.value };
    const { path, names } = step.value;
    if (!(await visit({ shown: shownPath(found.place, names), path, names, steps })) || steps.areSpent) return { isPart: true };
  }
}

function shownPath({ path }: Place, names: readonly string[]): string {
  return join(path, ...names);
}
