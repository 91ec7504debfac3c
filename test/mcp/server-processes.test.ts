import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, type TestContext, test, vi } from "vitest";
import type { SupervisedServer } from "../../src/mcp/supervisor/server-lease.ts";
import type { McpSupervisor, SupervisorOptions } from "../../src/mcp/supervisor/supervisor.ts";
import { compileSources } from "../compiled-sources.ts";
import { patience } from "../slowness.ts";
import { neverAborted } from "./supervisor-kit.ts";
import { countProcesses, newMarker, realSupervisor, tinySpec } from "./tiny-servers.ts";

// Tests run side by side here, so each cleans up after itself by its own context.
function makeSupervisor({ onTestFinished }: TestContext, more: Partial<SupervisorOptions> = {}): McpSupervisor {
  const supervisor = realSupervisor({ readyWait: 15_000, ...more });
  onTestFinished(() => supervisor[Symbol.asyncDispose]());
  return supervisor;
}

function emptyFolder({ onTestFinished }: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-mcp-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: patience(10_000), interval: 10 });
/** What was killed takes a moment to be gone. */
const untilNone = (marker: string): Promise<void> => until(() => expect(countProcesses(marker)).toBe(0));
const pidsOf = async (server: SupervisedServer): Promise<number[]> => {
  const { content } = (await server.callTool("pids", {})) as { content: { text: string }[] };
  return JSON.parse(content[0]!.text) as number[];
};

describe.concurrent("no process is left", () => {
  test("when everything ends, of servers that fork, and of servers that do not want to end", async (context) => {
    const marker = newMarker();
    const supervisor = makeSupervisor(context);
    const lease = supervisor.acquire([
      tinySpec("plain", marker),
      tinySpec("forks", marker, ["fork"]),
      tinySpec("resists", marker, ["fork", "stubborn"]),
      tinySpec("resists-too", marker, ["fork", "stubborn"]),
    ]);
    expect(countProcesses(marker)).toBe(0);
    await lease.ready(neverAborted);
    expect(lease.servers.map(({ state }) => state)).toEqual(["ready", "ready", "ready", "ready"]);
    expect(countProcesses(marker)).toBe(7);
    await supervisor[Symbol.asyncDispose]();
    await untilNone(marker);
  });

  test("when a server crashes that had forked; the next one is there in its place", async (context) => {
    const marker = newMarker();
    const lease = makeSupervisor(context).acquire([tinySpec("forks", marker, ["fork"])]);
    await lease.ready(neverAborted);
    const server = lease.servers[0]!;
    const before = await pidsOf(server);
    expect(countProcesses(marker)).toBe(2);
    await expect(server.callTool("die", {})).rejects.toMatchObject({ code: "MCP_CLOSED" });
    await until(() => expect(server.status).toMatchObject({ state: "ready", failures: 1 }));
    const after = await pidsOf(server);
    expect(after.some((pid) => before.includes(pid))).toBe(false);
    await until(() => expect(countProcesses(marker)).toBe(2));
  });

  test("when a server is killed from outside", async (context) => {
    const marker = newMarker();
    const lease = makeSupervisor(context).acquire([tinySpec("forks", marker, ["fork"])]);
    await lease.ready(neverAborted);
    const server = lease.servers[0]!;
    const { pid } = server.status;
    process.kill(pid!, "SIGKILL");
    await until(() => expect(server.status).toMatchObject({ state: "ready", failures: 1 }));
    expect(server.status.pid).not.toBe(pid);
    await until(() => expect(countProcesses(marker)).toBe(2));
  });

  test("when an update takes a server away, while the one that stays keeps its process", async (context) => {
    const marker = newMarker();
    const supervisor = makeSupervisor(context, { linger: 0 });
    const stays = tinySpec("stays", marker);
    const lease = supervisor.acquire([stays, tinySpec("goes", marker, ["fork"])]);
    await lease.ready(neverAborted);
    const { pid } = lease.servers[0]!.status;
    expect(countProcesses(marker)).toBe(3);
    lease.update([stays]);
    await until(() => expect(countProcesses(marker)).toBe(1));
    expect(lease.servers[0]?.status).toMatchObject({ state: "ready", pid });
  });

  test("when it is restarted or stopped", async (context) => {
    const marker = newMarker();
    const lease = makeSupervisor(context).acquire([tinySpec("forks", marker, ["fork"])]);
    await lease.ready(neverAborted);
    const server = lease.servers[0]!;
    const { pid } = server.status;
    await server.restart();
    expect(server.state).toBe("ready");
    expect(server.status.pid).not.toBe(pid);
    await until(() => expect(countProcesses(marker)).toBe(2));
    await server.stop();
    await untilNone(marker);
  });

  test("when it is stopped while it starts", async (context) => {
    const marker = newMarker();
    const startsFile = join(emptyFolder(context), "starts");
    const lease = makeSupervisor(context).acquire([tinySpec("forks", marker, ["fork"], startsFile)]);
    lease.start();
    await until(() => expect(readFileSync(startsFile, "utf8")).not.toBe(""));
    await lease.servers[0]!.stop();
    await untilNone(marker);
  });

  test("of a server that exits at once each time; it says why, and is not started any more", async (context) => {
    const marker = newMarker();
    const startsFile = join(emptyFolder(context), "starts");
    const supervisor = makeSupervisor(context, { respawn: { maxFailures: 3, firstDelay: 1 } });
    const lease = supervisor.acquire([tinySpec("broken", marker, ["exit"], startsFile)]);
    lease.start();
    const server = lease.servers[0]!;
    await until(() => expect(server.state).toBe("failed"));
    expect(server.status.error?.message).toContain("code 3");
    expect(server.status.stderrTail).toContain("No database at hand.");
    const starts = readFileSync(startsFile, "utf8");
    await expect(server.callTool("pids", {})).rejects.toMatchObject({ code: "MCP_UNAVAILABLE" });
    expect(readFileSync(startsFile, "utf8")).toBe(starts);
    await untilNone(marker);
  });
});

describe.concurrent("no process is left when the host ends", () => {
  const compiled = compileSources(
    "test/slowness.ts",
    "test/mcp/supervisor-host.ts",
    "test/mcp/tiny-servers.ts",
    "test/mcp/tiny-server.mjs",
  );

  test.each([
    ["by process.exit", "process.exit(5)", 5, null],
    ["by an uncaught exception", "throw new Error('on purpose')", 1, null],
    ["by SIGTERM", "process.kill(process.pid, 'SIGTERM')", null, "SIGTERM"],
  ] as const)("%s", async (_how, end, code, signal) => {
    const marker = newMarker();
    const host = spawn(process.execPath, [compiled("test/mcp/supervisor-host.ts"), marker, end]);
    let output = "";
    host.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    const exit = await new Promise((resolve) => host.on("close", (...how) => resolve(how)));
    expect(exit).toEqual([code, signal]);
    expect(output).toBe("ready ready ready, 5 processes\n");
    await untilNone(marker);
  });
});
