import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeFileAtomic } from "../../src/io/atomic-write.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "atomic-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("a write creates or replaces a file with text or bytes, and leaves no temporary file", async () => {
  const at = folder();
  const file = join(at, "lock.json");
  await writeFileAtomic(file, "größe");
  expect(readFileSync(file, "utf8")).toBe("größe");
  await writeFileAtomic(file, new Uint8Array([0, 255, 1]));
  expect([...readFileSync(file)]).toEqual([0, 255, 1]);
  expect(readdirSync(at)).toEqual(["lock.json"]);
});

test.skipIf(process.platform === "win32")(
  "a write keeps the mode of an existing file, and gives a new file the requested mode",
  async () => {
    const at = folder();
    const file = join(at, "run.sh");
    writeFileSync(file, "old");
    chmodSync(file, 0o751);
    await writeFileAtomic(file, "new", { mode: 0o600 });
    expect(statSync(file).mode & 0o777).toBe(0o751);
    await writeFileAtomic(join(at, "token"), "secret", { mode: 0o600 });
    expect(statSync(join(at, "token")).mode & 0o777).toBe(0o600);
  },
);

test("a write through a link replaces the target and keeps the link", async () => {
  const at = folder();
  mkdirSync(join(at, "real"));
  writeFileSync(join(at, "real/file"), "old");
  symlinkSync("real/file", join(at, "link"));
  await writeFileAtomic(join(at, "link"), "new");
  expect(lstatSync(join(at, "link")).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(at, "real/file"), "utf8")).toBe("new");
  expect(readdirSync(join(at, "real"))).toEqual(["file"]);
});

test("a failed write removes its temporary file and keeps the old content", async () => {
  const at = folder();
  mkdirSync(join(at, "taken/by-a-folder"), { recursive: true });
  await expect(writeFileAtomic(join(at, "taken"), "x")).rejects.toThrow();
  expect(readdirSync(at)).toEqual(["taken"]);
  await expect(writeFileAtomic(join(at, "missing/file"), "x")).rejects.toMatchObject({ code: "ENOENT" });
  expect(readdirSync(at)).toEqual(["taken"]);
});

test("readers see the old or the new text, never a part, during many writes", async () => {
  const file = join(folder(), "shared.txt");
  const texts = Array.from({ length: 8 }, (_, i) => `${i}`.repeat(200_000));
  await writeFileAtomic(file, texts[0] ?? "");
  let isWriting = true;
  const seen = new Set<number>();
  const reading = (async () => {
    while (isWriting) {
      const text = readFileSync(file, "utf8");
      seen.add(new Set(text).size * 1_000_000 + text.length);
      await new Promise(setImmediate);
    }
  })();
  await Promise.all(texts.map((text) => writeFileAtomic(file, text)));
  isWriting = false;
  await reading;
  expect([...seen]).toEqual([1_200_000]);
});
