import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

interface BuiltImport {
  readonly from: string;
  /** The source of the built module, relative to the root of the repository. */
  readonly source: string;
  readonly names: readonly string[];
}

/** The modules of the build that a benchmark or script imports: `built("a.js")`, `import("../build/dist/a.js")`, `import(new URL("a.js", dist))`. */
function builtImports(from: string): readonly BuiltImport[] {
  const text = readFileSync(join(root, from), "utf8");
  const base = /const dist = new URL\("[./]*build\/dist\/([^"]*)"/.exec(text)?.[1] ?? "";
  const imports =
    /(?:const \{([^}]*)\} = )?await (?:built\("([^"]+)"\)|import\("[./]*build\/dist\/([^"]+)"\)|import\(new URL\("([^"]+)", dist\)\))/g;
  return [...text.matchAll(imports)].map(([, names = "", ofBench, ofDist, ofBase]) => ({
    from,
    source: `src/${ofBench ?? ofDist ?? `${base}${ofBase}`}`.replace(/^src\/plugins\//, "plugins/").replace(/\.js$/, ".ts"),
    names: names.split(",").flatMap((name) => /\w+/.exec(name)?.[0] ?? []),
  }));
}

const files = ["bench", "bench/peers", "scripts"].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".mjs"))
    .map((name) => `${folder}/${name}`),
);
const imports = files.flatMap(builtImports);

test("benchmarks and scripts import modules of the build", () => {
  expect(new Set(imports.map(({ from }) => from)).size).toBeGreaterThan(10);
});

test.each(imports)("$from imports what $source exports", async ({ source, names }) => {
  const module: object = await import(pathToFileURL(join(root, source)).href);
  expect(Object.keys(module)).toEqual(expect.arrayContaining([...names]));
});
