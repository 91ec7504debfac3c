import { expect, test } from "vitest";
import { findLibraries, libraries, libraryOfId } from "../../../plugins/library-docs/libraries.ts";

const idsFor = (name: string): string[] => findLibraries(name).map(({ id }) => id);

test.for([
  ...libraries.flatMap(({ id, aliases }) => [id, ...aliases, ` ${id.toUpperCase()} `, `org/${id}`].map((name) => [name, [id]] as const)),
  ["play", ["playwright"]],
  ["my-java-x", ["java"]],
  ["java 21", ["java"]],
  ["pw", ["playwright"]],
  ["script", []],
  ["javascript", []],
  ["javafx", []],
  ["p", []],
  ["", []],
  ["  ", []],
  ["react", []],
  ["__proto__", []],
] as const)("the library name %s means %s", ([name, ids]) => {
  expect(idsFor(name)).toEqual(ids);
});

test("a name that several libraries share finds all of them", () => {
  expect(idsFor("cucumber and gherkin")).toEqual(["cucumber", "gherkin"]);
});

test.for([
  ["playwright", "playwright"],
  ["/microsoft/playwright", "playwright"],
  ["/microsoft/playwright@1.50", "playwright"],
  ["PW", "playwright"],
  ["/facebook/react", undefined],
  ["javascript", undefined],
  ["", undefined],
] as const)("the id %s is of %s", ([id, expected]) => {
  expect(libraryOfId(id)?.id).toBe(expected);
});
