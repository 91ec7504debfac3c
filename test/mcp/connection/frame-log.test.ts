import { expect, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { createFrameLog, frameLine } from "../../../src/mcp/connection/frame-log.ts";

const frame = (params: Record<string, unknown>): string => frameLine({ jsonrpc: "2.0", method: "x", params });

test("a frame is one line without secrets, also those in a JSON text within", () => {
  const line = frame({ password: "one", note: '{"apiKey": "two", "left": "three"}', header: "Bearer abcdefghijklmnop", text: "a\nb" });
  expect(line).not.toMatch(/"one"|two|abcdefghijklmnop|\n/);
  expect(line).toContain("three");
});

test("a frame's length is bounded, whatever makes it long", () => {
  let deep: Record<string, unknown> = {};
  for (let depth = 0; depth < 5000; depth++) deep = { deep };
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, index]));
  for (const params of [{ text: "x".repeat(5_000_000) }, { list: Array.from({ length: 100_000 }, () => 1) }, deep, many]) {
    expect(frame(params).length).toBeLessThan(4100);
  }
});

test("nothing is formatted without a listener", () => {
  expect(createFrameLog("peer", silentLogger)).toBeUndefined();
});
