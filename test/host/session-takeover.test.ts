import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { TakeoverListener } from "../../src/host/session-takeover.ts";
import { takeFileLock } from "../../src/io/file-lock.ts";
import { emptyFolder } from "../io/temp-folder.ts";

test("a claim that cannot be read, as without free file descriptors, is answered when it can", async () => {
  const lock = join(emptyFolder(), "events.jsonl.lock");
  const asked: string[] = [];
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const listener = new TakeoverListener((sessionId) => {
    asked.push(sessionId);
    return "It is busy.";
  });
  using _owned = listener.own("s", lock);
  mkdirSync(`${lock}.claim`);
  vi.advanceTimersByTime(1_000);
  expect(asked).toEqual([]);
  rmdirSync(`${lock}.claim`);
  const claim = await takeFileLock(`${lock}.claim`);
  vi.advanceTimersByTime(1_000);
  expect(asked).toEqual(["s"]);
  if (claim.kind === "held") claim.lock.release();
});
