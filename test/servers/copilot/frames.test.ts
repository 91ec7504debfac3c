import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FrameReader, FrameWriter, maxFrameBytes } from "../../../src/servers/copilot/connection/frames.ts";

interface Read {
  readonly messages: unknown[];
  readonly faults: string[];
  readonly reader: FrameReader;
}

function read(...chunks: readonly (Buffer | string)[]): Read {
  const messages: unknown[] = [];
  const faults: string[] = [];
  const reader = new FrameReader({
    message: (value) => messages.push(value),
    unreadable: (problem) => faults.push(`unreadable: ${problem}`),
    lost: (problem) => faults.push(`lost: ${problem}`),
  });
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  return { messages, faults, reader };
}

function frame(value: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(value));
  return Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]);
}

describe("reading frames", () => {
  test("a frame that is cut at any byte is the same frame", () => {
    const whole = frame({ method: "ping", params: { text: "Grüße, 世界 🌍" } });
    for (let cut = 0; cut <= whole.length; cut++) {
      const { messages, faults } = read(whole.subarray(0, cut), whole.subarray(cut));
      expect([messages.length, faults]).toEqual([1, []]);
    }
    const bytewise = read(...Array.from(whole, (byte) => Buffer.from([byte])));
    expect(bytewise.messages).toEqual([{ method: "ping", params: { text: "Grüße, 世界 🌍" } }]);
  });

  test("frames that come together, in any pieces, are read one after the other", () => {
    fc.assert(
      fc.property(fc.array(fc.json(), { minLength: 1, maxLength: 6 }), fc.array(fc.nat({ max: 400 }), { maxLength: 12 }), (texts, cuts) => {
        const values = texts.map((text) => JSON.parse(text) as unknown);
        const stream = Buffer.concat(values.map(frame));
        const places = [0, ...cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b), stream.length];
        const chunks = places.slice(1).map((end, index) => stream.subarray(places[index], end));
        const { messages, faults } = read(...chunks);
        expect(faults).toEqual([]);
        expect(JSON.stringify(messages)).toBe(JSON.stringify(values));
      }),
      { numRuns: 300 },
    );
  });

  test("a gigabyte that is announced is not waited for", () => {
    const { faults, messages } = read("Content-Length: 1073741824\r\n\r\n", frame({ method: "ping" }));
    expect(faults).toEqual([`lost: A message has 1073741824 bytes; the limit is ${maxFrameBytes}.`]);
    expect(messages).toEqual([]);
  });

  test.each([
    ["no length", "Content-Type: json\r\n\r\n{}", "lost: A header has no Content-Length."],
    ["a negative length", "Content-Length: -5\r\n\r\n{}", "lost: Content-Length is not a single integer."],
    ["a length that is not a number", "Content-Length: 1e3\r\n\r\n{}", "lost: Content-Length is not a single integer."],
    ["a length of many digits", `Content-Length: ${"9".repeat(40)}\r\n\r\n{}`, "lost: Content-Length is not a single integer."],
    ["two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "lost: Content-Length is not a single integer."],
    ["a line that is not a header", "hello there\r\n\r\n{}", "lost: A header line does not have the form name: value."],
    ["a header without end", "x".repeat(9_000), "lost: A header is longer than 8192 bytes."],
  ])("%s ends the reading, since later messages cannot be found", (_what, text, fault) => {
    const { faults, messages } = read(text, frame({ method: "ping" }));
    expect([faults, messages]).toEqual([[fault], []]);
  });

  test("other headers and other spellings of the length are fine", () => {
    const { messages } = read(
      "content-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}Content-Length:  4 \r\n\r\nnull",
    );
    expect(messages).toEqual([{}, null]);
  });

  test("a body that is not valid JSON or no UTF-8 spoils only itself", () => {
    const bad = Buffer.from([0x22, 0xff, 0xfe, 0x22]);
    const { messages, faults } = read(
      "Content-Length: 5\r\n\r\n{nope",
      Buffer.concat([Buffer.from(`Content-Length: ${bad.length}\r\n\r\n`), bad]),
      "Content-Length: 0\r\n\r\n",
      frame({ after: true }),
    );
    expect(faults).toEqual([
      "unreadable: A message is not valid JSON.",
      "unreadable: A message is not UTF-8.",
      "unreadable: A message is not valid JSON.",
    ]);
    expect(messages).toEqual([{ after: true }]);
  });

  test("a body that is nested too deeply, or holds too many values, spoils only itself", () => {
    const bodyOf = (text: string): string => `Content-Length: ${text.length}\r\n\r\n${text}`;
    const nested = (depth: number): string => bodyOf(`${"[".repeat(depth)}1${"]".repeat(depth)}`);
    const { messages, faults } = read(
      nested(128),
      nested(129),
      nested(300_000),
      bodyOf(`[${Array(600_000).fill("{}").join()}]`),
      frame({ after: true }),
    );
    expect(faults).toEqual([
      "unreadable: A message is nested more than 128 levels deep.",
      "unreadable: A message is nested more than 128 levels deep.",
      "unreadable: A message has more than 500000 values.",
    ]);
    expect([messages.length, messages.at(-1)]).toEqual([2, { after: true }]);
  });

  test("a body in a hundred thousand pieces is put together", () => {
    const text = "x".repeat(100_000);
    const { messages } = read(...Array.from(frame({ text }), (byte) => Buffer.from([byte])));
    expect(messages).toEqual([{ text }]);
  });
});

describe("writing frames", () => {
  test("what is written in one turn goes out in one piece, with lengths in bytes", async () => {
    const written: string[] = [];
    const writer = new FrameWriter({ write: (text) => written.push(text), pendingBytes: 0 }, () => {});
    writer.write('{"a":"ü"}');
    writer.write("{}");
    expect(written).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(written).toEqual(['Content-Length: 10\r\n\r\n{"a":"ü"}Content-Length: 2\r\n\r\n{}']);
  });

  test("a reader that takes nothing is given up before its messages fill the memory", () => {
    let pendingBytes = 0;
    let isFull = false;
    const output = {
      write: (text: string) => {
        pendingBytes += text.length;
      },
      get pendingBytes() {
        return pendingBytes;
      },
    };
    const writer = new FrameWriter(output, () => {
      isFull = true;
    });
    const message = JSON.stringify({ text: "x".repeat(1024 * 1024) });
    expect(writer.isCrowded).toBe(false);
    let sent = 0;
    while (!isFull && sent < 1_000) {
      writer.write(message);
      sent++;
    }
    expect(isFull).toBe(true);
    expect(writer.isCrowded).toBe(true);
    expect(sent).toBeLessThan(70);
  });
});
