import { expect, test } from "vitest";
import { growsTooFast, repeatedParts } from "./growth.ts";
import { scans } from "./scanned-texts.ts";

test.each(Object.entries(scans))("the time for 5 MB of %s grows with its length, and no faster", (_name, scan) => {
  expect(repeatedParts.flatMap((part) => growsTooFast(scan, part, 8 * 1024 * 1024) ?? [])).toEqual([]);
});
