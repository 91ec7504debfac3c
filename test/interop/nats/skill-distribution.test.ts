import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { Kvm } from "@nats-io/kv";
import { type FollowedSkills, followSkills, openSkillCatalog } from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import { runCli } from "../../cli/run-cli.ts";
import { put, skillMd, tempFolder } from "../../skills/kit.ts";
import { callingHost, skillFolder, startServer, startWorkerProcess } from "./fleet-kit.ts";
import { findNatsServer, type NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

const answering = (answer: string): string => `import { defineTool } from "skillhost";
export default defineTool("answer", { description: "Answers.", parameters: { type: "object" }, handler: () => ${JSON.stringify(answer)} });
`;

interface FollowingHost {
  readonly host: Host;
  readonly followed: FollowedSkills;
  readonly folder: string;
  answer(): Promise<string>;
}

async function followingHost({ address }: NatsServer, name: string, folder: string = join(tempFolder(), "skills")): Promise<FollowingHost> {
  const host = await createHost({ skillDirectories: [folder], workingDirectory: dirname(folder), watch: false });
  onTestFinished(() => host.close());
  const followed = await followSkills(host, { servers: address, folder, name });
  onTestFinished(() => followed[Symbol.asyncDispose]());
  const session = await host.createSession({ persist: false, onPermissionRequest: () => ({ kind: "approve-once" }) });
  return { host, followed, folder, answer: async () => (await session.callTool("answer")).text };
}

async function command(server: NatsServer, ...argv: readonly string[]): Promise<Record<string, never>> {
  const { code, stdout, stderr } = await runCli([...argv, "--nats", server.address, "--json"], { cwd: tempFolder() });
  const { data, error } = JSON.parse(stdout) as { readonly data: Record<string, never>; readonly error?: { readonly message: string } };
  if (code !== 0) throw new Error(error?.message ?? stderr);
  return data;
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server (a catalog)", () => {
  test("a pushed skill runs on every host that follows, at once and after a restart, until it is rolled back", async () => {
    const server = await startServer();
    const skill = join(skillFolder({ "tools/answer.ts": answering("one") }), "far");
    const early = await followingHost(server, "early");
    const first = await command(server, "push", skill);
    const late = await followingHost(server, "late");
    expect(await late.answer()).toBe("one");
    await until(async () => (await early.answer()) === "one", "the first version");
    put(join(skill, "tools/answer.ts"), answering("two"));
    const second = await command(server, "push", skill);
    expect(second).toMatchObject({ skill: "far", history: [first["stable"]] });
    for (const { answer } of [early, late]) await until(async () => (await answer()) === "two", "the second version");
    const shown = (await command(server, "status")) as unknown as { hosts: { host: string; skills: unknown }[] };
    const running = { far: { digest: second["stable"] } };
    expect(shown.hosts.toSorted((a, b) => (a.host < b.host ? -1 : 1))).toEqual([
      { host: "early", skills: running },
      { host: "late", skills: running },
    ]);
    expect(await command(server, "rollback", "far")).toEqual({ skill: "far", stable: first["stable"], history: [] });
    for (const { answer } of [early, late]) await until(async () => (await answer()) === "one", "the first version again");
    await expect(command(server, "rollback", "far")).rejects.toThrow("no version before");
    await early.followed[Symbol.asyncDispose]();
    await early.host.close();
    expect(await (await followingHost(server, "early", early.folder)).answer()).toBe("one");
  });

  test("a version that does not load is reported, and the one before it runs on, also after a restart", async () => {
    const server = await startServer();
    const skill = join(skillFolder({ "tools/answer.ts": answering("good") }), "far");
    const { stable: good } = await command(server, "push", skill);
    const following = await followingHost(server, "a");
    put(join(skill, "tools/answer.ts"), "export default (;\n");
    await command(server, "push", skill);
    await until(() => following.followed.skills["far"]?.problem !== undefined, "the report");
    expect(following.followed.skills["far"]).toEqual({ digest: good, problem: expect.any(String) });
    expect(await following.answer()).toBe("good");
    await expect.poll(() => readdirSync(dirname(following.folder))).toEqual(["skills"]);
    await following.followed[Symbol.asyncDispose]();
    await following.host.close();
    const again = await followingHost(server, "a", following.folder);
    expect([await again.answer(), again.followed.skills["far"]]).toEqual(["good", { digest: good, problem: expect.any(String) }]);
    put(join(skill, "tools/answer.ts"), answering("better"));
    await command(server, "push", skill);
    await until(async () => (await again.answer()) === "better", "the next version");
    expect(again.followed.skills["far"]).not.toHaveProperty("problem");
  });

  test("a canary runs on its share of the hosts, and goes with a rollback", async () => {
    const server = await startServer();
    const skill = join(skillFolder({ "tools/answer.ts": answering("stable") }), "far");
    await expect(command(server, "push", skill, "--canary", "50")).rejects.toThrow("no stable version");
    await command(server, "push", skill);
    put(join(skill, "tools/answer.ts"), answering("canary"));
    await command(server, "push", skill, "--canary", "50");
    const names = Array.from({ length: 6 }, (_, index) => `host-${index}`);
    const hosts = await Promise.all(names.map((name) => followingHost(server, name)));
    const answers = await Promise.all(hosts.map(({ answer }) => answer()));
    expect(new Set(answers)).toEqual(new Set(["stable", "canary"]));
    await command(server, "rollback", "far");
    for (const { answer } of hosts) await until(async () => (await answer()) === "stable", "the stable version");
  });

  test("an entry without its object, one that is damaged, and one of another program leave the hosts as they are", async () => {
    const server = await startServer();
    const skill = join(skillFolder({ "tools/answer.ts": answering("one") }), "far");
    const { stable } = await command(server, "push", skill);
    const { answer, followed } = await followingHost(server, "a");
    await using connection = await server.connect();
    const bucket = await new Kvm(connection).open("skillhost-catalog");
    await bucket.put("far", JSON.stringify({ skill: "far", stable: "0".repeat(64), history: [stable] }));
    await until(() => followed.skills["far"]?.problem !== undefined, "the report");
    expect(followed.skills["far"]).toEqual({ digest: stable, problem: expect.stringContaining("not in the store") });
    await bucket.put("far", "nonsense");
    await bucket.put("other", JSON.stringify({ stable: "../../etc" }));
    expect(await answer()).toBe("one");
    await command(server, "push", skill);
    await until(() => followed.skills["far"]?.problem === undefined, "the next push");
    expect(Object.keys(followed.skills)).toEqual(["far"]);
  });

  test("of several publishers at the same time, none overwrites what another did", async () => {
    const server = await startServer();
    await using catalog = await openSkillCatalog({ servers: server.address });
    const folders = Array.from({ length: 4 }, (_, index) =>
      join(skillFolder({ "SKILL.md": skillMd("far"), "n.txt": String(index) }), "far"),
    );
    await Promise.all(folders.map((folder) => catalog.push({ name: "far", folder, files: ["SKILL.md", "n.txt"] })));
    const [entry] = await catalog.list();
    expect(new Set([entry?.stable, ...(entry?.history ?? [])]).size).toBe(4);
  });

  test("any host with the plugin follows, also a command, and works with what it has while the server is away", async () => {
    const server = await startServer();
    const skill = join(skillFolder({ "tools/answer.ts": answering("one") }), "far");
    await command(server, "push", skill);
    const root = tempFolder({
      "skillhost.json": JSON.stringify({
        plugins: [
          { use: "skillhost/plugins/nats", config: { servers: server.address, follow: "pushed", hostName: "here", startupWait: 60_000 } },
        ],
      }),
    });
    const call = async (): Promise<unknown> => {
      const { stdout, stderr } = await runCli(["call", "answer", "{}", "--yes"], { cwd: root });
      return stdout.trim() || stderr;
    };
    expect(await call()).toBe("one");
    const shown = (await command(server, "status")) as unknown as { hosts: { host: string }[] };
    expect(shown.hosts.map(({ host }) => host)).toEqual(["here"]);

    await using host = await createHost({
      workingDirectory: root,
      skillDirectories: [],
      watch: false,
      plugins: [{ use: "skillhost/plugins/nats", config: { servers: server.address, follow: "pushed", startupWait: 500 } }],
    });
    const session = await host.createSession({ persist: false, onPermissionRequest: () => ({ kind: "approve-once" }) });
    const answer = async (): Promise<string> => (await session.callTool("answer")).text;
    expect(await answer()).toBe("one");
    put(join(skill, "tools/answer.ts"), answering("two"));
    await command(server, "push", skill);
    await until(async () => (await answer()) === "two", "the next version");
    put(join(skill, "tools/answer.ts"), "export default (;\n");
    await command(server, "push", skill);
    await until(() => session.catalog.diagnostics.some(({ code }) => code === "FLEET_SKILL"), "the report of a version that does not run");
    expect(await answer()).toBe("two");
    await server.kill();
    await using later = await createHost({
      workingDirectory: root,
      skillDirectories: [],
      watch: false,
      plugins: [{ use: "skillhost/plugins/nats", config: { servers: server.address, follow: "pushed", startupWait: 100 } }],
    });
    expect((await later.callTool("answer", {}, { allow: ["answer"] })).text).toBe("two");
    const other = await later.createSession({ persist: false });
    await other.ready();
    await until(
      () => other.catalog.diagnostics.some(({ message }) => message.startsWith("The catalog is not followed")),
      "the report of the server",
    );
  });

  test("a worker that follows serves what is pushed", async () => {
    const server = await startServer();
    const root = tempFolder();
    const skill = join(skillFolder({ "tools/answer.ts": answering("pushed") }), "far");
    await startWorkerProcess(server, tempFolder(), "--follow", join(root, "skills"));
    const { session, has } = await callingHost(server);
    await command(server, "push", skill);
    await has("answer");
    expect((await session.callTool("answer")).text).toBe("pushed");
    expect(existsSync(join(root, "skills/far/SKILL.md"))).toBe(true);
  });
});
