/** What the name of a file says of what it tests. */
export interface TestName {
  /** What both the tested file and its tests are called by, in small letters. */
  readonly subject: string;
  readonly isTest: boolean;
  /** Languages that take each other's files for one. */
  readonly family: string;
}

// As test runners and build tools find them: `a.test.ts`, `a_spec.rb`, `test_a.py`, `ATests.java`.
const before = /^test[_.-](?<subject>.+)$/i;
const after = /^(?<subject>.+?)(?:[._-](?:test|tests|spec|specs|e2e|it)|(?<=[a-z0-9])(?:Test|Tests|Spec|IT|TestCase))$/;
const javaBefore = /^Test(?<subject>[A-Z].*)$/;

/** Reads the names that lead to a file by the customs of test runners. Undefined: it is of no language that has such. */
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

/** Folders that say that what is in them are tests, or sources, and nothing of which. */
const plain: ReadonlySet<string> = new Set(
  "test tests __tests__ spec specs e2e unit integration src main lib app java kotlin python".split(" "),
);

/** How much two paths have in common: the folders that say something, counted from the file. */
export function nearness(one: readonly string[], other: readonly string[]): number {
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
