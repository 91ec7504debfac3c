import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import {
  type FleetConnectionOptions,
  type FleetRole,
  fleetPermissions,
  openSkillCatalog,
  startToolWorker,
  type ToolWorkerOptions,
} from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import { runCli } from "../../cli/run-cli.ts";
import { put, tempFolder } from "../../skills/kit.ts";
import { callingHost, skillFolder } from "./fleet-kit.ts";
import { findNatsServer, NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

type KeyPair = ReturnType<typeof nkeys.createUser>;
type SignIn = Omit<FleetConnectionOptions, "servers">;

const roles = ["worker", "host", "publisher"] as const;
const tool = `import { defineTool } from "skillhost";
export default defineTool("answer", { description: "Answers.", parameters: { type: "object" }, handler: () => "hello" });
`;

/** A server that knows a user for each role, and how each of them signs in. `stranger` is a user of nothing. */
interface GuardedServer {
  readonly server: NatsServer;
  readonly signIn: Readonly<Record<FleetRole | "stranger", SignIn>>;
}

/** An authority, and a certificate of it for an address, which the server and its clients use. */
function certificates(folder: string, name: string, address: string): { readonly ca: string; readonly cert: string; readonly key: string } {
  const place = (suffix: string): string => join(folder, `${name}-${suffix}`);
  const openssl = (...args: readonly string[]): void => void execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  put(place("names"), `subjectAltName=IP:${address}\n`);
  openssl("req", "-x509", ...newKey, "-days", "2", "-subj", "/CN=authority", "-keyout", place("ca.key"), "-out", place("ca.pem"));
  openssl("req", ...newKey, "-subj", "/CN=machine", "-keyout", place("own.key"), "-out", place("own.csr"));
  const signing = ["-CA", place("ca.pem"), "-CAkey", place("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", place("names")];
  openssl("x509", "-req", "-in", place("own.csr"), ...signing, "-out", place("own.pem"));
  return { ca: place("ca.pem"), cert: place("own.pem"), key: place("own.key") };
}

async function startWith(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<NatsServer> {
  const server = await NatsServer.start({ args, env });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

function seedOf(pair: KeyPair): string {
  return new TextDecoder().decode(pair.getSeed());
}

/** With the configuration that `skillhost fleet permissions` prints, and TLS on both sides. */
async function serverWithNKeys(): Promise<GuardedServer> {
  const folder = tempFolder();
  const tls = certificates(folder, "here", "127.0.0.1");
  const env: Record<string, string> = {};
  const signInWith = (name: string): SignIn => {
    const user = nkeys.createUser();
    put(join(folder, `${name}.nk`), `# ${name}\n${seedOf(user)}\n`);
    env[`SKILLHOST_${name.toUpperCase()}_NKEY`] = user.getPublicKey();
    return { nkey: join(folder, `${name}.nk`), tls };
  };
  const signIn = {
    worker: signInWith("worker"),
    host: signInWith("host"),
    publisher: signInWith("publisher"),
    stranger: signInWith("none"),
  };
  put(join(folder, "nats.conf"), (await runCli(["fleet", "permissions"])).stdout);
  const wantsTls = ["--tlsverify", "--tlscacert", tls.ca, "--tlscert", tls.cert, "--tlskey", tls.key];
  return { server: await startWith(["-c", join(folder, "nats.conf"), ...wantsTls], env), signIn };
}

/** A token as NATS signs it. */
function signed(issuer: KeyPair, subject: KeyPair, name: string, nats: object): string {
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { jti: name, iat: Math.floor(Date.now() / 1_000), iss: issuer.getPublicKey(), name, sub: subject.getPublicKey() };
  const text = `${encoded({ typ: "JWT", alg: "ed25519-nkey" })}.${encoded({ ...claims, nats: { version: 2, ...nats } })}`;
  return `${text}.${Buffer.from(issuer.sign(new TextEncoder().encode(text))).toString("base64url")}`;
}

/** An operator with an account for the fleet, whose users have the subjects of their roles in their tokens. */
async function serverWithTokens(): Promise<GuardedServer> {
  const folder = tempFolder();
  const [operator, system, fleet] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const limits = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  const storage = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const accounts = [
    [system, signed(operator, system, "system", { type: "account", limits })],
    [fleet, signed(operator, fleet, "fleet", { type: "account", limits: { ...limits, ...storage } })],
  ] as const;
  const signInWith = (name: string, account: KeyPair, rights: object): SignIn => {
    const user = nkeys.createUser();
    const token = signed(account, user, name, { type: "user", subs: -1, data: -1, payload: -1, ...rights });
    const parts = ["-----BEGIN NATS USER JWT-----", token, "------END NATS USER JWT------", ""];
    const secret = ["-----BEGIN USER NKEY SEED-----", seedOf(user), "------END USER NKEY SEED------", ""];
    put(join(folder, `${name}.creds`), [...parts, ...secret].join("\n"));
    return { credentials: join(folder, `${name}.creds`) };
  };
  const asRole = (role: FleetRole): SignIn => {
    const { publish, subscribe } = fleetPermissions(role);
    return signInWith(role, fleet, { pub: { allow: publish }, sub: { allow: subscribe } });
  };
  const signIn = {
    worker: asRole("worker"),
    host: asRole("host"),
    publisher: asRole("publisher"),
    stranger: signInWith("none", nkeys.createAccount(), {}),
  };
  const preloaded = accounts.map(([account, token]) => `  ${account.getPublicKey()}: ${token}`);
  const lines = [
    `operator: ${signed(operator, operator, "operator", { type: "operator" })}`,
    `system_account: ${system.getPublicKey()}`,
    "resolver: MEMORY",
    `resolver_preload: {\n${preloaded.join("\n")}\n}\n`,
  ];
  put(join(folder, "nats.conf"), lines.join("\n"));
  return { server: await startWith(["-c", join(folder, "nats.conf")]), signIn };
}

async function hostOfSkills(root: string): Promise<Host> {
  const host = await createHost({ skillDirectories: [root], workingDirectory: root, watch: false });
  onTestFinished(() => host.close());
  return host;
}

async function serve(server: NatsServer, host: Host, options: Omit<ToolWorkerOptions, "servers">): Promise<void> {
  const worker = await startToolWorker(host, { servers: server.address, ...options });
  onTestFinished(() => worker.drain(0));
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server: who signs in", () => {
  test.each([
    ["NKeys and certificates on both sides, at an IP address,", serverWithNKeys],
    ["credentials files with signed tokens", serverWithTokens],
  ])("with %s each role does its work and nothing else, and a stranger is refused", async (_, start) => {
    const { server, signIn } = await start();
    const root = skillFolder({ "tools/answer.ts": tool });
    const push = { name: "far", folder: join(root, "far"), files: ["SKILL.md", "tools/answer.ts"] };
    const openAs = (who: keyof typeof signIn) => openSkillCatalog({ servers: server.address, ...signIn[who] });
    await using publisher = await openAs("publisher");
    await publisher.push(push);
    const host = await hostOfSkills(root);
    await serve(server, host, signIn.worker);
    const calling = await callingHost(server, signIn.host);
    await calling.has("answer");
    expect((await calling.session.callTool("answer")).text).toBe("hello");
    for (const role of roles.filter((name) => name !== "publisher")) {
      await using catalog = await openAs(role);
      const refused = { code: "FLEET_FORBIDDEN", message: expect.stringContaining("$KV.skillhost-catalog.far") };
      await expect(catalog.push(push), role).rejects.toMatchObject(refused);
    }
    const warnings: string[] = [];
    await serve(server, host, { ...signIn.publisher, logger: { info: () => {}, warning: (text) => void warnings.push(text) } });
    await until(() => warnings.some((text) => text.includes('subscribe to "skillhost.tools.')), "the report of a publisher that serves");
    await expect(openAs("stranger")).rejects.toMatchObject({ code: "FLEET_REFUSED" });
  });

  test("a server that wants a certificate of its clients refuses at once who has none, or one of another authority", async () => {
    const folder = tempFolder();
    const [here, elsewhere] = [certificates(folder, "here", "127.0.0.1"), certificates(folder, "elsewhere", "127.0.0.1")];
    const server = await startWith(["--tlsverify", "--tlscacert", here.ca, "--tlscert", here.cert, "--tlskey", here.key]);
    const refused = { code: "FLEET_REFUSED", message: expect.stringContaining("--tls-cert") };
    // The library itself waits until its time is over, and gives no reason.
    for (const tls of [{ ca: here.ca }, { ...elsewhere, ca: here.ca }])
      await expect(openSkillCatalog({ servers: server.address, tls })).rejects.toMatchObject(refused);
  });

  test("without TLS a server that offers it is used in plain text, and one that requires it refuses", async () => {
    const folder = tempFolder();
    const { cert, key } = certificates(folder, "here", "127.0.0.1");
    put(join(folder, "offers.conf"), `tls { cert_file: "${cert}", key_file: "${key}" }\nallow_non_tls: true\n`);
    const offers = await startWith(["-c", join(folder, "offers.conf")]);
    // With the authorities of the system its certificate is not valid.
    await expect(openSkillCatalog({ servers: offers.address, tls: {} })).rejects.toMatchObject({ code: "FLEET_UNREACHABLE" });
    await using catalog = await openSkillCatalog({ servers: offers.address, tls: false });
    expect(await catalog.list()).toEqual([]);
    const requires = await startWith(["--tls", "--tlscert", cert, "--tlskey", key]);
    const refused = { code: "FLEET_REFUSED", message: expect.stringContaining("requires TLS") };
    await expect(openSkillCatalog({ servers: requires.address, tls: false })).rejects.toMatchObject(refused);
  });

  test("a certificate for another address, and one of an unknown authority, are refused", async () => {
    const folder = tempFolder();
    const [here, elsewhere] = [certificates(folder, "here", "127.0.0.1"), certificates(folder, "elsewhere", "127.0.0.2")];
    const start = ({ ca, cert, key }: typeof here) => startWith(["--tlsverify", "--tlscacert", ca, "--tlscert", cert, "--tlskey", key]);
    const [right, wrong] = [await start(here), await start(elsewhere)];
    const opens = ({ address }: NatsServer, tls: FleetConnectionOptions["tls"]) => openSkillCatalog({ servers: address, tls });
    await using _catalog = await opens(right, here);
    const unreachable = (why: RegExp) => ({ code: "FLEET_UNREACHABLE", message: expect.stringMatching(why) });
    await expect(opens(wrong, elsewhere)).rejects.toMatchObject(unreachable(/127\.0\.0\.1 is not in the cert's list/));
    await expect(opens(right, { ...here, ca: elsewhere.ca })).rejects.toMatchObject(unreachable(/certificate|signature/));
  });
});
