import { afterEach, describe, expect, test } from "vitest";
import { Disk } from "./client-disk.ts";
import { calling, type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function connected(disk: Disk): Promise<TestClient> {
  const client = await served.connect();
  disk.serve(client);
  const provided = { initialCwd: served.folder, sessionStatePath: "/state", conventions: "posix" };
  expect(await client.request("sessionFs.setProvider", provided)).toEqual({ success: true });
  return client;
}

async function session(options: object = {}): Promise<{ client: TestClient; sessionId: string; disk: Disk }> {
  served = await Served.start();
  const disk = new Disk();
  const client = await connected(disk);
  return { client, sessionId: await client.create({ model: "m", ...options }), disk };
}

describe("a client with a file system of its own", () => {
  test("a client stores the log of its sessions, which another process resumes from it", async () => {
    const { client, sessionId, disk } = await session();
    served.says("One.");
    await client.say(sessionId, "first");
    await client.request("session.destroy", { sessionId });
    const log = disk.files.get(`${sessionId}:/state/events.jsonl`);
    expect(
      log
        ?.split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line).type),
    ).toEqual(expect.arrayContaining(["session.start", "user.message"]));
    await served[Symbol.asyncDispose]();
    served = await Served.start();
    const next = await connected(disk);
    const resumed = await next.request("session.resume", { sessionId, model: "m", requestPermission: true });
    expect(resumed.workspacePath).toBe("/state");
    served.says("Two.");
    await next.say(sessionId, "second");
    expect(served.asked.messages.map(({ content }: Json) => content).slice(1, 3)).toEqual(["first", "One."]);
  });

  test("keeps plans and files of the workspace", async () => {
    const { client, sessionId, disk } = await session({ requestExitPlanMode: true });
    client.answers("exitPlanMode.request", () => ({ approved: false }));
    served.says(calling("exit_plan_mode", { summary: "s", plan: "# P" }), "Well.");
    await client.say(sessionId, "Plan.", { agentMode: "plan" });
    expect(disk.files.get(`${sessionId}:/state/plan.md`)).toBe("# P");
    expect(await client.request("session.plan.read", { sessionId })).toEqual({ exists: true, content: "# P", path: "/state/plan.md" });
    await client.request("session.workspaces.createFile", { sessionId, path: "notes/a.md", content: "A" });
    expect(disk.files.get(`${sessionId}:/state/files/notes/a.md`)).toBe("A");
    expect(await client.request("session.workspaces.listFiles", { sessionId })).toEqual({ files: ["notes/a.md"] });
    expect(await client.request("session.workspaces.readFile", { sessionId, path: "notes/a.md" })).toEqual({ content: "A" });
    for (const path of ["../a", "/etc/passwd", "C:\\x", ""]) {
      expect((await client.refusal("session.workspaces.createFile", { sessionId, path, content: "x" })).message).toContain(
        "is not a path inside the workspace",
      );
    }
  });

  test("deleting a session deletes its files at the client; a session that the client does not have is reported", async () => {
    const { client, sessionId, disk } = await session();
    await client.request("session.destroy", { sessionId });
    expect(await client.request("session.delete", { sessionId })).toEqual({ success: true });
    expect(disk.files.size).toBe(0);
    expect((await client.refusal("session.resume", { sessionId })).message).toContain("Session not found");
  });

  test("a session continues while its client cannot store the log, and the client gets all of it later", async () => {
    const { client, sessionId, disk } = await session();
    disk.isFull = true;
    served.says("One.", "Two.");
    await client.say(sessionId, "first");
    disk.isFull = false;
    await client.say(sessionId, "second");
    await client.request("sessions.save", { sessionId });
    const log = disk.files.get(`${sessionId}:/state/events.jsonl`) ?? "";
    const said = log
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === "user.message");
    expect(said.map(({ data }) => data.content)).toEqual(["first", "second"]);
  });
});
