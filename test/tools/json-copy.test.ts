import fc from "fast-check";
import { expect, test } from "vitest";
import { copyAhead, copyJson } from "../../src/tools/json-copy.ts";
import { callToolResult, normalizeResult } from "../../src/tools/tool-result.ts";

const rows = (count: number): Record<string, unknown>[] => Array.from({ length: count }, (_, id) => ({ id, tags: ["x"] }));
const key = fc.constantFrom("a", "b", "__proto__", "1");
const json: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom<unknown>(null, true, 0, 1.5, Number.POSITIVE_INFINITY, "", "a"),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 5 }).map(recordOf),
  ),
})).value;

/** As `JSON.parse` returns it: `__proto__` is an ordinary key. */
function recordOf(entries: readonly (readonly [string, unknown])[]): object {
  const record = {};
  for (const [name, value] of entries) Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
  return record;
}

test("a copy made in slices equals the copy made at once", async () => {
  await fc.assert(
    fc.asyncProperty(json, fc.integer({ min: 1, max: 8 }), async (value, perSlice) => {
      const atOnce = copyJson(value);
      await copyAhead(value, perSlice);
      const ahead = copyJson(value);
      expect(ahead).toStrictEqual(atOnce);
      if (ahead.ok && typeof ahead.value === "object" && ahead.value !== null) expect(Object.isFrozen(ahead.value)).toBe(true);
    }),
  );
});

test("values that cannot be copied give the same error in slices and at once", async () => {
  const deep = (): unknown => JSON.parse(`{"a":[1,${"[".repeat(110)}1${"]".repeat(110)}]}`);
  const value = deep();
  await copyAhead(value, 10);
  expect(copyJson(value)).toEqual(copyJson(deep()));
});

test("copying twice as many records takes twice as many slices", async () => {
  const slicesOf = async (count: number): Promise<number> => {
    let [slices, isDone] = [0, false];
    const tick = (): void => {
      slices++;
      if (!isDone) setImmediate(tick);
    };
    setImmediate(tick);
    await copyAhead(rows(count));
    isDone = true;
    return slices;
  };
  const [once, twice] = [await slicesOf(20_000), await slicesOf(40_000)];
  expect(once).toBeGreaterThan(10);
  expect(twice / once).toBeGreaterThan(1.6);
  expect(twice / once).toBeLessThan(2.4);
});

test("large data of a result is copied once", () => {
  const result = callToolResult({ content: [], structuredContent: { rows: rows(5_000) } });
  expect(normalizeResult(result).structuredContent).toBe(result.structuredContent);
});
