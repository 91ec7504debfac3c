import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readTextFile } from "../../src/io/read-bounded.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "read-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("a read returns a file up to the limit and refuses a larger one", () => {
  const file = join(folder(), "a.md");
  writeFileSync(file, "größe");
  expect(readTextFile(file, 7)).toMatchObject({ ok: true, text: "größe", isUtf8: true });
  expect(readTextFile(file, 6)).toMatchObject({ ok: false, diagnostic: { code: "FILE_TOO_LARGE", file, severity: "error" } });
  writeFileSync(file, "");
  expect(readTextFile(file, 0)).toMatchObject({ ok: true, text: "" });
});

test("a read checks the size first and does not read a huge sparse file", () => {
  const file = join(folder(), "huge");
  writeFileSync(file, "");
  truncateSync(file, 2 ** 40);
  expect(readTextFile(file, 1000)).toMatchObject({ ok: false, diagnostic: { code: "FILE_TOO_LARGE" } });
});

test("a read keeps the bytes unchanged and reports invalid UTF-8", () => {
  const file = join(folder(), "a.md");
  writeFileSync(file, Buffer.from([0xef, 0xbb, 0xbf, 0x41]));
  expect(readTextFile(file, 100)).toMatchObject({ ok: true, text: "\ufeffA", isUtf8: true });
  writeFileSync(file, Buffer.from([0x41, 0xe4, 0x42, 0]));
  const latin = readTextFile(file, 100);
  expect(latin).toMatchObject({ ok: true, text: "A\ufffdB\0", isUtf8: false });
  expect(latin.ok && [...latin.bytes]).toEqual([0x41, 0xe4, 0x42, 0]);
});

test("a read reports a missing file and a path that is not a file", () => {
  const at = folder();
  writeFileSync(join(at, "file"), "x");
  symlinkSync("nowhere", join(at, "dangling"));
  for (const name of ["missing", "file/below", "dangling"]) {
    expect(readTextFile(join(at, name), 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_MISSING", file: join(at, name) } });
  }
  expect(readTextFile(at, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_NOT_REGULAR" } });
  expect(readTextFile(`${at}/a\0b`, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_UNREADABLE" } });
});

test.skipIf(process.platform === "win32")("a read does not block on a pipe, a socket or a device", async () => {
  const at = folder();
  expect(spawnSync("mkfifo", [join(at, "pipe")]).status).toBe(0);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(at, "socket"), resolve));
  onTestFinished(() => void server.close());
  for (const path of [join(at, "pipe"), join(at, "socket"), "/dev/zero"]) {
    expect(readTextFile(path, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_NOT_REGULAR" } });
  }
});

test.runIf(process.platform === "linux")(
  "a read returns the content of a file that reports size zero, and refuses it beyond the limit",
  () => {
    expect(readTextFile("/proc/self/status", 100_000)).toMatchObject({ ok: true, text: expect.stringContaining("Name:") });
    expect(readTextFile("/proc/self/status", 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_TOO_LARGE" } });
  },
);

test.skipIf(process.platform === "win32" || process.getuid?.() === 0)("a read reports missing access rights", () => {
  const file = join(folder(), "private");
  writeFileSync(file, "x");
  chmodSync(file, 0);
  expect(readTextFile(file, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_UNREADABLE" } });
});
