import { join } from "node:path";
import { createSessionStore, openSkillCatalog } from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test } from "vitest";
import { keepingOwner } from "../../contract/session-store-contract.ts";
import { put, toolSource } from "../../skills/kit.ts";
import { callingHost, skillFolder, startWorker } from "./fleet-kit.ts";
import { NatsCluster } from "./nats-cluster.ts";
import { answered, findNatsServer, type NatsServer, until } from "./nats-server.ts";
import { namespacesReason, ServerNetworks } from "./server-networks.ts";

const { path, reason: noServer } = findNatsServer();
// It takes two to four minutes, most of which the servers and their clients wait for one another.
const isWhole = process.env["SKILLHOST_SOAK_SHARE"] === undefined;
const reason = path === "" ? noServer : isWhole ? namespacesReason() : "it takes minutes, so only the whole npm run test:soak has it";
if (reason !== "") process.stderr.write(`skipped: ${reason}\n`);

async function partedCluster(): Promise<{ readonly servers: readonly NatsServer[]; part(isParted: boolean): void }> {
  const networks = ServerNetworks.make(3);
  onTestFinished(() => networks[Symbol.dispose]());
  const place = (at: number) => ({
    // Clients know the servers that they are given, and no others.
    options: { namespace: networks.namespace(at), host: networks.host(at), port: 4222, args: ["--no_advertise"] },
    route: `${networks.peerHost(at)}:6222`,
  });
  const cluster = await NatsCluster.startAt([0, 1, 2].map(place));
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  return { servers: cluster.servers, part: (isParted) => networks.part(2, isParted) };
}

function storeAt(servers: readonly NatsServer[]): {
  readonly store: ReturnType<typeof createSessionStore>;
  readonly owner: ReturnType<typeof keepingOwner>;
} {
  const store = createSessionStore({ servers: servers.map(({ address }) => address), tls: false, replicas: 3, lease: 1_000 });
  const owner = keepingOwner();
  store.attach(owner);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return { store, owner };
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(reason !== "")("a cluster of nats-servers that is parted", () => {
  test("the side without a majority keeps serving and says so; sessions move to the other side, and nothing acknowledged is lost or doubled", async () => {
    const { servers, part } = await partedCluster();
    const [one, two, lone] = servers as readonly [NatsServer, NatsServer, NatsServer];
    const skill = join(skillFolder({ "tools/saved.ts": toolSource("saved", '"first"') }), "far");
    const push = async (to: NatsServer): Promise<void> => {
      await using catalog = await openSkillCatalog({ servers: to.address, tls: false }, 3);
      await catalog.push({ name: "far", folder: skill, files: ["SKILL.md", "tools/saved.ts"] });
    };
    await answered(() => push(one), "the first push");
    // A worker and two hosts: one host and the worker know the server that is going to be alone.
    await startWorker(lone, { "tools/remote.ts": toolSource("remote", '"from the worker"') }, { tls: false });
    const alone = await callingHost(lone, { tls: false, follow: "pushed", startupWait: 30_000 });
    const others = await callingHost(one, { tls: false, follow: "pushed", startupWait: 30_000 });
    for (const { has } of [alone, others]) await has("remote", "saved");
    const [minority, majority] = [storeAt([lone]), storeAt([one, two])];
    const [moving, staying] = [await minority.store.create("moving"), await minority.store.create("staying")];
    for (const log of [moving, staying]) for (let n = 0; n < 5; n++) log.append({ n });
    await Promise.all([moving.flush(), staying.flush()]);

    part(true);
    for (const log of [moving, staying]) log.append({ n: 5 });
    await until(
      () => minority.owner.reports.filter((code) => code === "LOG_NOT_WRITTEN").length === 2,
      "both sessions to say that they are not stored",
    );
    await expect(moving.flush()).rejects.toMatchObject({ code: "LOG_NOT_WRITTEN" });
    expect((await alone.session.callTool("saved")).text).toBe("first");
    expect((await alone.session.callTool("remote")).text).toBe("from the worker");
    await expect(minority.store.create("new")).rejects.toMatchObject({ code: "SESSION_STORE" });
    await expect(push(lone)).rejects.toThrow();
    // The other side elects its leaders, and continues with all of it.
    put(join(skill, "tools/saved.ts"), toolSource("saved", '"second"'));
    await answered(() => push(one), "a push at the majority");
    // A watch that was at the lost server is made again after a minute or two.
    const isNewAt =
      ({ session }: typeof others) =>
      async (): Promise<boolean> =>
        (await session.callTool("saved")).text === "second";
    await until(isNewAt(others), "the new version at the majority", 180);
    const taken = await answered(() => majority.store.open("moving"), "the session to move");
    expect((await taken.read()).records.map(({ n }) => n)).toEqual([0, 1, 2, 3, 4]);
    taken.append({ n: 6 });
    await taken.flush();
    expect((await alone.session.callTool("saved")).text).toBe("first");

    part(false);
    await until(() => minority.owner.lostSessions.includes("moving SESSION_MOVED"), "the former owner to hear that its session has moved");
    await until(
      () =>
        staying.flush().then(
          () => true,
          () => false,
        ),
      "the other session to be stored",
    );
    expect(minority.owner.reports).toContain("LOG_WRITTEN_AGAIN");
    await until(isNewAt(alone), "the new version at the host that was alone", 180);
    const contents = async (id: string): Promise<unknown> =>
      (await answered(() => majority.store.read(id), `the records of ${id}`)).records.map(({ n }) => n);
    expect(await contents("moving")).toEqual([0, 1, 2, 3, 4, 6]);
    expect(await contents("staying")).toEqual([0, 1, 2, 3, 4, 5]);
  });
});
