import { expect, test } from "vitest";
import { decodeText } from "../../../src/formats/text/decode-text.ts";

const utf8 = new TextEncoder();
const decode = (bytes: Uint8Array | readonly number[]) => {
  const { text, diagnostics } = decodeText(Uint8Array.from(bytes), "f.md");
  expect(diagnostics.every(({ severity, file }) => severity === "warning" && file === "f.md")).toBe(true);
  return { text, codes: diagnostics.map(({ code }) => code), messages: diagnostics.map(({ message }) => message) };
};

test.each([
  ["plain text", "name: ünïcode 🌳\r\n"],
  ["nothing", ""],
  ["a replacement character of its own", "a\uFFFDb"],
])("a text is decoded as UTF-8: %s", (_what, text) => {
  expect(decode(utf8.encode(text))).toMatchObject({ text, codes: [] });
});

test("leaves out the byte order mark, the first one only", () => {
  expect(decode(utf8.encode("\uFEFFa\uFEFF"))).toMatchObject({ text: "a\uFEFF", codes: [] });
});

test.each(["utf16le", "utf16be"])("reads %s with its mark, with a warning", (encoding) => {
  const bytes = Buffer.from("\uFEFFnäme 🌳", "utf16le");
  expect(decode(encoding === "utf16be" ? bytes.swap16() : bytes)).toMatchObject({ text: "näme 🌳", codes: ["TEXT_ENCODING"] });
});

test.each([
  ["at the start", [0xff, 0x61], "\uFFFDa", 0],
  ["Latin-1 in the middle", [0x61, 0xe4, 0x62], "a\uFFFDb", 1],
  ["after other characters", [...utf8.encode("ä🌳"), 0xc0, 0x61], "ä🌳\uFFFDa", 6],
  ["a character cut off at the end", [0x61, 0xf0, 0x9f, 0x8c], "a\uFFFD", 1],
  ["half a pair of surrogates", [0x61, 0xed, 0xa0, 0x80], "a\uFFFD\uFFFD\uFFFD", 1],
])("invalid UTF-8 is replaced, and the offset of the first byte is reported: %s", (_what, bytes, text, offset) => {
  const decoded = decode(bytes);
  expect(decoded).toMatchObject({ text, codes: ["TEXT_NOT_UTF8"] });
  expect(decoded.messages[0]).toContain(`byte ${offset};`);
});

test("NUL characters of a text are replaced, and the first is reported", () => {
  expect(decode([0x61, 0, 0x62, 0])).toMatchObject({ text: "a\uFFFDb\uFFFD", codes: ["TEXT_NUL"] });
  expect(decode([0x61, 0]).messages[0]).toContain("offset 1");
});

test("UTF-16 without its mark is text with NUL characters", () => {
  expect(decode(Buffer.from("ab", "utf16le"))).toMatchObject({ text: "a\uFFFDb\uFFFD", codes: ["TEXT_NUL"] });
});
