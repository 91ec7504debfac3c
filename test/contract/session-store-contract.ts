import { expect, test } from "vitest";
import type { SessionOwner, SessionStore } from "../../src/session/session-store.ts";

/** Stores of several hosts over the same place. */
export type OpenStores = (count: number) => Promise<readonly SessionStore[]>;

export interface AttachedOwner extends SessionOwner {
  readonly lostSessions: string[];
  readonly reports: string[];
}

/** An owner that keeps what it has. */
export function keepingOwner(): AttachedOwner {
  const [lostSessions, reports]: [string[], string[]] = [[], []];
  return {
    lostSessions,
    reports,
    handOver: () => "It keeps it.",
    lost: (sessionId, { code }) => void lostSessions.push(`${sessionId} ${code}`),
    report: ({ code }) => void reports.push(code),
  };
}

/** What every store of sessions promises. */
export function promisesOfStores(open: OpenStores): void {
  const stores = async (count = 1): Promise<readonly SessionStore[]> => {
    const all = await open(count);
    for (const store of all) store.attach(keepingOwner());
    return all;
  };
  const texts = async (store: SessionStore, id: string): Promise<unknown> => (await store.read(id)).records.map(({ n }) => n);
  const coded = (code: string): unknown => expect.objectContaining({ code });

  test("what was flushed is read by another host in its order, while the session is open and after it", async () => {
    const [store, other] = (await stores(2)) as [SessionStore, SessionStore];
    const log = await store.create("one");
    for (let n = 0; n < 100; n++) log.append({ n });
    log.append({ n: 100, text: "two\nlines, \u2028, ünïcödé 🎉" });
    await log.flush();
    expect(await texts(other, "one")).toEqual(Array.from({ length: 101 }, (_, n) => n));
    log.append({ n: 101 });
    expect((await log.read()).records).toHaveLength(102);
    await log.close();
    expect(await texts(other, "one")).toEqual(Array.from({ length: 102 }, (_, n) => n));
    expect((await other.read("one")).records[100]).toEqual({ n: 100, text: "two\nlines, \u2028, ünïcödé 🎉" });
  });

  test("a record of a megabyte and a half is stored whole", async () => {
    const [store, other] = (await stores(2)) as [SessionStore, SessionStore];
    const log = await store.create("large");
    log.append({ n: 1, text: "ü".repeat(750_000) });
    log.append({ n: 2 });
    await log.close();
    expect(await texts(other, "large")).toEqual([1, 2]);
    expect(((await other.read("large")).records[0]!["text"] as string).length).toBe(750_000);
  });

  test("a session has one owner, and another can open it when its log is closed", async () => {
    const [store, other] = (await stores(2)) as [SessionStore, SessionStore];
    const log = await store.create("one");
    log.append({ n: 1 });
    await log.flush();
    await expect(other.open("one")).rejects.toEqual(coded("SESSION_IN_USE"));
    await expect(other.delete("one")).rejects.toEqual(coded("SESSION_IN_USE"));
    expect(await other.list()).toEqual([expect.objectContaining({ sessionId: "one", records: [{ n: 1 }], isInUse: true })]);
    await log.close();
    const again = await other.open("one");
    expect((await again.read()).records).toEqual([{ n: 1 }]);
    again.append({ n: 2 });
    await again.close();
    expect(() => log.append({ n: 3 })).toThrow(expect.objectContaining({ code: "LOG_CLOSED" }));
    expect(await texts(store, "one")).toEqual([1, 2]);
    expect(await store.list()).toEqual([expect.objectContaining({ sessionId: "one", isInUse: false })]);
  });

  test("ids are unique, and what does not exist is not found", async () => {
    const [store, other] = (await stores(2)) as [SessionStore, SessionStore];
    const log = await store.create("with.dots");
    log.append({ n: 1 });
    await log.close();
    await expect(other.create("with.dots")).rejects.toEqual(coded("SESSION_EXISTS"));
    await expect(other.add("with.dots", [{ n: 2 }], "none")).rejects.toEqual(coded("SESSION_EXISTS"));
    for (const missing of [other.open("none"), other.read("none"), other.delete("none")])
      await expect(missing).rejects.toEqual(coded("SESSION_NOT_FOUND"));
    expect(await texts(store, "with.dots")).toEqual([1]);
  });

  test("a removed session is gone, and its id can be used again", async () => {
    const [store, other] = (await stores(2)) as [SessionStore, SessionStore];
    for (const id of ["a", "b"]) {
      const log = await store.create(id);
      log.append({ n: id });
      await log.close();
    }
    await other.delete("a");
    expect((await store.list()).map(({ sessionId }) => sessionId)).toEqual(["b"]);
    const log = await store.create("a");
    log.append({ n: 2 });
    await log.close();
    expect(await texts(other, "a")).toEqual([2]);
  });

  test("added events are a session that can be opened", async () => {
    const [store] = (await stores()) as [SessionStore];
    await store.add("fork", [{ n: 1 }, { n: 2, text: "x".repeat(1_500_000) }], "none");
    const log = await store.open("fork");
    log.append({ n: 3 });
    await log.close();
    expect(await texts(store, "fork")).toEqual([1, 2, 3]);
  });
}
