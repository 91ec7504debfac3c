import fc from "fast-check";
import { expect, test } from "vitest";
import { searchDocs } from "../../../plugins/library-docs/search-docs.ts";

interface Case {
  readonly title: string;
  readonly query: string;
  readonly documents: readonly string[];
  readonly gives: string;
}

const rule = "\n\n---\n\n";
const numbered = (count: number, body: string): string => Array.from({ length: count }, (_, index) => `## S${index}\n${body}\n`).join("\n");

test.for<Case>([
  {
    title: "a term counts once however often it stands there, and twice more in the heading",
    query: "wait element",
    documents: ["intro\n\n## Alpha\nwait wait wait wait wait\n\n## Wait\nbody\n\n## Beta\nwait element\n"],
    gives: ["## Wait\nbody", "## Beta\nwait element", "## Alpha\nwait wait wait wait wait"].join(rule),
  },
  {
    title: "a term may be a part of a word",
    query: "wait",
    documents: ["## One\nawaiting\n\n## Two\nnothing\n"],
    gives: "## One\nawaiting",
  },
  { title: "a repeated term counts once, in any case", query: "Term term TERM", documents: ["## A\nterm\n"], gives: "## A\nterm" },
  {
    title: "equals stay in the order of the documents",
    query: "x",
    documents: ["## A\nx", "## B\nx"],
    gives: ["## A\nx", "## B\nx"].join(rule),
  },
  { title: "a third-level heading begins no section", query: "term", documents: ["## A\n### sub\nterm\n"], gives: "## A\n### sub\nterm" },
  {
    title: "the best eight are given",
    query: "term",
    documents: [numbered(12, "term")],
    gives: Array.from({ length: 8 }, (_, index) => `## S${index}\nterm`).join(rule),
  },
  {
    title: "without a match the first five are the overview",
    query: "zzz",
    documents: [numbered(8, "body")],
    gives: Array.from({ length: 5 }, (_, index) => `## S${index}\nbody`).join(rule),
  },
  { title: "an empty query gives the overview, too", query: " ", documents: ["## A\nx\n"], gives: "## A\nx" },
  { title: "no documents give nothing", query: "term", documents: [], gives: "" },
])("$title", ({ query, documents, gives }) => {
  expect(searchDocs(documents, { query, maxChars: 4000 })).toBe(gives);
});

test("long sections are cut, and omitted ones counted", () => {
  const found = searchDocs([numbered(5, "term ".repeat(500))], { query: "term", maxChars: 4000 });
  expect(found).toHaveLength(1500 + rule.length + 1500 + rule.length + "... 3 more matching sections. Narrow your query.".length);
  expect(found.endsWith("... 3 more matching sections. Narrow your query.")).toBe(true);
});

test("if not even one section fits, its beginning is returned", () => {
  expect(searchDocs(["## A\nterm term term\n"], { query: "term", maxChars: 10 })).toBe("## A\nterm ");
});

test("no answer is longer than allowed or splits a character", () => {
  const text = fc.string({ unit: fc.constantFrom("## ", "term", " ", "\n", "𝒳", "b".repeat(700)), maxLength: 60 });
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), text, fc.integer({ min: 1, max: 5000 }), (documents, query, maxChars) => {
      const found = searchDocs(documents, { query, maxChars });
      expect(found.length).toBeLessThanOrEqual(maxChars);
      expect(encodeURIComponent(found)).toBeTypeOf("string");
    }),
    { numRuns: 300 },
  );
});
