import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type AppendLog, createMemoryLog, openFileLog } from "../../src/io/log/append-log.ts";
import { emptyFolder } from "../io/temp-folder.ts";

type OpenLog = (options?: { readonly maxLineBytes?: number }) => AppendLog;

const implementations: readonly (readonly [string, OpenLog])[] = [
  ["a log in memory", createMemoryLog],
  ["a log in a file", (options) => openFileLog(join(emptyFolder(), "log.jsonl"), options)],
];

const records = async (log: AppendLog): Promise<readonly unknown[]> => (await log.read()).records;

describe.each(implementations)("%s", (_name, open) => {
  test("a log returns all records in the order in which they were added, also within one tick", async () => {
    const log = open();
    log.append({ n: 1 });
    log.append({ n: 2, text: "two\nlines, \u2028, ünïcödé 🎉, \ud800 and \0" });
    expect(await records(log)).toEqual([{ n: 1 }, { n: 2, text: "two\nlines, \u2028, ünïcödé 🎉, \ud800 and \0" }]);
    log.append({ n: 3 });
    await log.flush();
    expect(await records(log)).toHaveLength(3);
    await log.close();
  });

  test("a log keeps a record as it was when it was added", async () => {
    const log = open();
    const record = { list: [1] };
    log.append(record);
    record.list.push(2);
    expect(await records(log)).toEqual([{ list: [1] }]);
    const read = (await log.read()).records[0] as { list: number[] };
    read.list.push(3);
    expect(await records(log)).toEqual([{ list: [1] }]);
    await log.close();
  });

  test("a log keeps a key named __proto__", async () => {
    const log = open();
    log.append(JSON.parse('{"__proto__": {"polluted": true}, "a": 1}'));
    const [record] = (await log.read()).records;
    expect(Object.keys(record!)).toEqual(["__proto__", "a"]);
    expect(record!["polluted"]).toBeUndefined();
    await log.close();
  });

  test("a log drops values that JSON cannot represent and refuses records without a JSON form, and other records are unaffected", async () => {
    const log = open();
    const cyclic: Record<string, unknown> = { name: "cyclic", big: 10n };
    cyclic["self"] = cyclic;
    log.append(cyclic);
    const throwing = Object.defineProperty({}, "x", {
      enumerable: true,
      get() {
        throw new Error("planted");
      },
    });
    const code = (record: unknown): unknown => {
      try {
        return log.append(record as object);
      } catch (error) {
        return (error as { code: unknown }).code;
      }
    };
    expect([throwing, [1], "text", () => {}, null].map(code)).toEqual(Array(5).fill("RECORD_INVALID"));
    expect(await records(log)).toEqual([expect.objectContaining({ name: "cyclic", self: "[circular]" })]);
    await log.close();
  });

  test("a log refuses a record whose line has more bytes than allowed", async () => {
    const log = open({ maxLineBytes: 100 });
    log.append({ t: "ü".repeat(45) });
    expect(() => log.append({ t: "ü".repeat(46) })).toThrow(expect.objectContaining({ code: "RECORD_TOO_LARGE" }));
    expect(await records(log)).toHaveLength(1);
    await log.close();
  });

  test("a closed log takes no more records, and can be closed twice", async () => {
    const log = open();
    log.append({ n: 1 });
    await Promise.all([log.close(), log.close()]);
    await log.close();
    await log.flush();
    expect(() => log.append({ n: 2 })).toThrow(expect.objectContaining({ code: "LOG_CLOSED" }));
    expect(await records(log)).toEqual([{ n: 1 }]);
  });
});
