import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type Json, Served } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function begin() {
  served = await Served.start();
  const root = realpathSync(served.folder);
  const folders = ["a", "b", "c", "d"].map((name) => join(root, name));
  for (const folder of folders) mkdirSync(folder);
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", workingDirectory: folders[0] });
  const ask = (method: string, params: object = {}): Promise<Json> => client.request(method, { sessionId, ...params });
  return { client, sessionId, ask, folders: folders as [string, string, string, string] };
}

test("each way to change the working directory changes it for the session", async () => {
  const { client, ask, folders } = await begin();
  const [, b, c, d] = folders;
  expect(await ask("session.metadata.setWorkingDirectory", { workingDirectory: b })).toEqual({ workingDirectory: b });
  expect((await client.event("session.context_changed")).data).toMatchObject({ cwd: b });
  expect((await ask("session.metadata.snapshot")).workingDirectory).toBe(b);
  expect(await ask("session.permissions.paths.updatePrimary", { path: c })).toEqual({ success: true });
  expect((await ask("session.permissions.paths.list")).primary).toBe(c);
  expect(await ask("session.options.update", { workingDirectory: d })).toMatchObject({ success: true });
  expect(await ask("session.permissions.paths.isPathWithinWorkspace", { path: join(d, "x") })).toEqual({ allowed: true });
  expect(await ask("session.permissions.paths.isPathWithinWorkspace", { path: join(c, "x") })).toEqual({ allowed: false });
  await ask("session.resume", { workingDirectory: b, model: "m" });
  expect((await ask("session.metadata.snapshot")).workingDirectory).toBe(b);
});

test("the working directory is kept for the next process", async () => {
  const { client, sessionId, ask, folders } = await begin();
  await ask("session.metadata.setWorkingDirectory", { workingDirectory: folders[1] });
  served.says("Done.");
  await client.say(sessionId, "Go.");
  await ask("session.destroy");
  await ask("session.resume", { model: "m" });
  expect((await ask("session.metadata.snapshot")).workingDirectory).toBe(folders[1]);
});

test("a folder that is missing or relative is refused, and the session stays where it is", async () => {
  const { client, sessionId, ask, folders } = await begin();
  const refused: readonly (readonly [string, object])[] = [
    ["session.metadata.setWorkingDirectory", { workingDirectory: "b" }],
    ["session.metadata.setWorkingDirectory", { workingDirectory: join(folders[0], "missing") }],
    ["session.metadata.setWorkingDirectory", {}],
    ["session.permissions.paths.updatePrimary", { path: join(folders[0], "missing") }],
    ["session.options.update", { workingDirectory: join(folders[0], "missing") }],
    ["session.resume", { workingDirectory: join(folders[0], "missing") }],
  ];
  for (const [method, params] of refused) expect((await client.refusal(method, { sessionId, ...params })).message).not.toBe("");
  expect((await ask("session.metadata.snapshot")).workingDirectory).toBe(folders[0]);
});
