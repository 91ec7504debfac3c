import { sep } from "node:path";
import { missingText } from "../fault-texts.ts";
import type { Place } from "../operations/places.ts";
import { type SearchRoot, toSearchRoot } from "../operations/search-tree.ts";
import { type Call, type Described, placeFor, type Refusal } from "../workspace-tool.ts";

/** The arguments for the places to search. Models also write `path`. */
export interface SearchPlaces {
  readonly paths?: string | readonly string[];
  readonly path?: string;
}

export const placeParameters = {
  paths: {
    anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }],
    description: "File or folder to search, or a list of them. Default: the working directory.",
  },
  path: { type: "string", description: "A single path; the same as paths." },
} as const;

/** A search root and the way in which its results are shown. */
export interface ShownRoot {
  readonly root: SearchRoot;
  /** Precedes the path of a file relative to the root. */
  readonly prefix: string;
}

const maxPlaces = 100;

function namedPlaces({ paths, path }: SearchPlaces): readonly string[] {
  const named = paths ?? path ?? [];
  const list = typeof named === "string" ? [named] : named;
  return list.length === 0 ? ["."] : list;
}

/** The permission request to read all of these places. */
export async function describeSearch(args: SearchPlaces, intention: string, call: Call): Promise<Described | Refusal> {
  const places: Place[] = [];
  const named = namedPlaces(args);
  if (named.length > maxPlaces) return { refusal: `There are more than ${maxPlaces} paths. Name folders that hold them.` };
  for (const path of named) {
    const found = await placeFor(path, call, "read");
    if ("refusal" in found) return found;
    places.push(found.place);
  }
  const reals = places.map(({ real }) => real);
  return { request: { kind: "read", intention, path: commonFolder(reals), ...(reals.length > 1 && { possiblePaths: reals }) }, places };
}

/** The same places as search roots. */
export async function rootsFor(args: SearchPlaces, call: Call): Promise<readonly ShownRoot[] | Refusal> {
  const roots: ShownRoot[] = [];
  for (const path of namedPlaces(args).slice(0, maxPlaces)) {
    const found = await placeFor(path, call, "read");
    if ("refusal" in found) return found;
    const root = await toSearchRoot(found.place);
    if (root === undefined) return { refusal: missingText(path) };
    roots.push({ root, prefix: root.isFolder ? prefixOf(path) : path });
  }
  return roots;
}

/** As in ripgrep, results begin with the path that was given. */
function prefixOf(path: string): string {
  if (path === "." || path === "./") return "./";
  return path.endsWith("/") || path.endsWith(sep) ? path : `${path}/`;
}

/** The folder that contains all of several paths: the path that rules apply to. */
function commonFolder([first = "", ...others]: readonly string[]): string {
  let names = first.split(sep);
  for (const other of others) {
    const theirs = other.split(sep);
    const end = names.findIndex((name, index) => name !== theirs[index]);
    if (end !== -1) names = names.slice(0, end);
  }
  return names.join(sep) || sep;
}
