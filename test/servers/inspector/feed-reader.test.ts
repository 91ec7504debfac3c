import type { ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { FeedReader } from "../../../src/servers/inspector/feed-reader.ts";
import { MessageLog } from "../../../src/servers/inspector/message-log.ts";

interface SentMessage {
  readonly type: string;
  readonly seq: number;
}

function readerOf(log: MessageLog): { readonly reader: FeedReader; sent(): readonly SentMessage[] } {
  const response = new PassThrough({ highWaterMark: 1024 * 1024 * 1024 });
  const reader = new FeedReader(response as unknown as ServerResponse, log, () => '{"version":1}');
  const sent = (): readonly SentMessage[] => {
    const text = String(response.read() ?? "");
    return [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!) as SentMessage);
  };
  return { reader, sent };
}

test("what keeps a connection alive has the number of the last message that was sent, not of one that waits", () => {
  const log = new MessageLog(() => {});
  log.isRead = true;
  const { reader, sent } = readerOf(log);
  reader.start(undefined);
  log.append("call", () => ({}));
  reader.keepAlive();
  reader.send();
  expect(sent().map(({ type, seq }) => [type, seq])).toEqual([
    ["snapshot", 0],
    ["alive", 0],
    ["call", 1],
  ]);
});

test("a reader whose messages were dropped gets their number, and begins again", () => {
  const log = new MessageLog(() => {});
  const { reader, sent } = readerOf(log);
  reader.start(undefined);
  for (let n = 0; n < 5_000; n++) log.append("event", () => ({ n }));
  reader.send();
  expect(sent()).toMatchObject([
    { type: "snapshot", seq: 0 },
    { type: "dropped", seq: 5_000, count: 5_000 },
    { type: "snapshot", seq: 5_000 },
  ]);
});

test("a position of another run, or of messages that never were, gets a snapshot", () => {
  const log = new MessageLog(() => {});
  for (let n = 0; n < 3; n++) log.append("event", () => ({ n }));
  const startAt = (feed: string, seq: number): readonly unknown[] => {
    const { reader, sent } = readerOf(log);
    reader.start({ feed, seq });
    return sent().map(({ type }) => type);
  };
  expect(startAt(log.feedId, 1)).toEqual(["event", "event"]);
  expect(startAt(log.feedId, 3)).toEqual([]);
  expect(startAt(log.feedId, 4)).toEqual(["snapshot"]);
  expect(startAt("another", 1)).toEqual(["snapshot"]);
});
