import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));
const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.split(sep).join("/"))
  .sort();
const textOf = (file: string): string => readFileSync(resolve(source, file), "utf8");

/** The files that each file imports, including types and dynamic imports. */
function importGraph(): ReadonlyMap<string, readonly string[]> {
  const targets = (file: string): string[] =>
    [...textOf(file).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, specifier]) =>
      relative(source, resolve(source, dirname(file), specifier as string))
        .split(sep)
        .join("/"),
    );
  return new Map(files.map((file) => [file, targets(file)]));
}

/** Groups of files that import each other, directly or through others (Tarjan's strongly connected components). */
function findCycles(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const cycles: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.size - 1);
    open.push(file);
    for (const target of graph.get(file) ?? []) {
      if (!order.has(target)) visit(target);
      if (open.includes(target)) lowest.set(file, Math.min(lowest.get(file) as number, lowest.get(target) as number));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const group = open.splice(open.indexOf(file));
    if (group.length > 1 || graph.get(file)?.includes(file)) cycles.push(group.sort());
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return cycles;
}

/** Names that are declared more than once, with their files. */
function repeated(uses: readonly (readonly [name: string, file: string])[]): Record<string, readonly string[]> {
  const files = new Map<string, Set<string>>();
  for (const [name, file] of uses) files.set(name, (files.get(name) ?? new Set()).add(file));
  const repeats = [...files].filter(([, found]) => found.size > 1);
  return Object.fromEntries(repeats.map(([name, found]) => [name, [...found]]));
}

// A file in one of these folders is a namespace of the protocol or a command.
const namedByOthers = ["servers/copilot/methods/", "cli/commands/"];

test("no files import each other in a cycle, including types and dynamic imports", () => {
  expect(findCycles(importGraph())).toEqual([]);
});

test("each file has a unique name", () => {
  const own = files.filter((file) => !namedByOthers.some((folder) => file.startsWith(folder)));
  expect(repeated(own.map((file) => [basename(file), file]))).toEqual({});
});

test("each exported type has a unique name", () => {
  const declared = /^export (?:declare )?(?:abstract )?(?:interface|type|class) (\w+)/gm;
  const uses = files.flatMap((file) => [...textOf(file).matchAll(declared)].map(([, name]) => [name as string, file] as const));
  expect(repeated(uses)).toEqual({});
});

test("the rules find an indirect cycle and a repeated name", () => {
  const graph = new Map([
    ["a/b/one.ts", ["a/c/two.ts"]],
    ["a/c/two.ts", ["a/b/three.ts", "base/errors.ts"]],
    ["a/b/three.ts", ["a/b/one.ts"]],
    ["base/errors.ts", []],
    ["base/self.ts", ["base/self.ts"]],
  ]);
  expect(findCycles(graph)).toEqual([["a/b/one.ts", "a/b/three.ts", "a/c/two.ts"], ["base/self.ts"]]);
  expect(
    repeated([
      ["x", "1"],
      ["x", "1"],
      ["y", "1"],
      ["y", "2"],
    ]),
  ).toEqual({ y: ["1", "2"] });
});
