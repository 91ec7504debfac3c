import { expect, test } from "vitest";
import { FrameSplitter, maxFrameLength, parseFrame } from "../../src/skills/isolation/child-frames.ts";

test.each([
  ["an array", "[1]"],
  ["not JSON", "{"],
  ["nothing", ""],
  ["too deep", `{"value":${"[".repeat(600)}${"]".repeat(600)}}`],
  ["deep in its middle", `{"a":"${"x".repeat(600)}","value":${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}}`],
])("a frame that is %s is refused", (_what, text) => {
  expect(parseFrame(text)).toBeUndefined();
});

test("a frame keeps its text, whatever brackets that has, and a name such as __proto__ stays a plain field", () => {
  const text = `${"[".repeat(1_000)}"\\${"{".repeat(1_000)}`;
  expect(parseFrame(JSON.stringify({ text }))).toEqual({ text });
  const frame = parseFrame('{"__proto__":{"isAdmin":true}}') as Record<string, unknown>;
  expect([Object.hasOwn(frame, "__proto__"), ({} as Record<string, unknown>)["isAdmin"]]).toEqual([true, undefined]);
});

test("lines arrive whole however their bytes are cut, and a line that is too long ends the stream once", () => {
  const seen: string[] = [];
  let overflows = 0;
  const lines = new FrameSplitter(
    (line) => seen.push(line),
    () => overflows++,
  );
  for (const byte of Buffer.from("é1\nü2\nrest")) lines.add(Buffer.from([byte]));
  expect(seen).toEqual(["é1", "ü2"]);
  const chunk = Buffer.alloc(maxFrameLength / 2 + 1, "x");
  for (let count = 0; count < 4; count++) lines.add(chunk);
  lines.add(Buffer.from("\nlate\n"));
  expect([overflows, seen.length]).toEqual([1, 2]);
});
