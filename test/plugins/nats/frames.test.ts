import type { Msg, MsgHdrs } from "@nats-io/transport-node";
import { headers } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import type { FleetConnection } from "../../../plugins/nats/fleet-connection.ts";
import { FrameReader, FrameWriter } from "../../../plugins/nats/frames.ts";

type Sent = Pick<Msg, "data" | "headers">;

/** What a connection with small messages would send. */
function framesOf(message: object): readonly Sent[] {
  const sent: Sent[] = [];
  const connection = {
    info: { max_payload: 2_048 },
    isClosed: () => false,
    publish: (_: string, data: Uint8Array, options?: { headers?: MsgHdrs }) =>
      void sent.push({ data, ...(options?.headers && { headers: options.headers }) }),
  };
  new FrameWriter({ connection, createHeaders: headers } as unknown as FleetConnection).send("there", message);
  return sent;
}

const large = { text: "ü".repeat(3_000) };

test("a message that is too large for one is sent in parts, and is whole again", () => {
  expect(framesOf({ text: "small" })).toHaveLength(1);
  const sent = framesOf(large);
  expect(sent.length).toBeGreaterThan(3);
  const reader = new FrameReader(10_000);
  const read = sent.map((part) => reader.read(part));
  expect(read.slice(0, -1).every(({ kind }) => kind === "part")).toBe(true);
  expect(read.at(-1)).toEqual({ kind: "whole", value: large });
});

test("parts of two senders may come in turns", () => {
  const [one, two] = [framesOf(large), framesOf({ ...large, more: 1 })];
  const reader = new FrameReader(10_000);
  const read = one.flatMap((part, index) => [reader.read(part), reader.read(two[index]!)]);
  expect(read.filter(({ kind }) => kind === "whole")).toEqual([
    { kind: "whole", value: large },
    { kind: "whole", value: { ...large, more: 1 } },
  ]);
});

test("a missing part, one that comes twice, and what is larger than allowed are faults", () => {
  const sent = framesOf(large);
  const faultOf = (parts: readonly Sent[], limit = 10_000): unknown => {
    const reader = new FrameReader(limit);
    return parts.map((part) => reader.read(part)).find(({ kind }) => kind === "faulty");
  };
  expect(faultOf(sent)).toBeUndefined();
  expect(faultOf(sent.toSpliced(1, 1))).toEqual({ kind: "faulty", message: "a part of a message is missing" });
  expect(faultOf([sent[0]!, sent[0]!])).toEqual({ kind: "faulty", message: "a part of a message is missing" });
  expect(faultOf(sent, 4_000)).toEqual({ kind: "faulty", message: "a message is larger than 4000 bytes" });
});

test.each(["", "nonsense", "[1]", '"text"', "null", '{"a":'])("%j is not a message", (text) => {
  const read = new FrameReader(100).read({ data: new TextEncoder().encode(text) } as Sent);
  expect(read).toEqual({ kind: "faulty", message: "a message is not a JSON object" });
});

test("senders that finish nothing do not fill the memory: the oldest are dropped", () => {
  const reader = new FrameReader(10_000, 2);
  const all = Array.from({ length: 3 }, () => framesOf(large));
  for (const [first] of all) reader.read(first!);
  const rest = all.map((parts) => parts.slice(1).map((part) => reader.read(part).kind));
  expect(rest[0]).toContain("faulty");
  expect(rest[2]?.at(-1)).toBe("whole");
});
