import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { type FileLogOptions, openFileLog } from "../../src/io/log/append-log.ts";
import { compileSources } from "../compiled-sources.ts";
import { patience } from "../slowness.ts";
import { emptyFolder } from "./temp-folder.ts";

// The number of bytes that still fit on the disk.
const disk = vi.hoisted(() => ({ room: Number.POSITIVE_INFINITY }));

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const writeSync = (file: number, data: Uint8Array | string): number => {
    const bytes = Buffer.from(data);
    if (disk.room === 0) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    const written = fs.writeSync(file, bytes.subarray(0, Math.min(bytes.length, disk.room)));
    disk.room -= written;
    return written;
  };
  const appendFileSync = (...args: Parameters<typeof fs.appendFileSync>): void => {
    if (disk.room === 0) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    fs.appendFileSync(...args);
  };
  return { ...fs, writeSync, appendFileSync };
});

afterEach(() => {
  disk.room = Number.POSITIVE_INFINITY;
});

function logFile(text?: string | Uint8Array): string {
  const path = join(emptyFolder(), "events.jsonl");
  if (text !== undefined) writeFileSync(path, text);
  return path;
}

function openLog(path: string, options: FileLogOptions = {}) {
  const diagnostics: Diagnostic[] = [];
  const log = openFileLog(path, { onDiagnostic: (diagnostic) => diagnostics.push(diagnostic), ...options });
  return { log, diagnostics, codes: () => diagnostics.map(({ code }) => code) };
}

const numbers = (count: number, from = 0): { n: number }[] => Array.from({ length: count }, (_, i) => ({ n: from + i }));
const lines = (path: string): unknown[] =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

describe("writing a log", () => {
  test("records that are added in one tick are written together, to a file that only its owner can read", async () => {
    const path = logFile();
    const { log } = openLog(path);
    for (const record of numbers(3)) log.append(record);
    expect(readFileSync(path, "utf8")).toBe("");
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines(path)).toEqual(numbers(3));
    if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
    await log.close();
  });

  test("records are appended to an existing file", async () => {
    const path = logFile('{"n":0}\n');
    for (const n of [1, 2]) {
      const { log } = openLog(path);
      log.append({ n });
      await log.close();
    }
    expect(lines(path)).toEqual(numbers(3));
  });

  test.each(["never", "close", "flush"] as const)("a closed log contains all records with sync: %s", async (sync) => {
    const path = logFile();
    const { log } = openLog(path, { sync });
    for (const record of numbers(10)) {
      log.append(record);
      await log.flush();
    }
    await log.close();
    expect(lines(path)).toEqual(numbers(10));
  });

  test("a path that is not a regular file is refused", () => {
    const folder = emptyFolder();
    mkdirSync(join(folder, "events.jsonl"));
    expect(() => openFileLog(join(folder, "events.jsonl"))).toThrow(/EISDIR|EACCES/);
    if (process.platform === "linux") expect(() => openFileLog("/dev/null")).toThrow(expect.objectContaining({ code: "LOG_UNUSABLE" }));
  });
});

describe("an incomplete last line of a killed writer", () => {
  test("an incomplete line is moved to another file and reported", async () => {
    const path = logFile('{"n":0}\n{"n":1}\n{"n":2,"text":"cu');
    const { log, diagnostics } = openLog(path);
    expect(diagnostics).toEqual([expect.objectContaining({ code: "LOG_TORN_LINE", severity: "warning", file: path })]);
    expect(readFileSync(`${path}.torn`, "utf8")).toBe('{"n":2,"text":"cu\n');
    log.append({ n: 2 });
    expect((await log.read()).records).toEqual(numbers(3));
    await log.close();
    expect(lines(path)).toEqual(numbers(3));
  });

  test("an incomplete line is added to those that were moved before", async () => {
    const path = logFile('{"a');
    await openLog(path).log.close();
    appendFileSync(path, '{"b');
    await openLog(path).log.close();
    expect(readFileSync(`${path}.torn`, "utf8")).toBe('{"a\n{"b\n');
    expect(readFileSync(path, "utf8")).toBe("");
  });

  test("a last line that lacks only its line break is an ordinary record", async () => {
    const path = logFile('{"n":0}\n{"n":1}');
    const { log, diagnostics } = openLog(path);
    log.append({ n: 2 });
    await log.close();
    expect(lines(path)).toEqual(numbers(3));
    expect(diagnostics).toEqual([]);
    expect(existsSync(`${path}.torn`)).toBe(false);
  });

  test("an incomplete line may be long, or consist of the zeros that a power failure leaves", async () => {
    const torn = Buffer.concat([Buffer.from(`{"text":"${"x".repeat(300_000)}`), Buffer.alloc(100_000)]);
    const path = logFile(Buffer.concat([Buffer.from('{"n":0}\n'), torn]));
    const { log } = openLog(path);
    expect((await log.read()).records).toEqual(numbers(1));
    await log.close();
    expect(readFileSync(`${path}.torn`).equals(Buffer.concat([torn, Buffer.from("\n")]))).toBe(true);
  });

  test("an incomplete line that cannot be moved stays and is ignored", async () => {
    const path = logFile('{"n":0}\n{"n":');
    mkdirSync(`${path}.torn`);
    const { log, codes } = openLog(path);
    expect(codes()).toEqual(["LOG_TORN_LINE"]);
    const { records, diagnostics } = await log.read();
    expect(records).toEqual(numbers(1));
    expect(diagnostics).toMatchObject([{ code: "LOG_LINE_DAMAGED", range: { start: { line: 2, column: 1 } } }]);
    await log.close();
  });

  test("an incomplete line is kept if the full disk has no room for a line break", async () => {
    const path = logFile('{"n":0}\n{"n":');
    disk.room = 0;
    expect(() => openLog(path)).toThrow("ENOSPC");
    expect(readFileSync(path, "utf8")).toBe('{"n":0}\n{"n":');
  });
});

describe("damage before the last line", () => {
  test("a damaged line is reported with its number, and other lines are unaffected", async () => {
    const whole = Buffer.from('{"n":0}\n');
    const path = logFile(
      Buffer.concat([
        whole,
        Buffer.from("not json\n"),
        Buffer.from('{"n":1}\r\n'),
        Buffer.from("[1]\n\n"),
        Buffer.from([0x7b, 0xff, 0xfe, 0x0a]),
        Buffer.alloc(50),
        Buffer.from("\n"),
        Buffer.from('{"n":2}\n'),
      ]),
    );
    const { log } = openLog(path);
    const { records, diagnostics } = await log.read();
    expect(records).toEqual(numbers(3));
    expect(diagnostics.map(({ code, file, range }) => [code, file, range?.start.line])).toEqual(
      [2, 4, 6, 7].map((line) => ["LOG_LINE_DAMAGED", path, line]),
    );
    await log.close();
  });

  test("a line beyond the limit is not read into memory", async () => {
    const path = logFile(`{"n":0}\n{"text":"${"x".repeat(600_000)}"}\n{"n":1}\n`);
    const { log } = openLog(path, { maxLineBytes: 1000 });
    const { records, diagnostics } = await log.read();
    expect(records).toEqual(numbers(2));
    expect(diagnostics).toMatchObject([{ code: "LOG_LINE_TOO_LONG", range: { start: { line: 2, column: 1 } } }]);
    await log.close();
  });

  test("reports of damaged lines are limited", async () => {
    const path = logFile(`${"broken\n".repeat(1000)}{"n":0}\n`);
    const { log } = openLog(path);
    const { records, diagnostics } = await log.read();
    expect(records).toEqual(numbers(1));
    expect(diagnostics).toHaveLength(21);
    expect(diagnostics.at(-1)?.message).toContain("980 more lines");
    await log.close();
  });

  test("a line with excessive nesting is damaged", async () => {
    const path = logFile(`${'{"a":'.repeat(200_000)}\n{"n":0}\n`);
    const { log } = openLog(path);
    expect((await log.read()).records).toEqual(numbers(1));
    await log.close();
  });
});

describe("a full disk", () => {
  test("a full disk is reported once, and later records are kept, can be read, and are written when there is room", async () => {
    const path = logFile();
    const { log, codes, diagnostics } = openLog(path);
    log.append({ n: 0 });
    await log.flush();
    // Only a part of the third line fits.
    disk.room = '{"n":1}\n{"n"'.length;
    for (const record of numbers(3, 1)) log.append(record);
    await expect(log.flush()).rejects.toMatchObject({ code: "LOG_NOT_WRITTEN", message: expect.stringContaining("ENOSPC") });
    for (const record of numbers(3, 4)) log.append(record);
    await expect(log.flush()).rejects.toMatchObject({ code: "LOG_NOT_WRITTEN" });
    expect((await log.read()).records).toEqual(numbers(7));
    expect(codes()).toEqual(["LOG_NOT_WRITTEN"]);
    disk.room = Number.POSITIVE_INFINITY;
    await vi.waitFor(() => expect(codes()).toEqual(["LOG_NOT_WRITTEN", "LOG_WRITTEN_AGAIN"]), { timeout: patience(10_000) });
    expect(diagnostics[1]?.message).toContain("No records were lost");
    log.append({ n: 7 });
    await log.close();
    expect(lines(path)).toEqual(numbers(8));
  });

  test("pending records are limited, and lost ones are counted", async () => {
    const path = logFile();
    const { log, diagnostics } = openLog(path, { maxPendingBytes: 100 });
    disk.room = 0;
    log.append({ n: 0 });
    await expect(log.flush()).rejects.toMatchObject({ code: "LOG_NOT_WRITTEN" });
    for (const record of numbers(99, 1)) log.append(record);
    disk.room = Number.POSITIVE_INFINITY;
    await log.flush();
    const kept = lines(path).length;
    expect(lines(path)).toEqual(numbers(kept));
    expect(kept).toBeGreaterThan(5);
    expect(kept).toBeLessThan(20);
    expect(diagnostics.map(({ code }) => code)).toEqual(["LOG_NOT_WRITTEN", "LOG_RECORDS_LOST", "LOG_WRITTEN_AGAIN"]);
    expect(diagnostics[2]?.message).toContain(`${100 - kept} records`);
    await log.close();
  });

  test("closing a log waits for room on the disk up to a limit", async () => {
    const path = logFile();
    disk.room = 0;
    const hopeless = openLog(path, { closeTimeout: 100 });
    hopeless.log.append({ n: 0 });
    await expect(hopeless.log.close()).rejects.toMatchObject({ code: "LOG_NOT_WRITTEN", message: expect.stringContaining("1 records") });
    await expect(hopeless.log.flush()).rejects.toMatchObject({ code: "LOG_NOT_WRITTEN" });
    const patient = openLog(path);
    patient.log.append({ n: 0 });
    const closed = patient.log.close();
    disk.room = Number.POSITIVE_INFINITY;
    await closed;
    expect(lines(path)).toEqual(numbers(1));
  });
});

const canMount = process.platform === "linux" && spawnSync("unshare", ["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0;

test.runIf(canMount)("a log survives a full disk, and continues after a file was deleted", () => {
  const mount = emptyFolder();
  const child = [compileSources("test/io/full-disk-child.ts")("test/io/full-disk-child.ts"), mount];
  const script = 'mount -t tmpfs -o size=128k none "$2" && exec "$0" "$@"';
  const ran = spawnSync("unshare", ["-Urm", "sh", "-c", script, process.execPath, ...child], {
    encoding: "utf8",
    timeout: patience(20_000),
  });
  expect(ran.stderr).toBe("");
  expect(JSON.parse(ran.stdout)).toEqual({ codes: ["LOG_NOT_WRITTEN", "LOG_WRITTEN_AGAIN"], inOrder: true, records: 2500 });
});

test("pending records are written when the program exits", () => {
  const path = logFile();
  const child = compileSources("test/io/exit-child.ts")("test/io/exit-child.ts");
  const ran = spawnSync(process.execPath, [child, path], { encoding: "utf8", timeout: patience(20_000) });
  expect([ran.status, ran.stderr]).toEqual([3, ""]);
  expect(lines(path)).toEqual(numbers(100));
});

test("a log reads 10,000 records of a kilobyte", async () => {
  const record = { type: "tool.execution_complete", data: { content: "x".repeat(1000) } };
  const path = logFile(`${JSON.stringify(record)}\n`.repeat(10_000));
  const { log } = openLog(path);
  const { records, diagnostics } = await log.read();
  expect([records.length, diagnostics]).toEqual([10_000, []]);
  expect(records.at(-1)).toEqual(record);
  await log.close();
});
