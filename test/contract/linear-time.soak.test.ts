import { expect, test } from "vitest";
import { generated } from "../rounds.ts";
import { commonParts, growsTooFast, repeatedParts } from "./growth.ts";
import { countingScans, scans } from "./scanned-texts.ts";

// Short texts run first, so that quadratic growth is detected before it takes hours.
const lengths = [20_000, 625_000, 5_000_000];

const parts = generated(commonParts.length, repeatedParts.length) < repeatedParts.length ? commonParts : repeatedParts;

test.each(Object.entries(scans))("the time for 5 MB of %s grows with its length, and no faster", (_name, scan) => {
  expect(parts.flatMap((part) => growsTooFast(scan, part, lengths) ?? [])).toEqual([]);
});

test.each(Object.entries(countingScans))("the time for 5 MB of %s grows with its length, and no faster", (_name, scan) => {
  expect(growsTooFast(scan, "a", lengths)).toBeUndefined();
});
