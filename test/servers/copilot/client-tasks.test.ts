import { afterEach, describe, expect, test } from "vitest";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

interface Joined {
  readonly client: TestClient;
  readonly ask: (method: string, params?: object) => Promise<Json>;
  readonly refusal: (method: string, params?: object) => Promise<string>;
}

function joined(client: TestClient, sessionId: string): Joined {
  return {
    client,
    ask: (method, params = {}) => client.request(`session.tasks.${method}`, { sessionId, ...params }),
    refusal: async (method, params = {}) => (await client.refusal(`session.tasks.${method}`, { sessionId, ...params })).message,
  };
}

async function begin(): Promise<{ readonly owner: Joined; readonly other: Joined }> {
  served = await Served.start();
  const owner = await served.connect();
  const sessionId = await owner.create({ model: "m" });
  const other = await served.connect();
  await other.request("session.resume", { sessionId });
  return { owner: joined(owner, sessionId), other: joined(other, sessionId) };
}

const build = { type: "client", clientTaskId: "build-7", description: "Builds.", displayName: "Build", cancellable: true };
const progress = (more: object = {}): object => ({ kind: "progress", ...more });

describe("a task of a client", () => {
  test("is registered once, followed by others, and reports its end", async () => {
    const { owner, other } = await begin();
    const { task, created } = await owner.ask("register", build);
    expect(created).toBe(true);
    expect(task).toMatchObject({ type: "client", clientTaskId: "build-7", status: "running", sequence: 0, canCancel: true });
    expect(await owner.ask("register", build)).toMatchObject({ task: { id: task.id }, created: false, reclaimed: false });
    const { id } = task;
    await owner.ask("update", { id, sequence: 1, update: progress({ message: "Compiling", phase: "compile", percentage: 40 }) });
    expect(await other.ask("getProgress", { id })).toMatchObject({
      progress: { type: "client", phase: "compile", percentage: 40, lastMessage: "Compiling", recentActivity: [{ message: "Compiling" }] },
    });
    const idle = { id, sequence: 2, update: progress({ status: "idle", phase: null, percentage: null }) };
    expect(await owner.ask("update", idle)).toMatchObject({ applied: true, duplicate: false, task: { status: "idle", sequence: 2 } });
    expect(await owner.ask("update", idle)).toMatchObject({ applied: false, duplicate: true });
    expect((await other.ask("getProgress", { id })).progress).not.toHaveProperty("phase");
    await owner.ask("update", { id, sequence: 3, update: { kind: "completed", result: { files: 2 } } });
    expect((await other.ask("list")).tasks).toMatchObject([{ id, status: "completed", result: { files: 2 }, canCancel: false }]);
    expect(await other.ask("remove", { id })).toEqual({ removed: true });
    expect(await other.ask("list")).toEqual({ tasks: [] });
    // Registered, updated three times and removed.
    expect(other.client.count("session.background_tasks_changed")).toBe(5);
  });

  test.each([
    [
      { kind: "failed", error: "No disk.", code: "ENOSPC" },
      { status: "failed", error: "No disk.", errorCode: "ENOSPC" },
    ],
    [
      { kind: "cancelled", reason: "Not needed." },
      { status: "cancelled", cancellationReason: "Not needed." },
    ],
  ])("ends with %j", async (update, expected) => {
    const { owner } = await begin();
    const { id } = (await owner.ask("register", build)).task;
    expect((await owner.ask("update", { id, sequence: 1, update })).task).toMatchObject(expected);
    expect(await owner.refusal("update", { id, sequence: 2, update: progress() })).toContain(`is ${expected.status}`);
  });

  test("belongs to its owner, whose updates are in order", async () => {
    const { owner, other } = await begin();
    const { id } = (await owner.ask("register", build)).task;
    expect(await other.refusal("update", { id, sequence: 1, update: progress() })).toContain("belongs to another client");
    expect(await owner.refusal("update", { id, sequence: 2, update: progress() })).toContain("the next update has 1");
    expect(await owner.refusal("update", { id: "none", sequence: 1, update: progress() })).toContain('no task "none"');
    expect(await owner.refusal("register", { ...build, expectedSequence: 4 })).toContain("is at sequence 0, not 4");
    const { task } = await other.ask("register", build);
    expect(task.id).not.toBe(id);
    expect(await owner.ask("remove", { id })).toEqual({ removed: false });
  });

  test("ends when its owner confirms that, which others can request once at a time", async () => {
    const { owner, other } = await begin();
    const { id } = (await owner.ask("register", build)).task;
    const answers = [false, true];
    const asked: Json[] = [];
    owner.client.answers("tasks.cancel", (params) => {
      asked.push(params);
      return { cancelled: answers[asked.length - 1] };
    });
    const cancel = (): Promise<Json> => other.ask("cancel", { id });
    expect(await Promise.all([cancel(), cancel()])).toEqual([{ cancelled: false }, { cancelled: false }]);
    expect(asked).toMatchObject([{ id, clientTaskId: "build-7", reason: "cancel_requested" }]);
    expect(await cancel()).toEqual({ cancelled: true });
    expect((await other.ask("list")).tasks).toMatchObject([{ status: "cancelled" }]);
    expect(await cancel()).toEqual({ cancelled: false });
    const fixed = (await owner.ask("register", { ...build, clientTaskId: "b", cancellable: false })).task;
    expect(await other.ask("cancel", { id: fixed.id })).toEqual({ cancelled: false });
    expect(asked).toHaveLength(2);
  });

  test("is an orphan when its owner leaves", async () => {
    const { owner, other } = await begin();
    const { id } = (await owner.ask("register", build)).task;
    owner.client.drop();
    await other.client.eventually(() => (other.client.count("session.background_tasks_changed") > 1 ? true : undefined));
    const [task] = (await other.ask("list")).tasks;
    expect(task).toMatchObject({ id, status: "orphaned", canCancel: false, owner: { presence: "disconnected" } });
    expect(await other.ask("remove", { id })).toEqual({ removed: true });
  });

  test.each([
    ["register", { ...build, type: "agent" }, 'type must be "client"'],
    ["register", { ...build, cancellable: undefined }, "cancellable must be true or false"],
    ["update", { id: "a", sequence: 1.5, update: progress() }, "sequence must be an integer"],
    ["update", { id: "a", sequence: 1, update: progress({ percentage: 101 }) }, "from 0 to 100"],
    ["update", { id: "a", sequence: 1, update: progress({ status: "done" }) }, "status must be running or idle"],
    ["update", { id: "a", sequence: 1, update: { kind: "lost" } }, "update.kind must be"],
  ])("%s refuses %j", async (method, params, why) => {
    const { owner } = await begin();
    expect(await owner.refusal(method, params)).toContain(why);
    expect(await owner.ask("list")).toEqual({ tasks: [] });
  });
});
