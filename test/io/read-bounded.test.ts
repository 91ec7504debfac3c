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

test("reads a file up to the limit and not one byte beyond", () => {
  const file = join(folder(), "a.md");
  writeFileSync(file, "größe");
  expect(readTextFile(file, 7)).toMatchObject({ ok: true, text: "größe", isUtf8: true });
  expect(readTextFile(file, 6)).toMatchObject({ ok: false, diagnostic: { code: "FILE_TOO_LARGE", file, severity: "error" } });
  writeFileSync(file, "");
  expect(readTextFile(file, 0)).toMatchObject({ ok: true, text: "" });
});

test("looks at the size before it reads: a huge sparse file costs nothing", () => {
  const file = join(folder(), "huge");
  writeFileSync(file, "");
  truncateSync(file, 2 ** 40);
  expect(readTextFile(file, 1000)).toMatchObject({ ok: false, diagnostic: { code: "FILE_TOO_LARGE" } });
});

test("keeps the bytes as they are and says when they are not UTF-8", () => {
  const file = join(folder(), "a.md");
  writeFileSync(file, Buffer.from([0xef, 0xbb, 0xbf, 0x41]));
  expect(readTextFile(file, 100)).toMatchObject({ ok: true, text: "\ufeffA", isUtf8: true });
  writeFileSync(file, Buffer.from([0x41, 0xe4, 0x42, 0]));
  const latin = readTextFile(file, 100);
  expect(latin).toMatchObject({ ok: true, text: "A\ufffdB\0", isUtf8: false });
  expect(latin.ok && [...latin.bytes]).toEqual([0x41, 0xe4, 0x42, 0]);
});

test("says what is missing, and what is no file", () => {
  const at = folder();
  writeFileSync(join(at, "file"), "x");
  symlinkSync("nowhere", join(at, "dangling"));
  for (const name of ["missing", "file/below", "dangling"]) {
    expect(readTextFile(join(at, name), 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_MISSING", file: join(at, name) } });
  }
  expect(readTextFile(at, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_NOT_REGULAR" } });
  expect(readTextFile(`${at}/a\0b`, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_UNREADABLE" } });
});

test.skipIf(process.platform === "win32")("a pipe, a socket or a device cannot make it wait", async () => {
  const at = folder();
  expect(spawnSync("mkfifo", [join(at, "pipe")]).status).toBe(0);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(at, "socket"), resolve));
  onTestFinished(() => void server.close());
  for (const path of [join(at, "pipe"), join(at, "socket"), "/dev/zero"]) {
    expect(readTextFile(path, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_NOT_REGULAR" } });
  }
});

test.runIf(process.platform === "linux")("reads files that say they are empty, and stops at the limit in them", () => {
  expect(readTextFile("/proc/self/status", 100_000)).toMatchObject({ ok: true, text: expect.stringContaining("Name:") });
  expect(readTextFile("/proc/self/status", 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_TOO_LARGE" } });
});

test.skipIf(process.platform === "win32" || process.getuid?.() === 0)("says when it has no right to read", () => {
  const file = join(folder(), "private");
  writeFileSync(file, "x");
  chmodSync(file, 0);
  expect(readTextFile(file, 10)).toMatchObject({ ok: false, diagnostic: { code: "FILE_UNREADABLE" } });
});
