const signatures: readonly (readonly [mimeType: string, at: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
];

/** What kind of image this is that models can see, by its first bytes. Undefined: none. */
export function imageTypeOf(head: Buffer): string | undefined {
  return signatures.find(([, at, bytes]) => head.toString("latin1", at, at + bytes.length) === bytes)?.[0];
}
