import { rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sha256 } from "../../src/base/canonical-json.ts";
import { FileHashes } from "../../src/skills/store/file-hashes.ts";
import { tempFolder } from "./kit.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("a recorded file has changed when its content has, not when it is touched", () => {
  const file = join(tempFolder({ "a.txt": "one" }), "a.txt");
  const hashes = new FileHashes();
  hashes.record(file, bytes("one"));
  expect(hashes.changed(file)).toBe(false);
  utimesSync(file, new Date(1), new Date(1));
  expect(hashes.changed(file)).toBe(false);
  writeFileSync(file, "two");
  expect([hashes.changed(file), hashes.changed(file)]).toEqual([true, false]);
  rmSync(file);
  expect([hashes.changed(file), hashes.changed(file)]).toEqual([true, true]);
});

test("a file that was never recorded has always changed", () => {
  const file = join(tempFolder({ "a.txt": "one" }), "a.txt");
  const hashes = new FileHashes();
  expect([hashes.changed(file), hashes.changed(file)]).toEqual([true, true]);
  hashes.record(file, bytes("one"));
  hashes.forget(file);
  expect(hashes.changed(file)).toBe(true);
});

test("an edited file is complete when it ends as after the edit before", () => {
  const lines = (first: string): string => `${first}\n${"const more = 1;\n".repeat(100)}export { first };\n`;
  const file = join(tempFolder({ "a.ts": lines("zero") }), "a.ts");
  const hashes = new FileHashes();
  hashes.record(file, bytes(lines("zero")));
  expect(hashes.isComplete(file)).toBe(false);
  writeFileSync(file, lines("one"));
  expect([hashes.changed(file), hashes.isComplete(file)]).toEqual([true, true]);
  for (const length of [0, 1, 20, 700, lines("two").length - 1]) {
    writeFileSync(file, lines("two").slice(0, length));
    expect(hashes.isComplete(file)).toBe(false);
  }
  writeFileSync(file, lines("two"));
  expect(hashes.isComplete(file)).toBe(true);
  rmSync(file);
  expect([hashes.isComplete(file), hashes.changed(file), hashes.isComplete(file)]).toEqual([false, true, false]);
});

test("the hash from the module loader counts even if the file has changed since", () => {
  const file = join(tempFolder({ "a.ts": "\uFEFFnow" }), "a.ts");
  const hashes = new FileHashes();
  hashes.recordRead(file, sha256("before"), Date.now());
  expect(hashes.changed(file)).toBe(true);
  hashes.recordRead(file, sha256("now"), Date.now());
  expect(hashes.changed(file)).toBe(false);
});

test("without a loader's hash, only a file that is older than the load counts as the one that was read", () => {
  const file = join(tempFolder({ "a.ts": "text" }), "a.ts");
  const hashes = new FileHashes();
  hashes.recordRead(file, undefined, Date.now() + 60_000);
  expect(hashes.changed(file)).toBe(false);
  hashes.recordRead(file, undefined, Date.now() - 60_000);
  expect(hashes.changed(file)).toBe(true);
});
