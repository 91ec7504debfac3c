import { relative, sep } from "node:path";
import type { Place } from "../operations/places.ts";
import type { FileFilter } from "../operations/search-tree.ts";
import { type Call, failure, placeFor, type Refusal, type WorkspaceTool } from "../workspace-tool.ts";
import { describeSearch, type SearchedFile, searchFiles } from "./search-base.ts";

interface FindTestsArgs {
  readonly filePaths: readonly string[];
}

export const findTestFilesTool: WorkspaceTool<FindTestsArgs> = {
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
  /** Relative to the working directory. */
  readonly names: readonly string[];
  /** Undefined: not a source file. */
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

/** What the name of a file says about the code that it tests. */
export interface TestName {
  /** The name that a file and its tests share, in lower case. */
  readonly subject: string;
  readonly isTest: boolean;
  /** Languages whose files test each other. */
  readonly family: string;
}

// The conventions of test runners and build tools: `a.test.ts`, `a_spec.rb`, `test_a.py`, `ATests.java`.
const before = /^test[_.-](?<subject>.+)$/i;
const after = /^(?<subject>.+?)(?:[._-](?:test|tests|spec|specs|e2e|it)|(?<=[a-z0-9])(?:Test|Tests|Spec|IT|TestCase))$/;
const javaBefore = /^Test(?<subject>[A-Z].*)$/;

/**
 * Reads the path of a file by the conventions of test runners. Undefined: its language is not known.
 * @internal Exported for tests.
 */
export function readTestName(names: readonly string[]): TestName | undefined {
  const name = names.at(-1) ?? "";
  const dot = name.lastIndexOf(".");
  const [stem, extension] = [name.slice(0, dot), name.slice(dot + 1).toLowerCase()];
  const family = Object.hasOwn(families, extension) ? families[extension] : undefined;
  if (dot < 1 || family === undefined) return undefined;
  const { subject } = (after.exec(stem) ?? before.exec(stem) ?? (family === "jvm" ? javaBefore.exec(stem) : null))?.groups ?? {};
  const isTest = subject !== undefined || names.slice(0, -1).some((folder) => /^(tests?|__tests__|specs?|e2e)$/i.test(folder));
  return { subject: (subject ?? stem).toLowerCase(), isTest, family };
}

const families: Readonly<Record<string, string>> = {
  ...of("web", "js jsx ts tsx mjs cjs mts cts vue svelte"),
  ...of("python", "py pyi"),
  ...of("jvm", "java kt kts groovy scala"),
  ...of("go", "go"),
  ...of("rust", "rs"),
  ...of("ruby", "rb"),
  ...of("php", "php"),
  ...of("dotnet", "cs fs vb"),
  ...of("c", "c cc cpp cxx h hpp m mm"),
  ...of("swift", "swift"),
  ...of("dart", "dart"),
  ...of("elixir", "ex exs"),
  ...of("shell", "sh bash bats"),
};

function of(family: string, extensions: string): Readonly<Record<string, string>> {
  return Object.fromEntries(extensions.split(" ").map((extension) => [extension, family]));
}

/** Folders whose names only separate tests from sources. */
const plain: ReadonlySet<string> = new Set(
  "test tests __tests__ spec specs e2e unit integration src main lib app java kotlin python".split(" "),
);

/** How similar two paths are: common folders with a meaning, counted from the file upwards. */
function nearness(one: readonly string[], other: readonly string[]): number {
  const [a, b] = [one, other].map((names) =>
    names
      .slice(0, -1)
      .filter((name) => !plain.has(name.toLowerCase()))
      .reverse(),
  );
  let common = 0;
  while (common < a!.length && common < b!.length && a![common] === b![common]) common++;
  const apart = a!.length + b!.length - 2 * common;
  return common * 10 - apart;
}
