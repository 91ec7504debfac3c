import { join } from "node:path";
import { expect, test } from "vitest";
import { connectFleet, fleetSubjects } from "../../../plugins/nats/fleet-connection.ts";
import { runCli } from "../../cli/run-cli.ts";
import { put, tempFolder } from "../../skills/kit.ts";

test.each([
  [{ servers: "" }, "is not an address"],
  [{ servers: [] }, "no server"],
  [{ servers: "http://127.0.0.1" }, "is not an address"],
  [{ servers: "nats://me:secret@127.0.0.1" }, "must not contain a name or a password"],
  [{ servers: "127.0.0.1", token: "a", user: "b" }, "token and user exclude each other"],
  [{ servers: "127.0.0.1", credentials: "/nowhere/at.all" }, "cannot be read"],
])("%j: %s", async (options, message) => {
  await expect(connectFleet(options, "test")).rejects.toMatchObject({ code: "FLEET_OPTIONS", message: expect.stringContaining(message) });
});

test("a file that contains no seed is not used as one", async () => {
  const file = join(tempFolder(), "seed");
  put(file, "# nothing\nUAAA\n");
  await expect(connectFleet({ servers: "127.0.0.1", nkey: file }, "test")).rejects.toThrow("contains no seed");
});

test("nothing answers: the error names the address", async () => {
  await expect(connectFleet({ servers: "127.0.0.1:9" }, "test")).rejects.toMatchObject({
    code: "FLEET_UNREACHABLE",
    message: expect.stringContaining("127.0.0.1:9"),
  });
});

test.each(["a.b", "", "*", "a b", ">"])("%j cannot be the first part of subjects", (prefix) => {
  expect(() => fleetSubjects(prefix)).toThrow(expect.objectContaining({ code: "FLEET_OPTIONS" }));
});

test("the command needs a server, by an option or the environment", async () => {
  const cwd = tempFolder();
  const missing = await runCli(["worker", "--json"], { cwd });
  expect([missing.code, JSON.parse(missing.stdout)]).toEqual([
    2,
    expect.objectContaining({ ok: false, error: expect.objectContaining({ code: "USAGE" }) }),
  ]);
  const named = await runCli(["worker", "--json"], { cwd, env: { NATS_URL: "127.0.0.1:9" } });
  expect([named.code, JSON.parse(named.stdout)]).toEqual([
    1,
    expect.objectContaining({ ok: false, error: expect.objectContaining({ code: "FLEET_UNREACHABLE" }) }),
  ]);
});
