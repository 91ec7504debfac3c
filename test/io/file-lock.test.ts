import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type FileLock, lockHolder, takeFileLock } from "../../src/io/file-lock.ts";
import { compileSources } from "../compiled-sources.ts";
import { emptyFolder } from "./temp-folder.ts";

// As on a file system without hard links.
const links = vi.hoisted(() => ({ work: true }));

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const linkSync = (from: string, to: string): void => {
    if (!links.work) throw Object.assign(new Error("EPERM: planted, link"), { code: "EPERM" });
    fs.linkSync(from, to);
  };
  return { ...fs, linkSync };
});

const children: ChildProcess[] = [];
const locks: FileLock[] = [];

afterEach(() => {
  links.work = true;
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const lock of locks.splice(0)) lock.release();
});

const lockFile = (): string => join(emptyFolder(), "the.lock");

async function take(path: string): Promise<FileLock> {
  const taken = await takeFileLock(path);
  if (taken.kind === "taken") throw new Error(`The lock is taken by ${JSON.stringify(taken.holder)}.`);
  locks.push(taken.lock);
  return taken.lock;
}

/** Another process that takes the lock when it is told to. */
class OtherProcess {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  #waiting: ((line: string) => void) | undefined;

  constructor(path: string) {
    this.#child = spawn(process.execPath, [compileSources("test/io/lock-child.ts")("test/io/lock-child.ts"), path], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    children.push(this.#child);
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      this.#lines.push(...chunk.toString().split("\n").filter(Boolean));
      this.#give();
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  said(): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#give();
    });
  }

  tell(): void {
    this.#child.stdin?.write("go\n");
  }

  async take(): Promise<string> {
    await this.said();
    this.tell();
    return this.said();
  }

  async end(how: () => void): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("close", resolve));
    how();
    await ended;
  }

  kill(): Promise<void> {
    return this.end(() => this.#child.kill("SIGKILL"));
  }

  #give(): void {
    const line = this.#waiting && this.#lines.shift();
    if (line === undefined) return;
    this.#waiting?.(line);
    this.#waiting = undefined;
  }
}

describe.each([true, false])("with hard links: %s", (work) => {
  test("one holder at a time, who is named; after the release the next", async () => {
    links.work = work;
    const path = lockFile();
    const first = await take(path);
    expect(await takeFileLock(path)).toMatchObject({ kind: "taken", holder: { pid: process.pid, host: hostname() } });
    expect(lockHolder(path)).toMatchObject({ pid: process.pid });
    first.release();
    first.release();
    expect(lockHolder(path)).toBeUndefined();
    await take(path);
    expect(readdirSync(join(path, ".."))).toEqual(["the.lock"]);
  });

  test("of many who try in one process, one gets it", async () => {
    links.work = work;
    const path = lockFile();
    const taken = await Promise.all(Array.from({ length: 20 }, () => takeFileLock(path)));
    const held = taken.filter(({ kind }) => kind === "held");
    expect(held).toHaveLength(1);
    for (const { lock } of held as { lock: FileLock }[]) lock.release();
  });
});

describe("between processes", () => {
  test("a holder keeps others out, and a killed one does not", async () => {
    const path = lockFile();
    const other = new OtherProcess(path);
    expect(await other.take()).toBe("held");
    expect(await takeFileLock(path)).toMatchObject({ kind: "taken", holder: { pid: other.pid } });
    await other.kill();
    expect(existsSync(path)).toBe(true);
    await take(path);
    expect(lockHolder(path)).toMatchObject({ pid: process.pid });
    const late = new OtherProcess(path);
    expect(await late.take()).toBe("taken");
  });

  test("a holder that exits gives it up", async () => {
    const path = lockFile();
    const other = new OtherProcess(path);
    expect(await other.take()).toBe("held");
    await other.end(() => other.tell());
    expect(existsSync(path)).toBe(false);
  });

  test("of all who want to succeed a killed holder at the same time, one does", async () => {
    const path = lockFile();
    const takers = Array.from({ length: 6 }, () => new OtherProcess(path));
    await Promise.all(takers.map((taker) => taker.said()));
    // What a process of this machine that is long gone has left.
    writeFileSync(path, JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), token: "old", since: "2026-01-01T00:00:00.000Z" }));
    for (const taker of takers) taker.tell();
    const said = await Promise.all(takers.map((taker) => taker.said()));
    expect(said.sort()).toEqual(["held", ...Array(5).fill("taken")]);
    expect(takers.map(({ pid }) => pid)).toContain((lockHolder(path) as { pid: number }).pid);
  });
});

describe("what lies there already", () => {
  const holder = { pid: 2 ** 22 + 1, host: hostname(), token: "old", since: "2026-01-01T00:00:00.000Z" };
  const leave = (content: string): string => {
    const path = lockFile();
    writeFileSync(path, content);
    return path;
  };

  test("a process that is gone is succeeded, also when a successor was killed while it took over", async () => {
    const path = leave(JSON.stringify(holder));
    writeFileSync(`${path}.old`, JSON.stringify({ ...holder, token: "older" }));
    await take(path);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ pid: process.pid });
    expect(readdirSync(join(path, ".."))).toEqual(["the.lock"]);
  });

  test.runIf(process.platform === "linux")("a process whose id was given to another is gone", async () => {
    await take(leave(JSON.stringify({ ...holder, pid: process.pid, start: "another-boot/1" })));
  });

  test("a process of another machine counts as alive", async () => {
    const path = leave(JSON.stringify({ ...holder, host: "elsewhere" }));
    expect(await takeFileLock(path)).toMatchObject({ kind: "taken", holder: { host: "elsewhere" } });
  });

  test.each(["", "not json", '{"pid":-1,"host":"x"}', JSON.stringify({ ...holder, token: "../../x" }), "null"])(
    "a file that names nobody (%s) is being made, or was left half made long ago",
    async (content) => {
      const path = leave(content);
      expect(await takeFileLock(path)).toEqual({ kind: "taken", holder: undefined });
      expect(lockHolder(path)).toBe("unknown");
      utimesSync(path, 1, 1);
      await take(path);
    },
  );

  test("a lock that somebody else has taken meanwhile is not released", async () => {
    const path = lockFile();
    const lock = await take(path);
    writeFileSync(path, JSON.stringify({ ...holder, host: "elsewhere" }));
    lock.release();
    expect(lockHolder(path)).toMatchObject({ host: "elsewhere" });
  });

  test("a folder that is gone is an error of the system, and nothing to release", async () => {
    await expect(takeFileLock(join(emptyFolder(), "missing", "the.lock"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});
