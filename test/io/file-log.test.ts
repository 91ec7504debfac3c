import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { type FileLogOptions, openFileLog } from "../../src/io/log/append-log.ts";
import { compileSources } from "../compiled-sources.ts";
import { patience } from "../slowness.ts";
import { emptyFolder } from "./temp-folder.ts";

// How many more bytes the disk takes.
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

describe("writing", () => {
  test("writes what is added in one tick at once, and only for its owner to read", async () => {
    const path = logFile();
    const { log } = openLog(path);
    for (const record of numbers(3)) log.append(record);
    expect(readFileSync(path, "utf8")).toBe("");
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines(path)).toEqual(numbers(3));
    if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
    await log.close();
  });

  test("goes on behind what is there", async () => {
    const path = logFile('{"n":0}\n');
    for (const n of [1, 2]) {
      const { log } = openLog(path);
      log.append({ n });
      await log.close();
    }
    expect(lines(path)).toEqual(numbers(3));
  });

  test.each(["never", "close", "flush"] as const)("with sync: %s it is all there in the end", async (sync) => {
    const path = logFile();
    const { log } = openLog(path, { sync });
    for (const record of numbers(10)) {
      log.append(record);
      await log.flush();
    }
    await log.close();
    expect(lines(path)).toEqual(numbers(10));
  });

  test("refuses what is no regular file", () => {
    const folder = emptyFolder();
    mkdirSync(join(folder, "events.jsonl"));
    expect(() => openFileLog(join(folder, "events.jsonl"))).toThrow(/EISDIR|EACCES/);
    if (process.platform === "linux") expect(() => openFileLog("/dev/null")).toThrow(expect.objectContaining({ code: "LOG_UNUSABLE" }));
  });
});

describe("a last line that a killed writer left unfinished", () => {
  test("is moved aside, and said", async () => {
    const path = logFile('{"n":0}\n{"n":1}\n{"n":2,"text":"cu');
    const { log, diagnostics } = openLog(path);
    expect(diagnostics).toEqual([expect.objectContaining({ code: "LOG_TORN_LINE", severity: "warning", file: path })]);
    expect(readFileSync(`${path}.torn`, "utf8")).toBe('{"n":2,"text":"cu\n');
    log.append({ n: 2 });
    expect((await log.read()).records).toEqual(numbers(3));
    await log.close();
    expect(lines(path)).toEqual(numbers(3));
  });

  test("is kept beside what was moved aside before", async () => {
    const path = logFile('{"a');
    await openLog(path).log.close();
    appendFileSync(path, '{"b');
    await openLog(path).log.close();
    expect(readFileSync(`${path}.torn`, "utf8")).toBe('{"a\n{"b\n');
    expect(readFileSync(path, "utf8")).toBe("");
  });

  test("is a record like any other when only its line break is missing", async () => {
    const path = logFile('{"n":0}\n{"n":1}');
    const { log, diagnostics } = openLog(path);
    log.append({ n: 2 });
    await log.close();
    expect(lines(path)).toEqual(numbers(3));
    expect(diagnostics).toEqual([]);
    expect(existsSync(`${path}.torn`)).toBe(false);
  });

  test("may be long, or nothing but the zeros that a power cut leaves", async () => {
    const torn = Buffer.concat([Buffer.from(`{"text":"${"x".repeat(300_000)}`), Buffer.alloc(100_000)]);
    const path = logFile(Buffer.concat([Buffer.from('{"n":0}\n'), torn]));
    const { log } = openLog(path);
    expect((await log.read()).records).toEqual(numbers(1));
    await log.close();
    expect(readFileSync(`${path}.torn`).equals(Buffer.concat([torn, Buffer.from("\n")]))).toBe(true);
  });

  test("stays, as a line that is passed over, when it cannot be moved", async () => {
    const path = logFile('{"n":0}\n{"n":');
    mkdirSync(`${path}.torn`);
    const { log, codes } = openLog(path);
    expect(codes()).toEqual(["LOG_TORN_LINE"]);
    const { records, diagnostics } = await log.read();
    expect(records).toEqual(numbers(1));
    expect(diagnostics).toMatchObject([{ code: "LOG_LINE_DAMAGED", range: { start: { line: 2, column: 1 } } }]);
    await log.close();
  });

  test("is still there when the disk is so full that not even a line break fits", async () => {
    const path = logFile('{"n":0}\n{"n":');
    disk.room = 0;
    expect(() => openLog(path)).toThrow("ENOSPC");
    expect(readFileSync(path, "utf8")).toBe('{"n":0}\n{"n":');
  });
});

describe("damage further up", () => {
  test("is reported with its line, and costs nothing but that line", async () => {
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

  test("that is a line without end is not read into memory", async () => {
    const path = logFile(`{"n":0}\n{"text":"${"x".repeat(600_000)}"}\n{"n":1}\n`);
    const { log } = openLog(path, { maxLineBytes: 1000 });
    const { records, diagnostics } = await log.read();
    expect(records).toEqual(numbers(2));
    expect(diagnostics).toMatchObject([{ code: "LOG_LINE_TOO_LONG", range: { start: { line: 2, column: 1 } } }]);
    await log.close();
  });

  test("is named line by line only so often", async () => {
    const path = logFile(`${"broken\n".repeat(1000)}{"n":0}\n`);
    const { log } = openLog(path);
    const { records, diagnostics } = await log.read();
    expect(records).toEqual(numbers(1));
    expect(diagnostics).toHaveLength(21);
    expect(diagnostics.at(-1)?.message).toContain("980 more lines");
    await log.close();
  });

  test("that is nesting without end is a damaged line", async () => {
    const path = logFile(`${'{"a":'.repeat(200_000)}\n{"n":0}\n`);
    const { log } = openLog(path);
    expect((await log.read()).records).toEqual(numbers(1));
    await log.close();
  });
});

describe("a full disk", () => {
  test("is said once; what happens meanwhile is kept, can be read, and is written when there is room again", async () => {
    const path = logFile();
    const { log, codes, diagnostics } = openLog(path);
    log.append({ n: 0 });
    await log.flush();
    // The third line gets through in part.
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

  test("does not let memory grow without end: what is lost is counted", async () => {
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

  test("at the end is waited for, but not for ever", async () => {
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

test.runIf(canMount)("survives a disk that is really full, and goes on when something was deleted", () => {
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

test("what is not written yet when the program exits is written then", () => {
  const path = logFile();
  const child = compileSources("test/io/exit-child.ts")("test/io/exit-child.ts");
  const ran = spawnSync(process.execPath, [child, path], { encoding: "utf8", timeout: patience(20_000) });
  expect([ran.status, ran.stderr]).toEqual([3, ""]);
  expect(lines(path)).toEqual(numbers(100));
});

test("reads 10,000 records of a kilobyte, and their number does not matter to opening it", async () => {
  const record = { type: "tool.execution_complete", data: { content: "x".repeat(1000) } };
  const path = logFile(`${JSON.stringify(record)}\n`.repeat(10_000));
  const { log } = openLog(path);
  const { records, diagnostics } = await log.read();
  expect([records.length, diagnostics]).toEqual([10_000, []]);
  expect(records.at(-1)).toEqual(record);
  await log.close();
});
