import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type FileLock, lockHolder, takeFileLock } from "../../src/io/file-lock.ts";
import { compileSources } from "../compiled-sources.ts";
import { emptyFolder } from "./temp-folder.ts";

// `false` simulates a file system without hard links.
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

/** Another process that takes the lock on `signal()` and ends on the next one. */
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

  signal(): void {
    this.#child.stdin?.write("go\n");
  }

  async take(): Promise<string> {
    await this.said();
    this.signal();
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

describe.each([true, false])("a file lock, with hard links: %s", (work) => {
  test("a lock has one holder at a time and names it, and can be taken after its release", async () => {
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

  test("one of many concurrent attempts in a process gets the lock", async () => {
    links.work = work;
    const path = lockFile();
    const taken = await Promise.all(Array.from({ length: 20 }, () => takeFileLock(path)));
    const held = taken.filter(({ kind }) => kind === "held");
    expect(held).toHaveLength(1);
    for (const { lock } of held as { lock: FileLock }[]) lock.release();
  });
});

describe("a file lock between processes", () => {
  test("a live holder keeps the lock, and a killed one loses it", async () => {
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

  test("a holder releases the lock when it exits", async () => {
    const path = lockFile();
    const other = new OtherProcess(path);
    expect(await other.take()).toBe("held");
    await other.end(() => other.signal());
    expect(existsSync(path)).toBe(false);
  });

  test("one of many processes gets the lock of a killed holder", async () => {
    const path = lockFile();
    const takers = Array.from({ length: 6 }, () => new OtherProcess(path));
    await Promise.all(takers.map((taker) => taker.said()));
    // The lock of an ended process of this machine.
    writeFileSync(path, JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), token: "old", since: "2026-01-01T00:00:00.000Z" }));
    for (const taker of takers) taker.signal();
    const said = await Promise.all(takers.map((taker) => taker.said()));
    expect(said.sort()).toEqual(["held", ...Array(5).fill("taken")]);
    expect(takers.map(({ pid }) => pid)).toContain((lockHolder(path) as { pid: number }).pid);
  });
});

describe("an existing lock file", () => {
  const holder = { pid: 2 ** 22 + 1, host: hostname(), token: "old", since: "2026-01-01T00:00:00.000Z" };
  const leave = (content: string): string => {
    const path = lockFile();
    writeFileSync(path, content);
    return path;
  };

  test("the lock of an ended process is taken over, even if an earlier takeover was killed", async () => {
    const path = leave(JSON.stringify(holder));
    writeFileSync(`${path}.old`, JSON.stringify({ ...holder, token: "older" }));
    await take(path);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ pid: process.pid });
    expect(readdirSync(join(path, ".."))).toEqual(["the.lock"]);
  });

  test.runIf(process.platform === "linux")("the lock of a process whose id was reused is taken over", async () => {
    await take(leave(JSON.stringify({ ...holder, pid: process.pid, start: "another-boot/1" })));
  });

  test("the lock of a process on another machine is respected", async () => {
    const path = leave(JSON.stringify({ ...holder, host: "elsewhere" }));
    expect(await takeFileLock(path)).toMatchObject({ kind: "taken", holder: { host: "elsewhere" } });
  });

  test.each(["", "not JSON", '{"pid":-1,"host":"x"}', JSON.stringify({ ...holder, token: "../../x" }), "null"])(
    "a lock file without a valid holder (%s) is respected while new, and replaced once old",
    async (content) => {
      const path = leave(content);
      expect(await takeFileLock(path)).toEqual({ kind: "taken", holder: undefined });
      expect(lockHolder(path)).toBe("unknown");
      utimesSync(path, 1, 1);
      await take(path);
    },
  );

  test("a lock that another process has taken over is not released", async () => {
    const path = lockFile();
    const lock = await take(path);
    writeFileSync(path, JSON.stringify({ ...holder, host: "elsewhere" }));
    lock.release();
    expect(lockHolder(path)).toMatchObject({ host: "elsewhere" });
  });

  test("a missing folder is an error of the system and leaves no lock", async () => {
    await expect(takeFileLock(join(emptyFolder(), "missing", "the.lock"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});
