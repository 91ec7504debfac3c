import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readSkillCalls } from "../../src/host/stored-calls/skill-calls.ts";
import { tempFolder } from "../skills/kit.ts";

const read = (folder: string) => readSkillCalls({ name: "weather", folder });

test("a skill without stored calls has none, and no problem", () => {
  expect(read(tempFolder({ "SKILL.md": "" }))).toEqual({ calls: [], diagnostics: [] });
});

test("a file that is too large, or a folder in its place, is a problem and nothing is read", () => {
  const large = tempFolder({ "calls.json": `{"calls":{"a":{"tool":"t","arguments":{"text":"${"x".repeat(1_100_000)}"}}}}` });
  expect(read(large)).toMatchObject({ calls: [], diagnostics: [{ severity: "error", code: "FILE_TOO_LARGE" }] });
  const folder = tempFolder({});
  mkdirSync(`${folder}/calls.json`);
  expect(read(folder)).toMatchObject({ calls: [], diagnostics: [{ severity: "error", code: "FILE_NOT_REGULAR" }] });
});

test.skipIf(process.platform === "win32")("a link within the folder is followed, and one that leads out of it is not", () => {
  const outside = tempFolder({ "calls.json": '{"calls":{"secret":{"tool":"t"}}}' });
  const folder = tempFolder({});
  symlinkSync(`${outside}/calls.json`, `${folder}/calls.json`);
  expect(read(folder)).toMatchObject({
    calls: [],
    diagnostics: [{ severity: "error", code: "PATH_OUTSIDE", file: `${folder}/calls.json` }],
  });
  const other = tempFolder({});
  writeFileSync(`${other}/shared.json`, '{"calls":{"a":{"tool":"t"}}}');
  symlinkSync("shared.json", `${other}/calls.json`);
  expect(read(other).calls.map(({ skill, call }) => [skill, call.name])).toEqual([["weather", "a"]]);
});
