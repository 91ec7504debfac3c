import { describe, expect, test } from "vitest";
import { fieldsReader, readFields, readFlag, readText, readTexts } from "../../src/base/read-fields.ts";

interface Options {
  readonly name?: string | undefined;
  readonly output?:
    | { readonly enabled?: boolean | undefined; readonly to?: { readonly folders?: readonly string[] | undefined } | undefined }
    | undefined;
}

const read = (value: unknown): Options =>
  readFields<Options>(value, "test options", "TEST_OPTIONS", {
    name: readText,
    output: fieldsReader<NonNullable<Options["output"]>>({ enabled: readFlag, to: fieldsReader({ folders: readTexts }) }),
  });

describe("what is wrong with a field", () => {
  test.each<[unknown, string]>([
    [{ name: 1 }, "name must be a non-empty string."],
    [{ colour: "red" }, "colour is not one of the test options: name, output."],
    [{ output: { enabled: "yes" } }, "output.enabled must be true or false."],
    [{ output: { on: true } }, "output.on is not one of the fields of output: enabled, to."],
    [{ output: { to: { folders: ["a", 2] } } }, "output.to.folders[1] must be a string."],
    [{ output: { to: { folder: "a" } } }, "output.to.folder is not one of the fields of output.to: folders."],
    [{ output: [] }, "output must be an object."],
    [3, "test options must be an object."],
  ])("the error about %j contains its full path", (value, message) => {
    expect(() => read(value)).toThrow(expect.objectContaining({ code: "TEST_OPTIONS", message }));
  });

  test("undefined is as if it were absent, and what was read cannot be changed", () => {
    const options = read({ name: undefined, output: { enabled: true } });
    expect(options).toEqual({ output: { enabled: true } });
    expect(Object.isFrozen(options.output)).toBe(true);
  });
});
