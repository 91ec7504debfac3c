import { expect, test } from "vitest";
import { assembleLeaks } from "./assembled-leaks.ts";
import { runLines } from "./run-lines.ts";
import { hasBash } from "./secret-folder.ts";

test.skipIf(!hasBash)("of 1,200 assembled lines, none that prints a secret in bash would have been allowed", () => {
  for (const seed of [1, 2, 3, 4]) {
    const { leaks, unasked, shown } = runLines(assembleLeaks(300, seed), ["read(secret/**)"]);
    expect(leaks).toEqual([]);
    expect(unasked).toEqual([]);
    expect(shown).toBeGreaterThan(200);
  }
});
