import { isUtf8 } from "node:buffer";

/** Decoded bytes. */
export interface DecodedText {
  /** Without the byte order mark. */
  readonly text: string;
  readonly encoding: "utf-8" | "utf-16le" | "utf-16be";
  readonly hasMark: boolean;
  /** Whether `encodeText` restores the same bytes. */
  readonly isExact: boolean;
}

/** Undefined: not text. */
export function decodeText(bytes: Buffer): DecodedText | undefined {
  const encoding = encodingOf(bytes);
  if (encoding === undefined) return undefined;
  if (encoding === "utf-8") {
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    return { text: bytes.toString("utf8", hasMark ? 3 : 0), encoding, hasMark, isExact: isUtf8(bytes) };
  }
  const units = encoding === "utf-16le" ? bytes : swapped(bytes);
  const text = units.toString("utf16le", 2);
  return { text, encoding, hasMark: true, isExact: bytes.length % 2 === 0 };
}

export function encodeText(text: string, { encoding, hasMark }: Pick<DecodedText, "encoding" | "hasMark">): Buffer {
  const marked = hasMark ? `\uFEFF${text}` : text;
  if (encoding === "utf-8") return Buffer.from(marked);
  const units = Buffer.from(marked, "utf16le");
  return encoding === "utf-16le" ? units : units.swap16();
}

/** As in git, a NUL in the first bytes means binary; a byte order mark means UTF-16, which contains many. */
export function encodingOf(bytes: Buffer): DecodedText["encoding"] | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return bytes.subarray(0, probedBytes).includes(0) ? undefined : "utf-8";
}

/** The number of bytes that decide whether a file is text. */
export const probedBytes = 8192;

function swapped(bytes: Buffer): Buffer {
  // Whole code units only, and a copy, since swap16 works in place.
  return Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2))).swap16();
}
