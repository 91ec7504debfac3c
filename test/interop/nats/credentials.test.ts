import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { followSkills, openSkillCatalog, startToolWorker } from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import { runCli, startCli } from "../../cli/run-cli.ts";
import { put, tempFolder } from "../../skills/kit.ts";
import { callingHost, skillFolder, startServer, startWorkerProcess } from "./fleet-kit.ts";
import { findNatsServer, NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

const tool = `import { defineTool } from "skillhost";
export default defineTool("answer", { description: "Answers.", parameters: { type: "object" }, handler: () => "hello" });
`;
const passwords = { worker: "w", host: "h", publisher: "p" };

/** A server with the users that the command prints. */
async function guardedServer(...options: readonly string[]): Promise<NatsServer> {
  const file = join(tempFolder(), "nats.conf");
  put(file, (await runCli(["fleet", "permissions", "--passwords", ...options])).stdout);
  const env = Object.fromEntries(Object.entries(passwords).map(([role, word]) => [`SKILLHOST_${role.toUpperCase()}_PASSWORD`, word]));
  const server = await NatsServer.start({ args: ["-c", file], env });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

function as(server: NatsServer, role: keyof typeof passwords) {
  return { servers: server.address, user: role, password: passwords[role] };
}

/** The error that the server reports about what a role does. */
async function refusalOf(server: NatsServer, role: keyof typeof passwords, work: (connection: NatsConnection) => void): Promise<string> {
  await using connection = await connect({ servers: server.address, user: role, pass: passwords[role] });
  const refusal = new Promise<string>((resolve) => {
    void (async () => {
      for await (const status of connection.status()) if (status.type === "error") resolve(String(status.error));
    })();
  });
  work(connection);
  await connection.flush();
  return Promise.race([refusal, connection.flush().then(() => "allowed")]);
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server: rights and restarts", () => {
  test("with the rights of their roles a worker serves, a host calls it and keeps its sessions, and a publisher pushes to both", async () => {
    const server = await guardedServer("--sessions");
    const root = skillFolder({ "tools/answer.ts": tool });
    await using catalog = await openSkillCatalog(as(server, "publisher"));
    const skill = join(skillFolder({ "tools/pushed.ts": tool.replace("answer", "pushed") }), "far");
    const push = { name: "far", folder: skill, files: ["SKILL.md", "tools/pushed.ts"] };
    const { stable } = await catalog.push(push);
    const followed = join(tempFolder(), "skills");
    const warnings: string[] = [];
    const logger = { info: () => {}, warning: (message: string) => void warnings.push(message) };
    const host = await createHost({ skillDirectories: [followed, root], workingDirectory: root, watch: false });
    onTestFinished(() => host.close());
    await using following = await followSkills(host, { ...as(server, "worker"), folder: followed, logger });
    expect(following.skills).toEqual({ far: { digest: stable } });
    const worker = await startToolWorker(host, { ...as(server, "worker"), logger });
    onTestFinished(() => worker.drain(0));
    const config = { ...as(server, "host"), sessions: true, follow: "pushed", hostName: "caller", startupWait: 30_000 };
    const calling = await callingHost(server, config, { persist: true });
    await calling.has("answer");
    expect((await calling.session.callTool("answer")).text).toBe("hello");
    await calling.session.flush();
    expect(calling.session.catalog.diagnostics.filter(({ code }) => code !== "TOOL_SHADOWED")).toEqual([]);
    // Each step of a change, as a publisher does it, arrives at both.
    put(join(skill, "tools/pushed.ts"), tool.replace("answer", "pushed").replace("hello", "changed"));
    const changed = await catalog.push(push);
    await until(() => following.skills["far"]?.digest === changed.stable, "the pushed version at the worker");
    await until(
      async () => (await catalog.reports()).filter(({ skills }) => skills["far"]?.digest === changed.stable).length === 2,
      "both",
    );
    await catalog.rollback("far");
    await until(() => following.skills["far"]?.digest === stable, "the version before");
    expect(warnings).toEqual([]);
  });

  test("no role may do more than its work", async () => {
    const server = await guardedServer();
    const forbidden = {
      worker: {
        publish: [
          ...["$KV.skillhost-catalog.far", "$O.skillhost-skills.C.x", "$O.skillhost-skills.M.x", "skillhost.tools.sig.answer"],
          ...["skillhost.sessions.one", "$KV.skillhost-owners.one", "skillhost.workers.other.control", "skillhost.roll-call"],
          ...["$JS.API.STREAM.CREATE.KV_skillhost-catalog", "$JS.API.STREAM.DELETE.KV_skillhost-catalog"],
          ...["$JS.API.STREAM.MSG.DELETE.OBJ_skillhost-skills", "$JS.API.CONSUMER.CREATE.skillhost-sessions.c.x"],
        ],
        subscribe: [">", "skillhost.hosts.>", "skillhost.sessions.>", "$KV.>"],
      },
      host: {
        publish: [
          ...["skillhost.presence", "skillhost.hosts.other.call", "$KV.skillhost-catalog.far", "$O.skillhost-skills.C.x"],
          ...["$JS.API.STREAM.UPDATE.KV_skillhost-catalog", "$JS.API.STREAM.PURGE.OBJ_skillhost-skills", "skillhost.sessions.one"],
        ],
        subscribe: [">", "skillhost.tools.>", "skillhost.workers.>", "skillhost.sessions.>"],
      },
      publisher: {
        publish: [
          ...["skillhost.tools.sig.answer", "skillhost.presence", "skillhost.sessions.one", "$KV.skillhost-hosts.other"],
          ...["$JS.API.STREAM.DELETE.KV_skillhost-catalog", "$JS.API.STREAM.CREATE.other"],
        ],
        subscribe: [">", "skillhost.>", "$KV.>"],
      },
    };
    for (const role of ["worker", "host", "publisher"] as const) {
      const { publish, subscribe } = forbidden[role];
      for (const subject of publish)
        expect(await refusalOf(server, role, (connection) => connection.publish(subject, "{}")), `${role}: ${subject}`).toMatch(
          /permission/i,
        );
      for (const subject of subscribe) {
        const listen = (connection: NatsConnection): void => void connection.subscribe(subject, { callback: () => {} });
        expect(await refusalOf(server, role, listen), `${role}: ${subject}`).toMatch(/permission/i);
      }
    }
  });

  test("who lacks a right reads which one: a worker that pushes, a host that may not hear of workers", async () => {
    const server = await guardedServer();
    const skill = join(skillFolder({ "tools/answer.ts": tool }), "far");
    const push = ["push", skill, "--nats", server.address, "--json"];
    const pushAs = async (role: keyof typeof passwords) => {
      const { code, stdout } = await runCli(push, { cwd: skill, env: { NATS_USER: role, NATS_PASSWORD: passwords[role] } });
      return { code, ...(JSON.parse(stdout) as { readonly error?: { readonly code: string; readonly message: string } }) };
    };
    const absent = await pushAs("worker");
    expect(absent.error).toMatchObject({
      code: "FLEET_FORBIDDEN",
      message: expect.stringContaining("$JS.API.STREAM.CREATE.KV_skillhost-catalog"),
    });
    expect((await pushAs("publisher")).code).toBe(0);
    const refused = await pushAs("worker");
    expect(refused.code).toBe(1);
    // The same version is stored already, so only the catalog would change.
    expect(refused.error).toMatchObject({ code: "FLEET_FORBIDDEN", message: expect.stringContaining("$KV.skillhost-catalog.far") });
    expect(refused.error?.message).toContain("skillhost fleet permissions");
    const deaf = await callingHost(server, as(server, "publisher"));
    await until(() => deaf.host.diagnostics.some(({ code }) => code === "FLEET_FORBIDDEN"), "the report");
    const wrong = await callingHost(server, { ...as(server, "host"), password: "wrong", startupWait: 100 });
    const isRefused = (): boolean => wrong.host.diagnostics.some(({ code, severity }) => code === "FLEET_REFUSED" && severity === "error");
    await until(isRefused, "the report of wrong credentials");
  });

  test("the page about fleets shows what the command prints for a worker", async () => {
    const page = readFileSync(fileURLToPath(new URL("../../../docs/fleet.md", import.meta.url)), "utf8");
    const [, shown] = /```conf\n([\s\S]*?)```/.exec(page) ?? [];
    expect(shown).toBe((await runCli(["fleet", "permissions", "--role", "worker"])).stdout);
  });

  test("a rolling restart by SIGTERM fails no call", async () => {
    const server = await startServer();
    const root = skillFolder({
      "tools/answer.ts": tool.replace(`() => "hello"`, `() => new Promise((done) => setTimeout(() => done("hello"), 20))`),
    });
    let current = await startWorkerProcess(server, root);
    const { session, has } = await callingHost(server);
    await has("answer");
    let isOver = false;
    const texts: string[] = [];
    const callers = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!isOver) texts.push((await session.callTool("answer")).text);
      }),
    );
    for (let restart = 0; restart < 2; restart++) {
      const next = await startWorkerProcess(server, root);
      current.kill("SIGTERM");
      expect(await current.ended).toBe(0);
      current = next;
      const before = texts.length;
      await until(() => texts.length > before + 20, "calls of the next worker");
    }
    isOver = true;
    await callers;
    expect(new Set(texts)).toEqual(new Set(["hello"]));
  });

  test("a worker with --health says that it is ready while it reaches its servers, and counts the calls of others", async () => {
    const server = await startServer();
    const root = skillFolder({
      "tools/greet.ts": `import { defineTool } from "skillhost";
export default defineTool("greet", { description: "Greets.", handler: () => "Hello" });
`,
    });
    const cli = startCli(["worker", "--nats", server.address, "--skills", root, "--health", "127.0.0.1:0"], { cwd: root });
    await cli.line((line) => line.startsWith("Serving 1 tool"));
    const health = /Health: (\S+)\/readyz/.exec(cli.stderr)?.[1] ?? "";
    const ready = async (): Promise<string> => (await fetch(`${health}/readyz`)).text();
    const { session, has } = await callingHost(server);
    await has("greet");
    await session.callTool("greet");
    expect(await ready()).toBe("ok\n");
    const metrics = await (await fetch(`${health}/metrics`)).text();
    expect(metrics).toContain('skillhost_worker_calls_total{tool="greet"} 1\n');
    expect(metrics).toContain("skillhost_worker_connected 1\n");
    await server.kill();
    await until(async () => (await ready()) === "The NATS servers are away.\n", "the loss of the servers");
    cli.interrupt();
    expect((await cli.done).code).toBe(0);
  });
});
