import { describe, expect, test } from "vitest";
import { createLogger } from "../../src/base/logger.ts";
import { escapeHidden, escapeJsonText, exactJson, findHidden, hiddenWords, withoutHidden } from "../../src/base/untrusted-text.ts";
import { growsTooFast } from "../contract/growth.ts";
import { rounds } from "../rounds.ts";

const range = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => String.fromCodePoint(from + index));

/** What is hidden wherever it stands in a text of Latin letters. */
const hidden: readonly string[] = [
  ...range(0x00, 0x08),
  "\v",
  "\f",
  ...range(0x0e, 0x1f),
  ...range(0x7f, 0x9f),
  "\u00ad ",
  "\u034f",
  "\u061c",
  "\u115f",
  "\u1160",
  "\u17b4",
  "\u180e",
  ...range(0x200b, 0x200f),
  ...range(0x2028, 0x202e),
  ...range(0x2060, 0x206f),
  "\u2800",
  "\u3164",
  ...range(0xfe00, 0xfe0f),
  "\ufeff",
  "\uffa0",
  ...range(0xfff9, 0xfffb),
  ...range(0x1d173, 0x1d17a),
  ...range(0xe0000, 0xe007f),
  ...range(0xe0100, 0xe01ef),
  "\ud800",
];

test("shows people each character that they would not see, and gives models none of them", () => {
  for (const character of hidden) {
    const text = `a ${character}b`;
    const plain = character.trimEnd() === "" ? character : character.replace(/ $/, "");
    expect([plain, escapeHidden(text).includes(plain)]).toEqual([plain, false]);
    expect([plain, withoutHidden(text).includes(plain)]).toEqual([plain, false]);
    expect([plain, findHidden(text)?.count]).toEqual([plain, 1]);
    expect(JSON.parse(escapeJsonText(JSON.stringify(text)))).toBe(text);
    expect([plain, escapeJsonText(JSON.stringify(text)).includes(plain)]).toEqual([plain, false]);
  }
});

describe("what is written for a reason stays as it is", () => {
  test.each([
    ["emoji with a variation selector", "❤️ ✔︎ ☺️"],
    ["keycaps", "1️⃣ #️⃣ *️⃣"],
    ["emoji of several parts", "🧑‍💻 🦸‍♂️ 👩🏽‍🚒 👨‍👩‍👧‍👦 🏳️‍🌈 ❤️‍🔥"],
    ["skin tones and national flags", "👍🏽 🇩🇪"],
    ["the flags of parts of a country", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿"],
    ["Persian", "می‌خواهم کتاب‌ها"],
    ["Hindi and Bengali", "क्‍ष র‌্য"],
    ["Malayalam", "അവന്‍"],
    ["Sinhala", "ශ්‍රී"],
    ["Mongolian", "ᠮᠣᠩᠭᠣᠯ᠎ᠠ"],
    ["Thai and Khmer with breaks", "ภาษา\u200bไทย ភាសា\u200bខ្មែរ"],
    ["soft hyphens", "Donau\u00addampf\u00adschiff"],
    ["frames of Braille", "⠋⠙⠹⠸\u2800⠼"],
    ["old Hangul", "ᅟᅡ가"],
    ["line breaks and tabs", "a\r\n\tb"],
    ["private characters of fonts, and new ones", "\ue0b0 \u{1fae9}"],
  ])("%s", (_what, text) => {
    expect(withoutHidden(text)).toBe(text);
    expect(escapeHidden(text)).toBe(text);
    expect(findHidden(text)).toBeUndefined();
  });

  test("marks of direction beside letters that are written from right to left, for models", () => {
    const text = "שלום\u200f! \u200eabc\u200f";
    expect(withoutHidden(text)).toBe("שלום\u200f! abc");
    expect(escapeHidden(text)).not.toMatch(/[\u200e\u200f]/);
  });
});

test.each([
  ["a second selector on an emoji", "😀\ufe0f\ufe0e", 1],
  ["a text in variation selectors on an emoji", `😀${"\u{e0148}\u{e0149}"}`, 2],
  ["a text in tags on a flag", `🏴${[..."ignore"].map((letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("")}`, 6],
  ["a text in joiners between Persian letters", "ی\u200c\u200d\u200c\u200dخ", 4],
  ["an emoji joiner that joins nothing", "🧑\u200d code", 1],
  ["a selector on a letter", "a\ufe0fb", 1],
])("%s is hidden", (_what, text, count) => {
  expect(findHidden(text)).toMatchObject({ count });
  expect(findHidden(withoutHidden(text))).toBeUndefined();
});

test("reports the number of hidden characters, which ones, and the position of the first", () => {
  const found = findHidden("ab\u202ecd\u200b\u200b");
  expect(found).toEqual({ count: 3, offset: 2, characters: ["U+202E", "U+200B"] });
  expect(hiddenWords(found!)).toBe("3 hidden characters (U+202E, U+200B)");
});

test("shows what people decide about exactly: no-break spaces and emoji selectors, too", () => {
  expect(exactJson("a\u00a0b❤\ufe0f\u3000")).toBe('"a\\u{a0}b❤\\u{fe0f}\\u{3000}"');
});

test("a log says the same as ever, in characters that no terminal obeys", () => {
  const lines: string[] = [];
  const log = createLogger({ level: "debug", write: (line) => void lines.push(line) });
  const text = "\u009b31m\u202e\u{e0041}\u001b[2J";
  log.debug(text, { text });
  expect(lines[0]).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.parse(lines[0]!)).toMatchObject({ message: text, text });
});

test.each(["\u2800", "\u200d", "\u00ad", "\ufe0f", "\u200e", "❤", "ا", "\u{e0041}", "a\u200b", "ไ\u200b", "x"])(
  "takes a time that grows with the text and no faster: %j",
  (unit) => {
    const length = rounds(65_536, 1_048_576);
    for (const scan of [withoutHidden, escapeHidden]) {
      expect(growsTooFast((text) => scan(`${text}\u200b`), unit, [length / 4, length / 2, length])).toBeUndefined();
    }
  },
);
