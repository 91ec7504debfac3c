import { expect, test } from "vitest";
import { commonParts, growsTooFast } from "./growth.ts";
import { countingScans, scans } from "./scanned-texts.ts";

const lengths = [8_192, 32_768];

test.each(Object.entries(scans))("the time for %s grows with its length, and no faster", (_name, scan) => {
  expect(commonParts.flatMap((part) => growsTooFast(scan, part, lengths) ?? [])).toEqual([]);
});

test.each(Object.entries(countingScans))("the time for %s grows with its length, and no faster", (_name, scan) => {
  expect(growsTooFast(scan, "a", lengths)).toBeUndefined();
});

test("the measurement detects quadratic growth", () => {
  // What is quadratic stays so however often it is measured, and takes long.
  expect(growsTooFast((text) => text.replace(/[ \t]+\n/g, "\n"), " ", [8_192, 65_536], { repeats: 1 })).toMatch(/times as long/);
});
