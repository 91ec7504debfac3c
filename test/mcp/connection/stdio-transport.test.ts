import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import type { ManagedProcess } from "../../../src/io/process/child-process.ts";
import { StdioTransport } from "../../../src/mcp/connection/stdio-transport.ts";
import { recordingLog } from "../connect-kit.ts";

interface Server {
  readonly transport: StdioTransport;
  readonly heard: string[];
  readonly unreadable: string[];
  /** How often the event loop ran from the end of the large message to the time it was heard. */
  readonly turns: () => number;
  /** Writes messages to its output, in one piece. */
  say(...lines: string[]): void;
}

async function serve(): Promise<Server> {
  const stdout = new PassThrough({ highWaterMark: 64 * 1024 * 1024 });
  let exit: () => void = () => {};
  const ended = new Promise<{ code: number; signal: null }>((resolve) => {
    exit = () => resolve({ code: 0, signal: null });
  });
  const stop = async (): Promise<void> => exit();
  const process = { pid: 1, stdin: new PassThrough(), stdout, stderr: new PassThrough(), ended, stop } as unknown as ManagedProcess;
  const transport = new StdioTransport(process, { serverName: "peer", maxMessageBytes: 32_000_000, log: recordingLog().log });
  const [heard, unreadable]: [string[], string[]] = [[], []];
  let turns = 0;
  transport.onmessage = (message) => heard.push(String((message as { id: unknown }).id));
  transport.onshallow = (message) => heard.push(`${(message as { id: unknown }).id} in slices`);
  transport.onunreadable = (id, message) => {
    unreadable.push(`${id}: ${message}`);
    return true;
  };
  await transport.start();
  const count = (): void => {
    turns++;
    if (heard.length === 0 && unreadable.length === 0 && transport.end === undefined) setImmediate(count);
  };
  onTestFinished(() => transport.close());
  return {
    transport,
    heard,
    unreadable,
    turns: () => turns,
    say(...lines) {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
      for (let at = 0; at < bytes.length; at += 65_536) stdout.write(bytes.subarray(at, at + 65_536));
      setImmediate(count);
    },
  };
}

const message = (id: number, result: unknown): string => JSON.stringify({ jsonrpc: "2.0", id, result });
const records = (count: number): unknown => Array.from({ length: count }, (_, id) => ({ id, tags: ["x"] }));

test("a message of many values is parsed in slices, and those behind it keep their place", async () => {
  const { say, heard, turns } = await serve();
  say(message(1, records(50_000)), message(2, "small"), message(3, records(10_000)), message(4, "small"));
  await expect.poll(() => heard.length).toBe(4);
  expect(heard).toEqual(["1 in slices", "2", "3 in slices", "4"]);
  // 200,000 values, of which a slice takes some 5,000.
  expect(turns()).toBeGreaterThan(30);
});

test("a message of few values is parsed at once, however long it is", async () => {
  const { say, heard } = await serve();
  say(message(1, "x".repeat(2_000_000)));
  await expect.poll(() => heard).toEqual(["1"]);
});

test("a message of many values that is nested too deeply fails the request that it answers", async () => {
  const { say, heard, unreadable } = await serve();
  say(`{"jsonrpc":"2.0","id":7,"result":[${"1,".repeat(50_000)}${"[".repeat(200)}${"]".repeat(200)}]}`, message(8, "next"));
  await expect.poll(() => heard).toEqual(["8"]);
  expect(unreadable).toEqual([expect.stringMatching(/^7: .* nested more than 128 levels deep/)]);
});

test("a line that is not JSON is skipped, also when it is large", async () => {
  const { transport, say, heard } = await serve();
  say(`[${"1,".repeat(50_000)}`, message(2, "next"));
  await expect.poll(() => heard).toEqual(["2"]);
  expect(transport.garbageLines).toBe(1);
});

test("closing while a message is parsed ends the parsing, and what follows is not heard", async () => {
  const { transport, say, heard, turns } = await serve();
  say(message(1, records(100_000)), message(2, "next"));
  await expect.poll(turns).toBeGreaterThan(0);
  await transport.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(heard).toEqual([]);
});
