import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nkeys } from "@nats-io/transport-node";
import { openSkillCatalog } from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { createProgram } from "../../../src/cli/program.ts";
import { buildPackage } from "../../built-package.ts";
import { runCli, startCli } from "../../cli/run-cli.ts";
import { put, tempFolder } from "../../skills/kit.ts";
import { callingHost, skillFolder } from "./fleet-kit.ts";
import { freePorts } from "./nats-cluster.ts";
import { findNatsServer, NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

const folder = fileURLToPath(new URL("../../../examples/fleet/", import.meta.url));
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const tool = `import { defineTool } from "skillhost";
export default defineTool("answer", { description: "Answers.", parameters: { type: "object" }, handler: () => "hello" });
`;

interface Service {
  readonly image: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly volumes: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly depends_on?: readonly string[];
  readonly stop_grace_period?: string;
}

interface Compose {
  readonly services: Readonly<Record<"nats" | "worker" | "host", Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const compose = parse(read("compose.yaml")) as Compose;

/** The command that the program reads from a command line. A wrong option ends the test. */
function commandOf(program: string, args: readonly string[]): { readonly name: string; readonly options: object } {
  expect(program).toMatch(/node_modules\/\.bin\/skillhost$/);
  let chosen = "";
  const grammar = createProgram((name) => {
    chosen = name;
  });
  grammar.parse([...args], { from: "user" });
  const command = grammar.commands.find((one) => one.name() === chosen);
  return { name: chosen, options: { ...grammar.opts(), ...command?.opts() } };
}

/** The lines of a unit, by section. */
function readUnit(text: string): Readonly<Record<string, Readonly<Record<string, string>>>> {
  const unit: Record<string, Record<string, string>> = {};
  let section = "";
  for (const line of text.split("\n").filter((one) => one !== "" && !one.startsWith("#"))) {
    const [, header] = /^\[(\w+)\]$/.exec(line) ?? [];
    const [, key, value = ""] = /^(\w+)=(.*)$/.exec(line) ?? [];
    section = header ?? section;
    unit[section] ??= {};
    if (header === undefined) expect(key, line).toBeDefined();
    if (key !== undefined) unit[section]![key] = value;
  }
  return unit;
}

const milliseconds = (text: string | undefined): number => Number.parseInt(text ?? "", 10) * 1_000;

test("the compose file starts commands that exist, with files, secrets and volumes that it names", () => {
  const { services, secrets, volumes } = compose;
  const worker = commandOf(services.worker.command[0] ?? "", services.worker.command.slice(1));
  expect(worker).toMatchObject({ name: "worker", options: { tls: false, health: { port: 9090 } } });
  expect(commandOf(services.host.command[0] ?? "", services.host.command.slice(1))).toMatchObject({ name: "mcp", options: { http: 3333 } });
  const { grace } = worker.options as { readonly grace?: number };
  expect(milliseconds(services.worker.stop_grace_period)).toBeGreaterThan(grace ?? 0);
  // Files that the page says how to make are not here.
  const there = new Set([...readdirSync(folder), "users.conf", "."]);
  for (const { volumes: mounted, secrets: used = [], depends_on: needed = [] } of Object.values(services)) {
    for (const mount of mounted) {
      const [source = "", target] = mount.split(":");
      expect(source.startsWith(".") ? there.has(source.replace(/^\.\//, "")) : source in volumes, mount).toBe(true);
      expect(target, mount).toMatch(/^\//);
    }
    expect(used.filter((name) => !(name in secrets))).toEqual([]);
    expect(needed.filter((name) => !(name in services))).toEqual([]);
  }
  const [key = ""] = services.worker.secrets ?? [];
  expect(services.worker.environment["NATS_NKEY"]).toBe(`/run/secrets/${key}`);
  const asked = new Set([
    ...Object.values(services).flatMap(({ environment }) => JSON.stringify(environment).match(/(?<=\$\{)\w+/g) ?? []),
  ]);
  expect([...asked].sort()).toEqual(["SKILLHOST_HOST_NKEY", "SKILLHOST_PUBLISHER_NKEY", "SKILLHOST_TOKEN", "SKILLHOST_WORKER_NKEY"]);
});

test("the unit of systemd starts a worker, and gives it longer to end than its running calls get", () => {
  const { Service: service = {}, Unit: unit = {}, Install: install = {} } = readUnit(read("skillhost-worker@.service"));
  const [program = "", ...args] = (service["ExecStart"] ?? "").split(" ");
  const { name, options } = commandOf(program, args);
  expect(name).toBe("worker");
  expect(milliseconds(service["TimeoutStopSec"])).toBeGreaterThan((options as { readonly grace: number }).grace);
  expect((options as { readonly follow: string }).follow).toBe(`/var/lib/${service["StateDirectory"]}/pushed`);
  expect([unit["Wants"], unit["After"], install["WantedBy"]]).toEqual([
    "network-online.target",
    "network-online.target",
    "multi-user.target",
  ]);
  const variables = (service["Environment"] ?? "").split(" ").map((pair) => pair.split("=")[0]);
  expect(variables).toEqual(["NATS_URL", "NATS_CREDS", "SKILLHOST_TRUST"]);
});

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server from the examples", () => {
  test("the tour shows a push, an update, a kill and a drain, and no call fails", async () => {
    const { bin } = buildPackage();
    const [port] = await freePorts(1);
    const env = { ...process.env, SKILLHOST: `${process.execPath} ${bin}`, NATS_PORT: String(port) };
    const child = spawn(process.execPath, [join(folder, "tour.mjs")], { env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
    }
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect(text).toMatch(
      /all hosts answer "rainy"[\s\S]*all hosts answer "sunny" again[\s\S]*worker 1 was killed[\s\S]*worker 2 was drained \(exit code 0\)/,
    );
    expect(text).toContain(" calls, 0 failed; by ");
    expect(code, text).toBe(0);
  });

  test("the worker of the compose file serves, and a host with the configuration beside it calls, as the users of the server's file", async () => {
    // The server of a test gets its own folder as an argument.
    const place = tempFolder({ "nats.conf": read("nats.conf").replace("store_dir: /data", "") });
    const env: Record<string, string> = {};
    for (const role of ["worker", "host", "publisher"]) {
      const user = nkeys.createUser();
      put(join(place, `${role}.nk`), new TextDecoder().decode(user.getSeed()));
      env[`SKILLHOST_${role.toUpperCase()}_NKEY`] = user.getPublicKey();
    }
    put(join(place, "users.conf"), (await runCli(["fleet", "permissions", "--sessions"])).stdout);
    const server = await NatsServer.start({ args: ["-c", join(place, "nats.conf")], env });
    onTestFinished(() => server[Symbol.asyncDispose]());
    const root = skillFolder({ "tools/answer.ts": tool });
    const local: Readonly<Record<string, string>> = {
      skills: root,
      "9090": "127.0.0.1:0",
      "/var/lib/skillhost/pushed": join(place, "pushed"),
    };
    const own = (role: string) => ({ servers: server.address, nkey: join(place, `${role}.nk`) });
    // A worker may not make the buckets of the catalog.
    await using catalog = await openSkillCatalog(own("publisher"));
    await catalog.push({ name: "far", folder: join(root, "far"), files: ["SKILL.md"] });
    const args = compose.services.worker.command.slice(1).map((word) => local[word] ?? word);
    const worker = startCli(args, { cwd: place, env: { NATS_URL: server.address, NATS_NKEY: join(place, "worker.nk") } });
    await worker.line((line) => line.startsWith("Serving 1 tool"));
    const { plugins } = JSON.parse(read("skillhost.json")) as { readonly plugins: readonly [{ readonly config: object }] };
    const { session, host, has } = await callingHost(server, { ...plugins[0].config, ...own("host") }, { persist: true });
    await has("answer");
    expect((await session.callTool("answer")).text).toBe("hello");
    await session.flush();
    await until(async () => (await host.listSessions()).length === 1, "the session in the stream");
    worker.interrupt();
    expect((await worker.done).code).toBe(0);
  });
});
