import { expect, test } from "vitest";
import { fillAddress, fillElements, fillJson, fillText } from "../../src/skills/handlers/fill-template.ts";

test.each([
  [["-n", "${count}", "${path}"], { count: 3, path: "a b; rm -rf /" }, ["-n", "3", "a b; rm -rf /"]],
  [["x${path}y", "--p=${path}"], { path: "v" }, ["x${path}y", "--p=${path}"]],
  [["${missing}", "${nothing}", "end"], { nothing: null }, ["end"]],
  [["${list}", "${flag}"], { list: ["a", "b"], flag: false }, ['["a","b"]', "false"]],
  [["${toString}", "${__proto__}"], {}, []],
  [["{baseDir}/run.mjs"], {}, ["/skill/run.mjs"]],
  [["${path}"], { path: "{baseDir}" }, ["{baseDir}"]],
] as const)("a template fills the elements %j with %j", (elements, args, expected) => {
  expect(fillElements(elements, args, "/skill")).toEqual(expected);
});

test.each([
  ["http://h/${id}?q=${q}", { id: "../../admin", q: "a&b=c#d" }, "http://h/..%2F..%2Fadmin?q=a%26b%3Dc%23d"],
  ["${env:BASE:-http://default}/x", {}, "http://default/x"],
  ["${env:SET:-http://default}/x", {}, "http://set.example/x"],
  ["http://h/${gone}/${other:-fallback}", {}, "http://h//fallback"],
  ["http://h/${id}", { id: "${env:SET}" }, "http://h/%24%7Benv%3ASET%7D"],
])("a template fills the URL %s", (template, args, expected) => {
  expect(fillAddress(template, args, { SET: "http://set.example" })).toBe(expected);
});

test("a header value cannot contain a line break", () => {
  expect(fillText("v ${x}", { x: "a\r\nevil: 1" }, {})).toBe("v a evil: 1");
});

test("JSON keeps the type of an argument that replaces a whole string", () => {
  expect(fillJson({ a: "${n}", b: ["${o}", "x ${n}"], c: null, d: "${gone}" }, { n: 1, o: { p: true } })).toEqual({
    a: 1,
    b: [{ p: true }, "x ${n}"],
    c: null,
    d: undefined,
  });
});
