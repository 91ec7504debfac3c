import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { RecordedEvent } from "../../src/session/history/events.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { compileSources } from "../compiled-sources.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { rounds, seed } from "../rounds.ts";
import { patience } from "../slowness.ts";

const compiled = compileSources("test/host/takeover-child.ts");
const contenders: Contender[] = [];

afterEach(() => {
  for (const { child } of contenders.splice(0)) child.kill("SIGKILL");
});

/** A process with a host of its own that obeys commands. */
class Contender {
  readonly child: ChildProcess;
  readonly warnings: string[] = [];
  readonly ready: Promise<void>;
  readonly #answers = new Map<string, (answer: string) => void>();
  #next = 0;

  constructor(folder: string) {
    this.child = spawn(process.execPath, [compiled("test/host/takeover-child.ts"), folder], { stdio: ["pipe", "pipe", "inherit"] });
    contenders.push(this);
    let text = "";
    let isReady = (): void => {};
    this.ready = new Promise((resolve) => {
      isReady = resolve;
    });
    this.child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        const [, number = "", answer = ""] = /^(\d+) (.*)$/.exec(line) ?? [];
        if (line === "ready") isReady();
        else if (line.startsWith("warned ")) this.warnings.push(line.slice(7));
        else this.#answers.get(number)?.(answer);
      }
    });
    this.child.once("exit", () => {
      for (const answer of this.#answers.values()) answer("dead");
    });
  }

  ask(command: string): Promise<string> {
    const number = String(this.#next++);
    return new Promise((resolve) => {
      this.#answers.set(number, resolve);
      this.child.stdin?.write(`${number} ${command}\n`);
      if (this.child.exitCode !== null || this.child.signalCode !== null) resolve("dead");
    });
  }
}

async function contender(folder: string): Promise<Contender> {
  const started = new Contender(folder);
  await started.ready;
  return started;
}

async function hostIn(folder: string): Promise<Host> {
  const base = { skillDirectories: [], plugins: [], watch: false, logger: silentLogger };
  const host = await createHost({ ...base, workingDirectory: folder, sessionsDirectory: folder });
  onTestFinished(() => host.close());
  return host;
}

async function eventsIn(folder: string): Promise<readonly RecordedEvent[]> {
  const lines = await (await hostIn(folder)).exportSession("s");
  return lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const callsIn = (events: readonly RecordedEvent[]): string[] =>
  events.filter(({ type }) => type === "tool.execution_complete").map(({ data }) => String(data["toolCallId"]));

const isChained = (events: readonly RecordedEvent[]): boolean =>
  events.every(({ parentId }, index) => parentId === (events[index - 1]?.id ?? null));

describe("a session that another process has open", { timeout: patience(60_000) }, () => {
  test("is taken over when it is idle: its former owner is notified, and its late calls are refused", async () => {
    const folder = emptyFolder();
    const [first, second] = await Promise.all([contender(folder), contender(folder)]);
    await first.ask("create");
    expect(await first.ask("call a")).toBe("called");
    expect(await second.ask("take")).toBe("taken");
    expect(await second.ask("call b")).toBe("called");
    expect(await first.ask("call late")).toMatch(new RegExp(`^SESSION_TAKEN_OVER .*process ${second.child.pid} on`));
    expect(await first.ask("take")).toBe("taken");
    expect(await first.ask("call c")).toBe("called");
    expect(await second.ask("call late")).toMatch(/^SESSION_TAKEN_OVER/);
    expect(second.warnings).toEqual(["session_taken_over"]);
    const events = await eventsIn(folder);
    expect(callsIn(events)).toEqual(["a", "b", "c"]);
    expect(isChained(events)).toBe(true);
    expect(readdirSync(join(folder, "s")).sort()).toEqual(["events.jsonl", "events.jsonl.lock"]);
  });

  test("is kept by its owner while a call runs, and can be taken over after it", async () => {
    const folder = emptyFolder();
    const [first, second] = await Promise.all([contender(folder), contender(folder)]);
    await first.ask("create");
    await first.ask("hang");
    expect(await second.ask("take")).toMatch(/^SESSION_IN_USE .*process \d+ on .*A call of a tool is running there/);
    expect(await first.ask("call a")).toBe("called");
    await first.ask("release");
    await expect.poll(() => second.ask("take"), { interval: 50, timeout: patience(20_000) }).toBe("taken");
    expect(callsIn(await eventsIn(folder))).toEqual(["a", `hung-${first.child.pid}`]);
  });

  test("is not taken from a process that does not answer, and is taken from one that was killed", async () => {
    const folder = emptyFolder();
    const [first, second] = await Promise.all([contender(folder), contender(folder)]);
    await first.ask("create");
    first.child.kill("SIGSTOP");
    expect(await second.ask("take 300")).toMatch(/^SESSION_IN_USE .*did not answer/);
    first.child.kill("SIGKILL");
    await expect.poll(() => second.ask("take"), { interval: 50, timeout: patience(20_000) }).toBe("taken");
    expect(isChained(await eventsIn(folder))).toBe(true);
  });

  test("is not taken without takeOver, which must be true or false", async () => {
    const folder = emptyFolder();
    const [host, other] = await Promise.all([hostIn(folder), hostIn(folder)]);
    const session = await host.createSession({ sessionId: "s", onPermissionRequest: approveAll });
    await expect(other.resumeSession("s")).rejects.toMatchObject({ code: "SESSION_IN_USE" });
    await expect(other.resumeSession("s", { takeOver: false })).rejects.toMatchObject({ code: "SESSION_IN_USE" });
    await expect(other.resumeSession("s", { takeOver: "yes" } as never)).rejects.toMatchObject({ code: "SESSION_OPTIONS" });
    expect(session.isOpen).toBe(true);
    const taken = await other.resumeSession("s", { takeOver: true });
    expect(session.isOpen).toBe(false);
    await expect(session.callTool("any")).rejects.toMatchObject({
      code: "SESSION_TAKEN_OVER",
      message: expect.stringContaining("takeOver"),
    });
    // Its own host can resume it, too.
    await host.resumeSession("s", { takeOver: true });
    expect(taken.isOpen).toBe(false);
  });

  test("is taken by one of several that try at once", async () => {
    const folder = emptyFolder();
    const [first, ...others] = await Promise.all([1, 2, 3, 4].map(() => contender(folder)));
    await first!.ask("create");
    const outcomes = await Promise.all(others.map((other) => other.ask("take")));
    expect(outcomes.filter((outcome) => outcome === "taken")).toHaveLength(1);
    for (const outcome of outcomes) expect(outcome).toMatch(/^(?:taken$|SESSION_IN_USE )/);
    const calls = await Promise.all([first!, ...others].map((one) => one.ask("call x")));
    expect(calls.filter((call) => call === "called")).toHaveLength(1);
  });
});

const steps = rounds(25, 200);

/** Numbers from 0 to 1, the same for each seed (mulberry32). */
function createRandom(state = seed): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test(`after ${steps} random takeovers, calls and kills of three processes, the log has one chain with every acknowledged call once`, {
  timeout: patience(60_000 + steps * 2_000),
}, async () => {
  const folder = emptyFolder();
  const random = createRandom();
  const processes = await Promise.all([1, 2, 3].map(() => contender(folder)));
  await processes[0]!.ask("create");
  const acknowledged: string[] = [];
  const running: Promise<void>[] = [];
  for (let step = 0; step < steps; step++) {
    const at = Math.floor(random() * 3);
    const one = processes[at]!;
    const dice = random();
    if (dice < 0.06) {
      one.child.kill("SIGKILL");
      processes[at] = await contender(folder);
      continue;
    }
    const id = `call-${step}`;
    const asked = dice < 0.4 ? one.ask("take") : one.ask(`call ${id}`);
    running.push(
      asked.then((answer) => {
        expect(answer).toMatch(/^(?:taken|called|none|dead|SESSION_IN_USE .*|SESSION_TAKEN_OVER .*|SESSION_CLOSED .*)$/);
        if (answer === "called") acknowledged.push(id);
      }),
    );
    if (random() < 0.5) await Promise.all(running.splice(0));
  }
  await Promise.all(running);
  for (const { child } of processes) child.kill("SIGKILL");
  const host = await hostIn(folder);
  await expect.poll(async () => (await host.listSessions())[0]?.isInUse).toBe(false);
  await host.resumeSession("s");
  const events = await eventsIn(folder);
  expect(isChained(events)).toBe(true);
  const completed = callsIn(events);
  expect(new Set(completed).size).toBe(completed.length);
  expect(completed).toEqual(expect.arrayContaining(acknowledged));
  expect(acknowledged.length).toBeGreaterThan(0);
});
