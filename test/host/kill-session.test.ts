import { type ChildProcess, spawn } from "node:child_process";
import { afterEach, expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { RecordedEvent } from "../../src/session/history/events.ts";
import { compileSources } from "../compiled-sources.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { rounds } from "../rounds.ts";
import { patience } from "../slowness.ts";

const kills = rounds(3, 40);

const children: ChildProcess[] = [];
const compiled = compileSources("test/host/session-child.ts");

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

const hostIn = (folder: string) =>
  createHost({ skillDirectories: [], watch: false, logger: silentLogger, workingDirectory: folder, sessionsDirectory: folder });

function start(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [compiled("test/host/session-child.ts"), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

/** Resolves with all lines that the child wrote, after it has ended; `onLine` receives each line as it arrives. */
function linesOf(child: ChildProcess, onLine: (count: number, line: string) => void = () => {}): Promise<string[]> {
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    const lines = text.split("\n").slice(0, -1);
    if (lines.length > 0) onLine(lines.length, lines.at(-1)!);
  });
  return new Promise((resolve) => child.on("close", () => resolve(text.split("\n").slice(0, -1))));
}

const idsOf = (events: readonly RecordedEvent[], type: string): string[] =>
  events.filter((event) => event.type === type).map(({ data }) => String(data["toolCallId"]));

test(`a session whose process is killed ${kills} times resumes each time with every stored call`, {
  timeout: patience(20_000 + kills * 5_000),
}, async () => {
  const folder = emptyFolder();
  const acknowledged: string[] = [];
  for (let round = 0; round < kills; round++) {
    const child = start(folder, "s", round === 0 ? "begin" : "resume");
    const lines = await linesOf(child, (count) => {
      if (count > 1 + (round % 4)) child.kill("SIGKILL");
    });
    acknowledged.push(...lines.filter((line) => line !== "ready"));

    await using host = await hostIn(folder);
    const session = await host.resumeSession("s");
    const events = await session.getMessages();
    const completed = idsOf(events, "tool.execution_complete");
    expect(new Set(completed).size).toBe(completed.length);
    expect([...completed].sort()).toEqual(idsOf(events, "tool.execution_start").sort());
    expect(completed).toEqual(expect.arrayContaining(acknowledged));
    expect(events.filter(({ type }) => type === "external_tool.completed")).toHaveLength(round + 1);
    expect(events.every(({ parentId }, i) => parentId === (events[i - 1]?.id ?? null))).toBe(true);
    expect(session.config.options.excludedTools).toEqual(["hidden"]);
  }
});

test("a second process that opens the same session is refused, and the error names the first", { timeout: patience(30_000) }, async () => {
  const folder = emptyFolder();
  const holder = start(folder, "s", "hold");
  await new Promise<void>((resolve) => void linesOf(holder, () => resolve()));
  const second = await linesOf(start(folder, "s", "resume"));
  expect(second).toEqual(["SESSION_IN_USE"]);
  await using host = await hostIn(folder);
  await expect(host.resumeSession("s")).rejects.toMatchObject({
    code: "SESSION_IN_USE",
    message: expect.stringContaining(`process ${holder.pid} on`),
  });
  expect(await host.listSessions()).toMatchObject([{ sessionId: "s", isInUse: true, isOpen: false }]);
  expect((await host.exportSession("s")).split("\n").length).toBeGreaterThan(3);
});
