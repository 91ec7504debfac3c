import fc from "fast-check";
import { expect, test } from "vitest";
import { LineSplitter, type LongLine } from "../../../src/mcp/connection/stdio-transport.ts";

function split(chunks: readonly Buffer[], limit = 1_000_000): { lines: string[]; long: LongLine[] } {
  const lines: string[] = [];
  const long: LongLine[] = [];
  const splitter = new LineSplitter(
    limit,
    (line) => lines.push(line),
    (line) => long.push(line),
  );
  for (const chunk of chunks) splitter.push(chunk);
  return { lines, long };
}

test("lines come whole, wherever the stream is cut, also within a character", () => {
  const line = fc.string({ unit: "grapheme", maxLength: 20 }).map((text) => text.replace(/[\r\n]/g, ""));
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat(200)), fc.boolean(), (texts, cuts, isCrlf) => {
      const bytes = Buffer.from(texts.map((text) => text + (isCrlf ? "\r\n" : "\n")).join(""));
      const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
      const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
      expect(split(chunks).lines).toEqual(texts.filter((text) => text !== ""));
    }),
  );
});

test("of a line over the limit both ends are reported, and the next one is read", () => {
  const long = `start${"x".repeat(5000)}end`;
  for (const chunks of [[`${long}\nnext\n`], [...long, "\n", "next\n"]]) {
    const { lines, long } = split(
      chunks.map((chunk) => Buffer.from(chunk)),
      1000,
    );
    expect(lines).toEqual(["next"]);
    expect(long).toHaveLength(1);
    expect(long[0]?.head.startsWith("start")).toBe(true);
    expect(long[0]?.tail.endsWith("end")).toBe(true);
    expect((long[0]?.head.length ?? 0) + (long[0]?.tail.length ?? 0)).toBeLessThan(2000);
  }
});

test("a line of exactly the limit is read", () => {
  expect(split([Buffer.from(`${"x".repeat(10)}\n${"x".repeat(11)}\n`)], 10).lines).toEqual(["x".repeat(10)]);
});
