import { relative, sep } from "node:path";
import type { Place } from "../operations/places.ts";
import type { FileFilter } from "../operations/search-tree.ts";
import { nearness, readTestName, type TestName } from "../operations/test-names.ts";
import { type Call, failure, type PresentedTool, placeFor, type Refusal } from "../presented-tool.ts";
import { describeSearch, type SearchedFile, searchFiles } from "./search-base.ts";

interface FindTestsArgs {
  readonly filePaths: readonly string[];
}

export const findTestFilesTool: PresentedTool<FindTestsArgs> = {
  name: "find_test_files",
  description: "Finds the test files of source files, and the source files of test files, by name.",
  parameters: {
    type: "object",
    properties: {
      filePaths: {
        type: "array",
        items: { type: "string" },
        minItems: 1,
        maxItems: 50,
        description: "The absolute paths of source files or of test files.",
      },
    },
    required: ["filePaths"],
  },
  annotations: { readOnlyHint: true },
  timeout: 60_000,
  overridesBuiltInTool: true,
  async describe({ filePaths }, call) {
    const described = await describeSearch(".", "Find test files", call);
    if ("refusal" in described) return described;
    const places = [...(described.places ?? [])];
    for (const path of filePaths) {
      const found = await placeFor(path, call, "read");
      if ("refusal" in found) return found;
      places.push(found.place);
    }
    return { request: described.request, places };
  },
  async run({ filePaths }, call) {
    const wanted: Wanted[] = [];
    for (const path of filePaths) {
      const found = await toWanted(path, call);
      if ("refusal" in found) return failure(found.refusal);
      wanted.push(found);
    }
    const search = await searchFiles(".", everyFile, call, (file) => {
      for (const each of wanted) consider(each, file);
      return true;
    });
    if ("refusal" in search) return failure(search.refusal);
    const note = search.isPart ? ["[The workspace is too large to look through all of it.]"] : [];
    return [...wanted.map(toText), ...note].join("\n\n");
  },
};

const everyFile: FileFilter = { hidden: false, accepts: () => true };

interface Wanted {
  readonly place: Place;
  /** From the working directory. */
  readonly names: readonly string[];
  /** Undefined: it is no source file. */
  readonly own: TestName | undefined;
  readonly found: { readonly shown: string; readonly nearness: number }[];
}

async function toWanted(path: string, call: Call): Promise<Wanted | Refusal> {
  const here = await placeFor(".", call, "read");
  if ("refusal" in here) return here;
  const found = await placeFor(path, call, "read");
  if ("refusal" in found) return found;
  const names = relative(here.place.real, found.place.real).split(sep);
  return { place: found.place, names, own: readTestName(names), found: [] };
}

function consider({ own, names, found }: Wanted, file: SearchedFile): void {
  const other = readTestName(file.names);
  if (own === undefined || other === undefined || other.family !== own.family || other.subject !== own.subject) return;
  if (other.isTest !== own.isTest) found.push({ shown: file.shown, nearness: nearness(names, file.names) });
}

const maxShown = 10;

function toText({ place, own, found }: Wanted): string {
  if (own === undefined) return `${place.path} is not a source file whose tests can be found by name.`;
  const what = own.isTest ? "source" : "test";
  if (found.length === 0) return `No ${what} files found for ${place.path}`;
  const sorted = found.toSorted((a, b) => b.nearness - a.nearness || (a.shown < b.shown ? -1 : 1)).slice(0, maxShown);
  return [`The ${what} files of ${place.path}, the likeliest first:`, ...sorted.map(({ shown }) => shown)].join("\n");
}
