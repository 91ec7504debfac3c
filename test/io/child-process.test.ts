import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type ProgramOutcome, type ProgramSpec, runProgram, spawnProcess } from "../../src/io/process/child-process.ts";
import { compileSources } from "../compiled-sources.ts";
import { patience } from "../slowness.ts";

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "child-")));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const run = (script: string, more: Partial<ProgramSpec> = {}): Promise<ProgramOutcome> =>
  runProgram({
    command: process.execPath,
    args: ["-e", script],
    cwd: tmpdir(),
    signal: AbortSignal.timeout(patience(15_000)),
    maxOutputBytes: 100_000,
    ...more,
  });

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A killed orphan stays a zombie until init reaps it; it counts as dead.
  return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
};
const untilDead = (pid: number): Promise<void> =>
  vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: patience(10_000), interval: 10 });

describe("runProgram", () => {
  test("a program receives its arguments, input, working directory and environment unchanged, without a shell", async () => {
    const cwd = folder();
    const args = ["a b", "$(echo x)", "`x`", "; rm -rf /", "*", "'\"\\", "", "ü\n", "%PATH%", "-x"];
    const script =
      "let i='';process.stdin.on('data',d=>i+=d).on('end',()=>console.log(JSON.stringify([process.argv.slice(1),i,process.cwd(),process.env.ADDED])))";
    const outcome = await run(script, { args: ["-e", script, "--", ...args], cwd, stdin: "größe", env: { ADDED: "$HOME" } });
    expect(outcome).toMatchObject({ kind: "exited", code: 0, signal: null, truncated: false, stderrTail: "" });
    expect(outcome.kind === "exited" && JSON.parse(outcome.stdout)).toEqual([args, "größe", cwd, "$HOME"]);
  });

  test("a program without input reads an empty one", async () => {
    expect(await run("process.stdin.resume().on('end',()=>console.log('end'))")).toMatchObject({ stdout: "end\n" });
  });

  test("the outcome has the exit code or the signal", async () => {
    expect(await run("process.exit(3)")).toMatchObject({ kind: "exited", code: 3, signal: null });
    expect(await run("process.kill(process.pid,'SIGKILL');setTimeout(()=>{},9e4)")).toMatchObject({
      kind: "exited",
      code: null,
      signal: "SIGKILL",
    });
  });

  test("secrets of the host and variables that load foreign code are not inherited unless named", async () => {
    vi.stubEnv("PLANTED_TOKEN", "s3cret");
    vi.stubEnv("NODE_OPTIONS", "--no-warnings");
    vi.stubEnv("LD_PRELOAD", "");
    onTestFinished(() => void vi.unstubAllEnvs());
    const script = "console.log(JSON.stringify(process.env))";
    const plain = await run(script);
    const variables = plain.kind === "exited" ? JSON.parse(plain.stdout) : {};
    expect(Object.keys(variables)).toContain("PATH");
    for (const name of ["PLANTED_TOKEN", "NODE_OPTIONS", "LD_PRELOAD"]) expect(variables).not.toHaveProperty(name);
    const given = await run(script, { env: { NODE_OPTIONS: "--no-warnings" } });
    expect(given.kind === "exited" && JSON.parse(given.stdout)).toMatchObject({ NODE_OPTIONS: "--no-warnings" });
    const whole = await run(script, { environment: { ONLY: "this" } });
    expect(whole.kind === "exited" && JSON.parse(whole.stdout)).toEqual({ ONLY: "this" });
  });

  test("the outcome names a missing command or working directory", async () => {
    expect(await run("", { command: "no-such-program-anywhere" })).toMatchObject({
      kind: "not-found",
      message: expect.stringContaining("no-such-program-anywhere"),
    });
    expect(await run("", { command: "./not/here" })).toMatchObject({ kind: "not-found" });
    expect(await run("", { cwd: join(folder(), "missing") })).toMatchObject({
      kind: "failed-to-start",
      message: expect.stringContaining("working directory"),
    });
    expect(await run("", { args: ["a\0b"] })).toMatchObject({ kind: "failed-to-start" });
  });

  test.skipIf(process.platform === "win32")("a file that is not executable fails to start", async () => {
    const file = join(folder(), "plain.txt");
    writeFileSync(file, "x");
    expect(await run("", { command: file })).toMatchObject({ kind: "failed-to-start", message: expect.stringContaining("EACCES") });
  });

  test("the outcome has the head of the output and the tail of the errors in whole characters, and the rest is discarded", async () => {
    const script = "process.stdout.write('ä'.repeat(2e6));process.stderr.write('x'+'ö'.repeat(2e6)+'the reason',()=>process.exit(1))";
    const outcome = await run(script, { maxOutputBytes: 1001 });
    expect(outcome).toMatchObject({ kind: "exited", code: 1, truncated: true, stdout: "ä".repeat(500) });
    const tail = outcome.kind === "exited" ? outcome.stderrTail : "";
    expect(tail).toMatch(/^ö{8000,}the reason$/);
    expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(16_384);
  });

  test("output with exactly the size of the limit is not truncated", async () => {
    expect(await run("process.stdout.write('12345')", { maxOutputBytes: 5 })).toMatchObject({ stdout: "12345", truncated: false });
    expect(await run("process.stdout.write('12345')", { maxOutputBytes: 4 })).toMatchObject({ stdout: "1234", truncated: true });
  });

  test("output is reported as it arrives, in whole characters", async () => {
    const received = { stdout: "", stderr: "" };
    const script =
      "const b=Buffer.from('größe€');let i=0;(function f(){if(i<b.length)process.stdout.write(b.subarray(i,++i),f);else console.error('done')})()";
    await run(script, {
      onOutput: (text, stream) => {
        received[stream] += text;
      },
    });
    expect(received).toEqual({ stdout: "größe€", stderr: "done\n" });
  });

  test("a program may leave its input unread", async () => {
    expect(await run("process.stdin.destroy();console.log('ok')", { stdin: "x".repeat(5_000_000) })).toMatchObject({
      kind: "exited",
      code: 0,
      stdout: "ok\n",
    });
  });

  test("an aborted signal starts no program", async () => {
    const file = join(folder(), "ran");
    expect(await run(`require('fs').writeFileSync(${JSON.stringify(file)},'')`, { signal: AbortSignal.abort() })).toEqual({
      kind: "aborted",
    });
    expect(existsSync(file)).toBe(false);
  });

  test("an abort ends the program and its children, even those that ignore SIGTERM", async () => {
    const controller = new AbortController();
    const pids: number[] = [];
    const deaf = "process.on('SIGTERM',()=>{});console.log(process.pid);setInterval(()=>{},1e3)";
    const script = `${deaf};require('child_process').spawn(process.execPath,['-e',${JSON.stringify(deaf)}],{stdio:'inherit'})`;
    const outcome = await run(script, {
      signal: controller.signal,
      graceMs: 100,
      onOutput: (text) => {
        pids.push(...text.trim().split("\n").map(Number));
        if (pids.length === 2) controller.abort();
      },
    });
    expect(outcome).toEqual({ kind: "aborted" });
    expect(pids).toHaveLength(2);
    for (const pid of pids) await untilDead(pid);
  });

  test.skipIf(process.platform === "win32")("children that outlive the program do not delay its outcome, and are ended", async () => {
    const stay = "setInterval(()=>{},1e3)";
    const script = `const c=require('child_process').spawn(process.execPath,['-e',${JSON.stringify(stay)}],{stdio:'inherit'});console.log(c.pid);c.unref();process.exit(0)`;
    const outcome = await run(script);
    expect(outcome).toMatchObject({ kind: "exited", code: 0 });
    await untilDead(outcome.kind === "exited" ? Number(outcome.stdout) : 0);
  });

  test("a run leaves no listener on the signal or the process", async () => {
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, "removeEventListener");
    const before = ["exit", "SIGINT", "SIGTERM"].map((name) => process.listenerCount(name));
    await Promise.all(Array.from({ length: 12 }, () => run("", { signal })));
    expect(remove).toHaveBeenCalledTimes(12);
    expect(["exit", "SIGINT", "SIGTERM"].map((name) => process.listenerCount(name))).toEqual(before);
  });
});

describe("spawnProcess", () => {
  const spawn = async (script: string): Promise<Extract<Awaited<ReturnType<typeof spawnProcess>>, { kind: "spawned" }>["process"]> => {
    const spawned = await spawnProcess({ command: process.execPath, args: ["-e", script], cwd: tmpdir() });
    if (spawned.kind !== "spawned") throw new Error(spawned.message);
    return spawned.process;
  };

  test("a handle communicates with the program, and ends it when disposed of", async () => {
    const child = await spawn("process.stdin.on('data',d=>process.stdout.write(String(d).toUpperCase()))");
    child.stdin.write("hello");
    const answer = await new Promise<Buffer>((resolve) => child.stdout.once("data", resolve));
    expect(String(answer)).toBe("HELLO");
    await child[Symbol.asyncDispose]();
    expect(await child.ended).toEqual({ code: null, signal: "SIGTERM" });
    expect(isAlive(child.pid)).toBe(false);
    expect(await child.stop()).toEqual({ code: null, signal: "SIGTERM" });
  });

  test.skipIf(process.platform === "win32")("a program may end by itself within the grace period", async () => {
    const child = await spawn("process.on('SIGTERM',()=>process.exit(7));console.log('up');setInterval(()=>{},1e3)");
    await new Promise((resolve) => child.stdout.once("data", resolve));
    expect(await child.stop()).toEqual({ code: 7, signal: null });
    const deaf = await spawn("process.on('SIGTERM',()=>{});console.log('up');setInterval(()=>{},1e3)");
    await new Promise((resolve) => deaf.stdout.once("data", resolve));
    expect(await deaf.stop(10)).toEqual({ code: null, signal: "SIGKILL" });
  });
});

describe.skipIf(process.platform === "win32")("when the host ends, its children end", () => {
  test.each([
    ["by exit", "process.exit(5)", 5, null],
    ["by an uncaught exception", "throw new Error('planted')", 1, null],
    ["by SIGTERM", "process.kill(process.pid, 'SIGTERM')", null, "SIGTERM"],
    ["by SIGINT", "process.kill(process.pid, 'SIGINT')", null, "SIGINT"],
  ] as const)("%s", async (_how, end, code, signal) => {
    const host = spawnSync(process.execPath, [compileSources("test/io/child-process-host.ts")("test/io/child-process-host.ts"), end], {
      encoding: "utf8",
      timeout: patience(15_000),
    });
    expect([host.status, host.signal]).toEqual([code, signal]);
    const pids = host.stdout.trim().split("\n").map(Number);
    expect(pids).toHaveLength(2);
    for (const pid of pids) await untilDead(pid);
  });
});
