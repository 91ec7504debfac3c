import { expect, test } from "vitest";
import { StderrTail } from "../../../src/mcp/connection/stderr-tail.ts";

test("only the end is kept, however much there is", () => {
  const tail = new StderrTail();
  for (let count = 0; count < 1000; count++) tail.add(Buffer.from(`${count} ${"x".repeat(100)}\n`));
  expect(tail.text.length).toBe(16 * 1024);
  expect(tail.lastLine).toMatch(/^999 x/);
  tail.add(`${"y".repeat(100_000)}end\n\n  \n`);
  expect(tail.text).toHaveLength(16 * 1024);
  expect(tail.lastLine).toMatch(/^y{300}$/);
});

test("it shows no credentials, and no line where there is none", () => {
  const tail = new StderrTail();
  expect(tail.lastLine).toBeUndefined();
  tail.add("Authorization: Bearer abcdefghijklmnop failed");
  expect(tail.lastLine).toBe("Authorization: [redacted] failed");
});
