import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseUriTemplate } from "../../src/tools/define/uri-template.ts";

function match(template: string, uri: string): Record<string, string> | undefined {
  const values = parseUriTemplate(template).match(uri);
  return values && { ...values };
}

describe("a URI template", () => {
  test.each<[template: string, uri: string, values: Record<string, string> | undefined]>([
    ["notes://{year}/{name}", "notes://2026/today", { year: "2026", name: "today" }],
    ["notes://{year}/{name}", "notes://2026/a/b", undefined],
    ["notes://{year}/{name}", "notes://2026/", undefined],
    ["notes://{year}/{name}", "notes:///x", undefined],
    ["test://template/{id}/data", "test://template/123/data", { id: "123" }],
    ["test://template/{id}/data", "test://template/123/date", undefined],
    ["test://template/{id}/data", "best://template/123/data", undefined],
    ["x://{a}-{b}", "x://1-2-3", { a: "1-2", b: "3" }],
    ["x://{a,b}", "x://1,2", { a: "1", b: "2" }],
    ["x://{a}", "x://1,2", { a: "1,2" }],
    ["files://{+path}", "files://a/b/c.txt?x#y", { path: "a/b/c.txt?x#y" }],
    ["files://{+path}/{name}", "files://a/b/c.txt", { path: "a/b", name: "c.txt" }],
    ["files:/{/path*}", "files://a/b", { path: "a/b" }],
    ["files://{path*}", "files://a/b?c", undefined],
    ["x://all{?query,page}", "x://all?page=2&query=a%20b", { page: "2", query: "a b" }],
    ["x://all{?query,page}", "x://all?query=", { query: "" }],
    ["x://all{?query,page}", "x://all", {}],
    ["x://all{?query}", "x://all?other=1", undefined],
    ["x://all{?query}", "x://all?query=1&query=2", undefined],
    ["x://all?kind=a{&query}", "x://all?kind=a&query=1", { query: "1" }],
    ["x://all?kind=a{&query}", "x://all?kind=a", {}],
    ["x://{a}{?q}{#part}", "x://1?q=2#3", { a: "1", q: "2", part: "3" }],
    ["x://{name}{.ext}", "x://a.tar.gz", { name: "a.tar", ext: "gz" }],
    ["x://y{/a,b}", "x://y/1/2", { a: "1", b: "2" }],
    ["x://y{;a,b}", "x://y;a=1;b=2", { a: "1", b: "2" }],
    ["x://{a}", "x://%E2%82%AC%2F", { a: "€/" }],
    ["x://{a}", "x://%zz", undefined],
    ["x://{a}", "x://%ff", undefined],
    ["x://{__proto}{constructor}", "x://ab", { __proto: "a", constructor: "b" }],
    ["x://plain", "x://plain", {}],
    ["x://plain", "x://plainer", undefined],
    ["x://{a}", "", undefined],
  ])("%s of %s", (template, uri, values) => {
    expect(match(template, uri)).toEqual(values);
  });

  test("a template lists its variables in order", () => {
    expect(parseUriTemplate("x://{b}/{+a}{?d,c*}").variables).toEqual(["b", "a", "d", "c"]);
  });

  test.each([
    ["x://{a", /unmatched "\{"/],
    ["x://a}", /unmatched "\}"/],
    ["x://{}", /no variable name in \{\}/],
    ["x://{a b}", /no variable name/],
    ["x://{a:3}", /no variable name in \{a:3\}/],
    ["x://{=a}", /unknown operator "=" in \{=a\}/],
    ["x://{a}/{a}", /the variable "a" twice/],
    ["x://{1a}", /no variable name/],
    [`x://${"{a}".repeat(60)}`, /more than 50 variables/],
    [`x://${"a".repeat(3000)}`, /longer than 2000 characters/],
  ])("the template %s is refused", (template, message) => {
    expect(() => parseUriTemplate(template)).toThrow(
      expect.objectContaining({ code: "URI_TEMPLATE", message: expect.stringMatching(message) }),
    );
  });

  test("ambiguous matches are found without trying every combination", () => {
    // A backtracking matcher would need more steps for these than there are atoms.
    const template = parseUriTemplate(`x://${Array.from({ length: 40 }, (_, index) => `{+v${index}}`).join("a")}!`);
    expect(template.match(`x://${"a".repeat(8000)}`)).toBeUndefined();
    expect(Object.keys(template.match(`x://${"a".repeat(8000)}!`) ?? {})).toHaveLength(40);
    expect(template.match(`x://${"a".repeat(9000)}!`)).toBeUndefined();
  });

  test("a template returns the values from which a URI was expanded, and never throws", () => {
    const value = fc.string({ minLength: 1, maxLength: 30, unit: "grapheme" });
    fc.assert(
      fc.property(value, value, (year, name) => {
        const uri = `notes://${encodeURIComponent(year)}/${encodeURIComponent(name)}`;
        expect(match("notes://{year}/{name}", uri)).toEqual({ year, name });
      }),
      { numRuns: 300 },
    );
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.string({ maxLength: 200 }), (template, uri) => {
        let parsed: ReturnType<typeof parseUriTemplate>;
        try {
          parsed = parseUriTemplate(`x:${template}`);
        } catch (error) {
          expect(error).toMatchObject({ code: "URI_TEMPLATE" });
          return;
        }
        parsed.match(`x:${uri}`);
      }),
      { numRuns: 1000 },
    );
  });
});
