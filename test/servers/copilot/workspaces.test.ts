import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { Disk } from "./client-disk.ts";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

interface Place {
  readonly client: TestClient;
  readonly sessionId: string;
  readonly folder: string;
  ask(method: string, params?: object): Promise<Json>;
  refused(method: string, params?: object): Promise<string>;
}

async function place(): Promise<Place> {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  return {
    client,
    sessionId,
    folder: join(served.folder, ".home", "sessions", sessionId),
    ask: (method, params = {}) => client.request(`session.workspaces.${method}`, { sessionId, ...params }),
    refused: async (method, params = {}) => (await client.refusal(`session.workspaces.${method}`, { sessionId, ...params })).message,
  };
}

describe("files", () => {
  test("are created, described, moved and removed", async () => {
    const { ask } = await place();
    await ask("createDirectory", { path: "notes/deep", recursive: true });
    await ask("createFile", { path: "notes/deep/a.txt", content: "Hellö" });
    expect(await ask("statFile", { path: "notes/deep/a.txt" })).toMatchObject({ isFile: true, isDirectory: false, size: 6 });
    expect(await ask("statFile", { path: "notes" })).toMatchObject({ isFile: false, isDirectory: true });
    await ask("renamePath", { source: "notes/deep/a.txt", destination: "kept/b.txt" });
    expect(await ask("listFiles")).toEqual({ files: ["kept/b.txt"] });
    await ask("removePath", { path: "kept", recursive: true });
    await ask("removePath", { path: "kept", force: true });
    expect(await ask("listFiles")).toEqual({ files: [] });
  });

  test("outside the workspace are out of reach for every method, also through links", async () => {
    const { ask, refused, folder } = await place();
    await ask("createFile", { path: "a.txt", content: "a" });
    writeFileSync(join(served.folder, "outside.txt"), "outside");
    symlinkSync(served.folder, join(folder, "files", "link"));
    for (const path of ["../plan.md", "/etc/passwd", "link/outside.txt", "a/../../events.jsonl", "\0", "C:\\x"]) {
      for (const method of ["statFile", "removePath", "createDirectory", "readFile"])
        await refused(method, { path, force: true, recursive: true });
      await refused("createFile", { path, content: "x" });
      await refused("renamePath", { source: path, destination: "b.txt" });
      await refused("renamePath", { source: "a.txt", destination: path });
    }
    expect(readFileSync(join(served.folder, "outside.txt"), "utf8")).toBe("outside");
    expect(existsSync(join(folder, "events.jsonl"))).toBe(true);
    expect(await ask("readFile", { path: "a.txt" })).toEqual({ content: "a" });
  });

  test("are refused with the reason", async () => {
    const { ask, refused } = await place();
    await ask("createFile", { path: "full/a.txt", content: "a" });
    await ask("createFile", { path: "b.txt", content: "b" });
    expect(await refused("statFile", { path: "none" })).toContain('no file "none"');
    expect(await refused("removePath", { path: "none" })).toContain('no file "none"');
    expect(await refused("removePath", { path: "full" })).toContain("recursive: true");
    expect(await refused("removePath", { path: ".", recursive: true })).toContain("folder of all files");
    expect(await refused("createDirectory", { path: "no/parent" })).toContain('no file "no"');
    expect(await refused("renamePath", { source: "none", destination: "c.txt" })).toContain('no file "none"');
    expect(await refused("renamePath", { source: "b.txt", destination: "full/a.txt" })).toContain("already exists");
    expect(await refused("createFile", { path: "b.txt/inside", content: "x" })).not.toContain(served.folder);
    expect(await ask("listFiles")).toEqual({ files: ["b.txt", "full/a.txt"] });
  });

  test("hold a large paste under a name of its own", async () => {
    const { ask, client } = await place();
    const { saved } = await ask("saveLargePaste", { content: "ü".repeat(100_000) });
    expect(saved).toMatchObject({ sizeBytes: 200_000 });
    expect(readFileSync(saved.filePath, "utf8")).toBe("ü".repeat(100_000));
    expect(await ask("listFiles")).toEqual({ files: [saved.filename] });
    await client.event("session.workspace_file_changed", ({ data }) => data["path"] === saved.filename);
  });
});

describe("checkpoints", () => {
  test("are numbered, listed and read, also by the next process", async () => {
    const { ask, client, sessionId, folder } = await place();
    const first = await ask("addSummary", { title: "Set up | the\nproject", content: "# One" });
    expect(first.summary).toEqual({ number: 1, title: "Set up | the project", filename: "001-set-up-the-project.md" });
    expect(first.workspace).toMatchObject({ id: sessionId, summary_count: 1 });
    await Promise.all([2, 3].map((n) => ask("addSummary", { title: "日本", content: `# ${n}` })));
    expect(readFileSync(join(folder, "checkpoints", "index.md"), "utf8")).toContain(
      "| 1 | Set up \\| the project | 001-set-up-the-project.md |",
    );
    await client.request("session.destroy", { sessionId });
    await client.request("session.resume", { sessionId, model: "m" });
    const { checkpoints } = await ask("listCheckpoints");
    expect(checkpoints.map(({ number, filename }: Json) => [number, filename])).toEqual([
      [1, "001-set-up-the-project.md"],
      [2, "002-summary.md"],
      [3, "003-summary.md"],
    ]);
    expect(await ask("readCheckpoint", { number: 1 })).toEqual({ content: "# One" });
    expect(await ask("readCheckpoint", { number: 9 })).toEqual({ content: null });
  });

  test("whose file is gone, or whose index was edited to name another file, have no content", async () => {
    const { ask, folder } = await place();
    await ask("addSummary", { title: "a", content: "A" });
    await ask("addSummary", { title: "b", content: "B" });
    rmSync(join(folder, "checkpoints", "001-a.md"));
    expect((await ask("listCheckpoints")).checkpoints).toHaveLength(2);
    expect(await ask("readCheckpoint", { number: 1 })).toEqual({ content: null });
    const rows = "| 1 | x | ../plan.md |\n| 2 | y | 002-b.md |\nnonsense\n| x |\n| 3 | z |\n";
    writeFileSync(join(folder, "checkpoints", "index.md"), rows);
    expect((await ask("listCheckpoints")).checkpoints).toEqual([{ number: 2, title: "y", filename: "002-b.md" }]);
    expect((await ask("addSummary", { title: "c", content: "C" })).summary.number).toBe(3);
  });

  test("after a point to which the session goes back are removed", async () => {
    const { ask, refused, folder } = await place();
    for (const title of ["a", "b", "c"]) await ask("addSummary", { title, content: title });
    expect((await ask("truncateSummaries", { keepCount: 1 })).workspace.summary_count).toBe(1);
    expect((await ask("listCheckpoints")).checkpoints.map(({ title }: Json) => title)).toEqual(["a"]);
    expect(existsSync(join(folder, "checkpoints", "002-b.md"))).toBe(false);
    expect((await ask("truncateSummaries", { keepCount: 5 })).workspace.summary_count).toBe(1);
    for (const keepCount of [-1, 0.5, "1"]) expect(await refused("truncateSummaries", { keepCount })).toContain("keepCount");
  });
});

describe("workspace.yaml", () => {
  test("keeps the name and the context for the next process, whatever they contain", async () => {
    const { ask, client, sessionId, folder } = await place();
    const name = 'A: "b" # c\u2028 — yes';
    await client.request("session.name.set", { sessionId, name });
    await ask("ensure", { context: { gitRoot: "/x", branch: "no", repository: "a/b", other: 1 } });
    await client.request("session.destroy", { sessionId });
    await client.request("session.resume", { sessionId, model: "m" });
    expect(await client.request("session.name.get", { sessionId })).toEqual({ name });
    expect((await ask("getWorkspace")).workspace).toMatchObject({
      id: sessionId,
      cwd: served.folder,
      name,
      user_named: true,
      git_root: "/x",
      branch: "no",
      repository: "a/b",
      summary_count: 0,
    });
    expect(readFileSync(join(folder, "workspace.yaml"), "utf8")).toMatch(new RegExp(`^id: "?${sessionId}"?$`, "m"));
  });

  test("that is damaged or has fields of other types does not harm the session", async () => {
    const { ask, folder } = await place();
    mkdirSync(folder, { recursive: true });
    for (const text of ["{", "name: [a]\ngit_root: 7\ncreated_at: nonsense\n", "- a\n", "a: &a [*a]\n"]) {
      writeFileSync(join(folder, "workspace.yaml"), text);
      expect((await ask("getWorkspace")).workspace).not.toHaveProperty("git_root");
    }
    expect((await ask("updateMetadata", { name: "Named" })).workspace).toMatchObject({ name: "Named", user_named: true });
    expect(readFileSync(join(folder, "workspace.yaml"), "utf8")).toContain("name: Named");
  });
});

test("an autopilot's objective is written, read and deleted", async () => {
  const { ask } = await place();
  expect(await ask("autopilotObjectiveExists")).toEqual({ exists: false });
  expect(await ask("writeAutopilotObjective", { content: "Win." })).toEqual({ operation: "create" });
  expect(await ask("writeAutopilotObjective", { content: "Win more." })).toEqual({ operation: "update" });
  expect(await ask("readAutopilotObjective")).toEqual({ content: "Win more." });
  expect(await ask("deleteAutopilotObjective")).toEqual({ deleted: true });
  expect(await ask("deleteAutopilotObjective")).toEqual({ deleted: false });
  expect(await ask("readAutopilotObjective")).toEqual({ content: null });
});

test("a client that stores its sessions has their workspaces, too", async () => {
  served = await Served.start();
  const disk = new Disk();
  const client = await served.connect();
  disk.serve(client);
  await client.request("sessionFs.setProvider", { initialCwd: served.folder, sessionStatePath: "/state", conventions: "posix" });
  const sessionId = await client.create({ model: "m" });
  const ask = (method: string, params: object): Promise<Json> => client.request(`session.workspaces.${method}`, { sessionId, ...params });
  await ask("createFile", { path: "a.txt", content: "a" });
  await ask("renamePath", { source: "a.txt", destination: "deep/b.txt" });
  expect(disk.files.get(`${sessionId}:/state/files/deep/b.txt`)).toBe("a");
  expect(await ask("statFile", { path: "deep/b.txt" })).toMatchObject({ isFile: true, size: 1 });
  await ask("addSummary", { title: "One", content: "# One" });
  expect(disk.files.get(`${sessionId}:/state/checkpoints/001-one.md`)).toBe("# One");
  await ask("removePath", { path: "deep", recursive: true });
  expect(await ask("listFiles", {})).toEqual({ files: [] });
  const refusal = await client.refusal("session.workspaces.removePath", { sessionId, path: "../events.jsonl" });
  expect(refusal.message).toContain("not a path inside");
});
