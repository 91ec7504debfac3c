import { expect, test } from "vitest";
import { rounds } from "../rounds.ts";
import { commonParts, growsTooFast } from "./growth.ts";
import { scans } from "./scanned-texts.ts";

test.each(Object.entries(scans))("the time for %s grows with its length, and no faster", (_name, scan) => {
  expect(commonParts.flatMap((part) => growsTooFast(scan, part, rounds(32_768, 262_144)) ?? [])).toEqual([]);
});

test("what grows with the square of its text is noticed", () => {
  expect(growsTooFast((text) => text.replace(/[ \t]+\n/g, "\n"), " ", 65_536)).toMatch(/times as long/);
});
