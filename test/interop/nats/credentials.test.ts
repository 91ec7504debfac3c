import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@nats-io/transport-node";
import { followSkills, openSkillCatalog, startToolWorker } from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import { startCli } from "../../cli/run-cli.ts";
import { put, tempFolder } from "../../skills/kit.ts";
import { callingHost, skillFolder, startServer, startWorkerProcess } from "./fleet-kit.ts";
import { findNatsServer, NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

const tool = `import { defineTool } from "skillhost";
export default defineTool("answer", { description: "Answers.", parameters: { type: "object" }, handler: () => "hello" });
`;
const page = readFileSync(fileURLToPath(new URL("../../../docs/fleet.md", import.meta.url)), "utf8");

/** The rights that the documentation gives to workers and hosts, with passwords instead of keys, and those of the catalog. */
function configuration(): string {
  const [, shown = ""] = /```conf\n([\s\S]*?)```/.exec(page) ?? [];
  const named = shown.replace(/nkey: UWORKER\.\.\./, "user: worker, password: w").replace(/nkey: UHOST\.\.\./, "user: host, password: h");
  const publisher = `{ user: publisher, password: p, permissions: { publish: ["$JS.API.>", "$KV.skillhost-catalog.>", "$O.skillhost-skills.>"], subscribe: ["_INBOX.>"] } }`;
  const follower = `{ user: follower, password: f, permissions: { publish: ["$JS.API.>", "$KV.skillhost-hosts.>"], subscribe: ["_INBOX.>"] } }`;
  return named.replace(/\n {2}\]\n/, `\n    ${publisher}\n    ${follower}\n  ]\n`);
}

async function guardedServer(): Promise<NatsServer> {
  const file = join(tempFolder(), "nats.conf");
  put(file, configuration());
  const server = await NatsServer.start({ args: ["-c", file] });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server: rights and restarts", () => {
  test("the rights that the documentation gives to each role are enough, and no more than it needs", async () => {
    const server = await guardedServer();
    const root = skillFolder({ "tools/answer.ts": tool });
    const host = await createHost({ skillDirectories: [root], workingDirectory: root, watch: false });
    onTestFinished(() => host.close());
    const worker = await startToolWorker(host, { servers: server.address, user: "worker", password: "w" });
    onTestFinished(() => worker.drain(0));
    const { session, has } = await callingHost(server, { user: "host", password: "h" });
    await has("answer");
    expect((await session.callTool("answer")).text).toBe("hello");
    const wrong = await callingHost(server, { user: "host", password: "wrong", startupWait: 300 });
    expect(wrong.session.catalog.executables.has("answer")).toBe(false);
    expect(wrong.session.catalog.diagnostics.map(({ code }) => code)).toContainEqual(
      expect.stringMatching(/^FLEET_(REFUSED|UNREACHABLE)$/),
    );
    // A host cannot pretend to be a worker.
    const [port] = server.address.split(":").slice(1);
    await using asHost = await connect({ servers: `127.0.0.1:${port}`, user: "host", pass: "h" });
    const refusal = new Promise<string>((resolve) => {
      void (async () => {
        for await (const status of asHost.status()) if (status.type === "error") resolve(String(status.error));
      })();
    });
    asHost.publish("skillhost.presence", "{}");
    expect(await refusal).toMatch(/permission/i);
  });

  test("a publisher pushes and a host follows with their own rights, and the host cannot push", async () => {
    const server = await guardedServer();
    const skill = join(skillFolder({ "tools/answer.ts": tool }), "far");
    await using catalog = await openSkillCatalog({ servers: server.address, user: "publisher", password: "p" });
    const push = { name: "far", folder: skill, files: ["SKILL.md", "tools/answer.ts"] };
    const { stable } = await catalog.push(push);
    const folder = join(tempFolder(), "skills");
    const host = await createHost({ skillDirectories: [folder], workingDirectory: dirname(folder), watch: false });
    onTestFinished(() => host.close());
    await using followed = await followSkills(host, { servers: server.address, user: "follower", password: "f", folder });
    expect(followed.skills).toEqual({ far: { digest: stable } });
    await using asHost = await openSkillCatalog({ servers: server.address, user: "follower", password: "f" });
    put(join(skill, "tools/answer.ts"), tool.replace("hello", "evil"));
    await expect(asHost.push(push)).rejects.toThrow();
    expect((await catalog.list())[0]?.stable).toBe(stable);
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
