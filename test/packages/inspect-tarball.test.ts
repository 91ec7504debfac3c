import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { inspectTarball, type TarballLimits, tarballLimits, unpackTarball } from "../../src/packages/inspect-tarball.ts";
import { rounds } from "../rounds.ts";
import { extended, type TarItem, tarball } from "./tar-kit.ts";

const good: TarItem = { path: "package/package.json", data: '{"name":"x","version":"1.0.0"}' };

async function inspect(packed: Buffer, limits: Partial<TarballLimits> = {}): Promise<string> {
  try {
    const { files, bytes } = await inspectTarball([packed], { ...tarballLimits, ...limits });
    return `${files} files, ${bytes} bytes`;
  } catch (error) {
    return `${(error as { code?: string }).code}: ${(error as Error).message}`;
  }
}

test("accepts an ordinary tarball and returns its counts", async () => {
  expect(await inspect(tarball([{ path: "package", type: "5" }, good, { path: "package/a/b.md", data: "1234" }]))).toBe(
    "2 files, 34 bytes",
  );
});

test.each<[string, readonly TarItem[], string]>([
  ["leads out by dots", [{ path: "package/../../evil" }], "points out of its folder"],
  ["leads out by dots in its first part", [{ path: "../evil" }], "points out of its folder"],
  ["leads out by an extended header", extended("package/../../evil", { data: "x" }), "points out of its folder"],
  ["is absolute", [{ path: "/etc/passwd" }], "absolute"],
  ["is absolute by an extended header", extended("/etc/cron.d/evil", { data: "x" }), "absolute"],
  ["is absolute on Windows", [{ path: "C:/evil" }], "absolute"],
  ["has backslashes", [{ path: "package/..\\..\\evil" }], "backslash"],
  ["is a symbolic link", [{ path: "package/link", type: "2", link: "/etc/passwd" }], "is a link"],
  ["is a symbolic link that stays inside", [{ path: "package/link", type: "2", link: "package.json" }], "is a link"],
  ["is a hard link", [{ path: "package/link", type: "1", link: "package/package.json" }], "is a link"],
  ["is a device", [{ path: "package/null", type: "3" }], "not a regular file"],
  ["is a pipe", [{ path: "package/pipe", type: "6" }], "not a regular file"],
  ["lies in a git folder", [{ path: "package/.git/hooks/post-checkout" }], "git repository"],
  ["has another's name", [good], "has the same name as"],
  ["has another's name on some systems", [{ path: "package/PACKAGE.json" }], "has the same name as"],
  ["has another's name by the long s", [{ path: "package/tools/s" }, ...extended("package/tools/\u017f", {})], "has the same name as"],
  ["has another's name by the sharp s", [{ path: "package/tools/ss" }, ...extended("package/tools/ß", {})], "has the same name as"],
  ["has another's name by a ligature", [{ path: "package/tools/fi" }, ...extended("package/tools/\ufb01", {})], "has the same name as"],
  ["has another's name by composition", [...extended("package/é", {}), ...extended("package/e\u0301", {})], "has the same name as"],
  ["is a file where another needs a folder", [{ path: "package/a" }, { path: "package/A/b" }], "has the same name as"],
  ["needs a folder where another is a file", [{ path: "package/A/b" }, { path: "package/a" }], "has the same name as"],
  ["lies in a git folder by a joiner", extended("package/.g\u200cit/config", {}), "git repository"],
  ["lies in a git folder by its short name", [{ path: "package/GIT~1/config" }], "git repository"],
  ["lies in a git folder by what Windows drops", [{ path: "package/.git . ./config" }], "git repository"],
  ["lies in a git folder by a stream", [{ path: "package/.git::$INDEX_ALLOCATION/config" }], "git repository"],
  ["lies in a git folder by wide letters", extended("package/.\uff47it/config", {}), "git repository"],
  ["is a stream", [{ path: "package/a.md:b" }], "colon"],
  ["is a device of Windows", [{ path: "package/tools/CON" }], "device"],
  ["is a device of Windows with an ending", [{ path: "package/nul.txt" }], "device"],
  ["is a device of Windows with a number", extended("package/com\u00b9.x", {}), "device"],
  ["lies in a device of Windows", [{ path: "package/aux. /a" }], "dot or space"],
  ["ends with a space", [{ path: "package/a " }], "dot or space"],
  ["has invisible characters", extended("package/a\u200b.md", {}), "invisible characters"],
  ["has a name without end", extended(`package/${"x".repeat(2_000)}`, {}), "more than 1024 characters"],
])("a tarball is refused when an entry %s", async (_what, items, why) => {
  expect(await inspect(tarball([good, ...items]))).toMatch(new RegExp(`^PACKAGE_TARBALL: This tarball was not unpacked\\. .*${why}`));
});

const tarballOf = (...items: readonly TarItem[]): Buffer => gunzipSync(tarball(items));
const zeros = (bytes: number): Buffer => Buffer.alloc(bytes);

test.each<[string, Buffer, Partial<TarballLimits>, string]>([
  ["too many files", tarball(Array.from({ length: 12 }, (_, n) => ({ path: `package/${n}` }))), { files: 10 }, "more than 10 files"],
  ["a file that is too large", tarball([{ path: "package/a", data: zeros(2_000) }]), { fileBytes: 1_000 }, "larger than 1000 bytes"],
  [
    "too much together",
    tarball([1, 2, 3].map((n) => ({ path: `package/${n}`, data: zeros(500) }))),
    { bytes: 1_000 },
    "larger than 1000 bytes",
  ],
  ["a size in its header that is too large", tarball([{ path: "package/a", size: 8 ** 11 - 1 }]), {}, "larger than 64 MB"],
  ["contents far larger than itself", tarball([{ path: "package/a", data: zeros(8 * 1024 * 1024) }]), {}, "200 times larger"],
  [
    "headers without end",
    gzipSync(Buffer.concat([zeros(512), Buffer.alloc(40 * 1024 * 1024, tarball([good]))])),
    { ratio: 1e9, bytes: 1024 * 1024 },
    "not unpacked",
  ],
  [
    "more bytes than a tarball may have",
    tarball([{ path: "package/a", data: Buffer.from(Array.from({ length: 5_000 }, (_, n) => (n * 7919) % 256)) }]),
    { packedBytes: 100 },
    "larger than 100 bytes",
  ],
])("a tarball is refused for %s", async (_what, packed, limits, why) => {
  expect(await inspect(packed, limits)).toContain(`PACKAGE_TARBALL: This tarball was not unpacked.`);
  expect(await inspect(packed, limits)).toContain(why);
});

test.each([16, 256])("a tarball of %i MB of zeros is refused after a megabyte of them", async (megabytes) => {
  const bomb = gzipSync(Buffer.concat([tarballOf(good), zeros(megabytes * 1024 * 1024)]));
  expect(await inspect(bomb, { ratio: 1e9 })).toContain("More than 1 MB follow the end of the archive.");
});

test("padding at the end of an archive is accepted", async () => {
  expect(await inspect(gzipSync(Buffer.concat([tarballOf(good), zeros(64 * 1024)])))).toBe("1 files, 30 bytes");
});

test.each([
  ["no gzip", Buffer.from("not a tarball at all")],
  ["gzip of something else", gzipSync("x".repeat(3_000))],
  ["cut off", tarball([good, { path: "package/b", data: "y".repeat(5_000) }]).subarray(0, 60)],
  ["empty", Buffer.alloc(0)],
  ["without entries", tarball([])],
])("bytes that are %s are refused", async (_what, packed) => {
  expect(await inspect(packed)).toMatch(/^PACKAGE_TARBALL: This tarball was not unpacked\./);
});

/** A change of the bytes at a place between the first (0) and the last (1). */
interface Mutation {
  readonly at: number;
  readonly kind: "set" | "cut" | "repeat" | "exchange";
  readonly byte: number;
}

function mutated(bytes: Buffer, { at, kind, byte }: Mutation): Buffer {
  const place = Math.floor(at * Math.max(0, bytes.length - 1));
  const before = bytes.subarray(0, place);
  if (kind === "set") return Buffer.concat([before, Buffer.from([byte]), bytes.subarray(place + 1)]);
  // Whole blocks of 512 bytes: headers move to where contents were.
  const [start, end] = [place - (place % 512), place - (place % 512) + 512 * (1 + (byte % 3))];
  const blocks = bytes.subarray(start, end);
  if (kind === "cut") return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
  if (kind === "repeat") return Buffer.concat([bytes.subarray(0, end), blocks, bytes.subarray(end)]);
  return Buffer.concat([blocks, bytes.subarray(0, start), bytes.subarray(end)]);
}

/** Makes the check sums of all blocks right that could be headers, so that a changed header is read at all. */
function withSums(bytes: Buffer): Buffer {
  const summed = Buffer.from(bytes);
  for (let at = 0; at + 512 <= summed.length; at += 512) {
    const header = summed.subarray(at, at + 512);
    if (header.toString("latin1", 257, 262) !== "ustar") continue;
    header.write("        ", 148);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  }
  return summed;
}

test("a tarball with any bytes changed is refused with a code, or unpacked into its own folder and nowhere else", async () => {
  const outside = join(tmpdir(), "escaped");
  const names = ["package/a.md", "package/tools/b.ts", "package/link/c", "package/link", "package/../../escaped", "../escaped", outside];
  const item = fc.record({
    path: fc.oneof(
      fc.constantFrom(...names),
      fc.string({ maxLength: 20 }).map((name) => `package/${name}`),
    ),
    data: fc.oneof(
      fc.string({ maxLength: 600 }),
      fc.constantFrom(...names).map((name) => `${name.length + 9} path=${name}\n`),
    ),
    type: fc.constantFrom("0", "0", "0", "\0", "1", "2", "5", "7", "g", "x", "K", "L"),
    link: fc.constantFrom("", "..", "../..", outside, "package/a.md"),
  });
  const mutation = fc.record<Mutation>({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    kind: fc.constantFrom("set", "set", "set", "cut", "repeat", "exchange"),
    byte: fc.oneof(fc.nat(255), fc.constantFrom(0, 0x2e, 0x2f, 0x30, 0x5c, 0x80, 0xff)),
  });
  const before = readdirSync(tmpdir()).sort();
  let unpackedOnce = 0;
  const property = fc.asyncProperty(
    fc.array(item, { maxLength: 5 }),
    fc.array(mutation, { maxLength: 6 }),
    fc.array(mutation, { maxLength: 1 }),
    async (items, inside, ofPacked) => {
      const bytes = inside.reduce(mutated, gunzipSync(tarball([good, ...items])));
      const packed = ofPacked.reduce(mutated, gzipSync(withSums(bytes), { level: 1 }));
      try {
        using unpacked = await unpackTarball(packed);
        unpackedOnce++;
        expect(
          readdirSync(unpacked.folder, { recursive: true, withFileTypes: true }).every((each) => each.isFile() || each.isDirectory()),
        ).toBe(true);
        expect(readdirSync(tmpdir()).length).toBe(before.length + 1);
      } catch (error) {
        expect((error as { code?: string }).code).toBe("PACKAGE_TARBALL");
      }
      expect(readdirSync(tmpdir()).sort()).toEqual(before);
    },
  );
  await fc.assert(property, { numRuns: rounds(200, 10_000) });
  expect(unpackedOnce).toBeGreaterThan(0);
});
