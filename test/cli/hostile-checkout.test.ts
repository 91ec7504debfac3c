import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import type { Command } from "commander";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { headless } from "../../src/cli/commands/headless.ts";
import type { CliIo } from "../../src/cli/process-io.ts";
import { createProgram } from "../../src/cli/program.ts";
import { type ConfigPlace, type HostileCheckout, hostileCheckout } from "./hostile-checkout-kit.ts";
import { type CliRun, runCli } from "./run-cli.ts";

afterEach(() => vi.unstubAllEnvs());

function checkout(place: ConfigPlace = "skillhost.json"): HostileCheckout {
  const made = hostileCheckout(place);
  onTestFinished(() => made[Symbol.dispose]());
  vi.stubEnv("SKILLHOST_HOME", made.home);
  return made;
}

/** The full name of every command that has an action. */
function leaves(command: Command, names: readonly string[] = []): readonly string[] {
  if (command.commands.length === 0) return [names.join(" ")];
  return command.commands.flatMap((child) => leaves(child, [...names, child.name()]));
}

/**
 * The arguments of each command. `asks`: it runs code of the project, so it asks first; `shows`: it prints the project without
 * running it, and reports that; `neither`: it does not concern code of the project.
 */
const calls: Readonly<Record<string, readonly [kind: "asks" | "shows" | "neither", argv: string]>> = {
  completion: ["neither", "completion bash"],
  dev: ["asks", "dev --watch never"],
  call: ["asks", "call evil {} --yes"],
  mcp: ["asks", "mcp --yes"],
  worker: ["asks", "worker --nats 127.0.0.1:9"],
  "fleet permissions": ["neither", "fleet permissions"],
  push: ["neither", "push skills/evil --nats 127.0.0.1:9"],
  rollback: ["neither", "rollback evil --nats 127.0.0.1:9"],
  status: ["neither", "status --nats 127.0.0.1:9"],
  approve: ["asks", "approve evil --yes"],
  login: ["asks", "login evil"],
  logout: ["asks", "logout evil"],
  run: ["asks", "run hello --yes --model m --base-url http://127.0.0.1:9/v1"],
  agent: ["asks", "agent hello --yes --server /nowhere"],
  chat: ["asks", "chat --model m --base-url http://127.0.0.1:9/v1"],
  "sessions list": ["neither", "sessions list"],
  "sessions resume": ["asks", "sessions resume evil --model m --base-url http://127.0.0.1:9/v1"],
  "sessions export": ["neither", "sessions export evil"],
  "sessions fork": ["neither", "sessions fork evil"],
  "sessions delete": ["neither", "sessions delete evil --yes"],
  connect: ["asks", "connect cursor --yes"],
  disconnect: ["neither", "disconnect cursor --yes"],
  init: ["neither", "init --skill fresh"],
  test: ["asks", "test"],
  types: ["asks", "types"],
  list: ["shows", "list"],
  explain: ["shows", "explain evil"],
  show: ["shows", "show evil"],
  inspect: ["neither", "inspect nothing.jsonl"],
  check: ["neither", "check"],
  doctor: ["shows", "doctor --timeout 2000"],
  "new skill": ["neither", "new skill fresh"],
  "new tool": ["neither", "new tool fresh --skill evil"],
  "new plugin": ["neither", "new plugin fresh"],
  add: ["neither", "add ./nothing --yes"],
  remove: ["neither", "remove packaged --yes"],
  update: ["neither", "update nothing --yes"],
  lock: ["neither", "lock"],
  outdated: ["neither", "outdated"],
  verify: ["neither", "verify"],
  ci: ["neither", "ci"],
  pack: ["neither", "pack skills/evil"],
  publish: ["neither", "publish skills/evil --dry-run"],
  sign: ["asks", "sign evil"],
  "trust add": ["neither", "trust add /nowhere/at/all"],
  "trust list": ["neither", "trust list"],
  "trust remove": ["neither", "trust remove"],
  "trust log": ["neither", "trust log"],
  "trust policy show": ["neither", "trust policy show"],
  "trust policy set": ["neither", "trust policy set policy.package require"],
  "trust policy allow": ["neither", "trust policy allow @acme/*"],
  "trust policy deny": ["neither", "trust policy deny evil"],
  "keys list": ["neither", "keys list"],
  "keys new": ["neither", "keys new me"],
  "keys trust": ["neither", "keys trust nonsense"],
  "keys revoke": ["neither", "keys revoke nonsense"],
  "keys export": ["neither", "keys export"],
};

/** The same commands with options that run more of the project. */
const more: readonly (readonly ["asks" | "shows" | "neither", string])[] = [
  ["asks", "lock --run"],
  ["asks", "verify --run"],
  ["asks", "run hello --agent evil --model m --base-url http://127.0.0.1:9/v1"],
  ["asks", "mcp --http 0 --agent evil"],
  ["asks", "call evil {} --json"],
  ["shows", "list --json"],
  ["shows", "explain spawns --available *"],
  ["neither", "check --strict"],
  ["neither", "pack skills/evil --dry-run"],
];

const all = [...Object.values(calls), ...more];
const places: readonly ConfigPlace[] = ["skillhost.json", "package.json"];

test("the table below contains every command", () => {
  expect(leaves(createProgram(() => {})).toSorted()).toEqual(Object.keys(calls).toSorted());
});

describe.each(places)("in an untrusted checkout, configured by %s,", (place) => {
  test.each(all)("%s: %s runs none of its code and writes nothing outside its folder", async (kind, argv) => {
    using hostile = checkout(place);
    const before = hostile.outside();
    const done = await runCli(argv.split(" "), { cwd: hostile.folder, isTrusted: false });
    expect(hostile.ran()).toEqual([]);
    expect(withoutOwn(hostile.outside())).toEqual(withoutOwn(before));
    if (kind !== "neither") expect(textOf(done)).toContain(`skillhost trust add ${hostile.folder}`);
    if (kind === "asks")
      expect({ code: done.code, says: textOf(done) }).toMatchObject({ code: 1, says: expect.stringMatching(/none of its code was run/) });
    // The command does not make the folder trusted either.
    expect(await trustedFolders(hostile)).not.toContain(hostile.folder);
  });

  test.each(all.filter(([, argv]) => !argv.includes("--json")))(
    "%s: %s asks at most once on a terminal, and runs nothing after a no",
    async (kind, argv) => {
      using hostile = checkout(place);
      const before = hostile.outside();
      const questions: string[] = [];
      const answer = (question: string): string => {
        questions.push(question);
        return "n";
      };
      const done = await runCli(argv.split(" "), { cwd: hostile.folder, isTrusted: false, isTTY: true, answer });
      expect(hostile.ran()).toEqual([]);
      expect(withoutOwn(hostile.outside())).toEqual(withoutOwn(before));
      expect(questions.filter((question) => question.includes("Trust this folder"))).toHaveLength(kind === "asks" ? 1 : 0);
      if (kind === "asks") expect(done.code).toBe(1);
    },
  );
});

test("the code that would run is shown before the question, and one yes covers all later commands", async () => {
  const hostile = checkout();
  const questions: string[] = [];
  const answer = (question: string): string => {
    questions.push(question);
    return "y";
  };
  const terminal = { cwd: hostile.folder, isTrusted: false, isTTY: true, answer };
  // Isolated code of packages could not leave a trace.
  await runCli(["--isolation", "off", "call", "evil", "{}", "--yes"], terminal);
  expect(questions).toHaveLength(1);
  for (const shown of [hostile.folder, "evil", "./plugin.mjs", "1 MCP server: evil"])
    expect(questions[0]).toContain(shown.replace("./", "/"));
  expect(hostile.ran()).toEqual(expect.arrayContaining(["module-evil", "module-disguised", "plugin"]));
  for (const argv of [["call", "evil", "{}", "--yes"], ["list"], ["dev", "--watch", "never"], ["doctor", "--timeout", "2000"]])
    await runCli(argv, terminal);
  expect(questions).toHaveLength(1);
  // Settings that only a user may make have no effect in a trusted project either.
  expect(readFileSync(join(hostile.folder, "../outside/bashrc"), "utf8")).toBe("# mine\n");
});

describe("consent to run code", () => {
  const calling = ["call", "evil", "{}", "--yes"];
  test.each([
    ["with --trust, for one run", ["--trust"], {}],
    ["with SKILLHOST_TRUST=1", [], { SKILLHOST_TRUST: "1" }],
  ])("the user gives consent %s", async (_, options, env) => {
    const hostile = checkout();
    expect(await runCli([...options, ...calling], { cwd: hostile.folder, isTrusted: false, env })).toMatchObject({
      code: 0,
      stdout: "ran\n",
    });
    expect(await standing(hostile)).toBe("untrusted");
  });

  test("consent covers a folder in SKILLHOST_TRUST and no other", async () => {
    const hostile = checkout();
    const asked = (folder: string): Promise<CliRun> =>
      runCli(calling, { cwd: hostile.folder, isTrusted: false, env: { SKILLHOST_TRUST: folder } });
    expect(await asked(join(hostile.folder, "../outside"))).toMatchObject({ code: 1 });
    expect(await asked(`${hostile.folder}-not`)).toMatchObject({ code: 1 });
    expect(hostile.ran()).toEqual([]);
    expect(await asked(hostile.folder)).toMatchObject({ code: 0 });
    const wrong = await asked("relative/folder");
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining("SKILLHOST_TRUST must be 1, or absolute folders") });
  });

  test("naming a folder of skills is consent for that folder only", async () => {
    const hostile = checkout("none");
    const done = await runCli(["--skills", "skills/evil", ...calling], { cwd: hostile.folder, isTrusted: false });
    expect(done).toMatchObject({ code: 0, stdout: "ran\n" });
    expect(hostile.ran().filter((name) => name !== "server-of-skill")).toEqual(["module-evil"]);
    const configured = checkout();
    const refused = await runCli(["--skills", "skills/evil", ...calling], { cwd: configured.folder, isTrusted: false });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("3 plugins") });
    expect(configured.ran()).toEqual([]);
  });

  test("naming a configuration is consent for the paths in it", async () => {
    const hostile = checkout();
    renameSync(join(hostile.folder, "skillhost.json"), join(hostile.folder, "named.json"));
    const named = ["--config", "named.json", "--skills", "x/node_modules/disguised", "--isolation", "off"];
    const done = await runCli([...named, "call", "disguised", "{}", "--yes"], { cwd: hostile.folder, isTrusted: false });
    expect(done.code).toBe(0);
    expect(hostile.ran()).toEqual(expect.arrayContaining(["module-disguised", "plugin"]));
    expect(hostile.ran()).not.toContain("module-evil");
  });

  test("trust add is consent until trust remove, and trust list and doctor show it", async () => {
    const hostile = checkout();
    const cli = (...argv: string[]): Promise<CliRun> => runCli(argv, { cwd: hostile.folder, isTrusted: false });
    expect(await cli("trust", "list")).toMatchObject({ code: 0, stdout: "" });
    expect((await cli("doctor")).stdout).toContain(`${hostile.folder}, not trusted`);
    expect(await cli("trust", "add")).toMatchObject({ code: 0, stdout: `Trusted: ${hostile.folder} and everything below it.\n` });
    expect((await cli("trust", "list")).stdout).toContain(hostile.folder);
    expect((await cli("doctor", "--timeout", "2000")).stdout).toContain(`${hostile.folder}, trusted`);
    expect(await cli(...calling)).toMatchObject({ code: 0 });
    expect(await cli("trust", "remove", join(hostile.folder, "skills"))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("remove that"),
    });
    expect(await cli("trust", "remove", ".")).toMatchObject({ code: 0 });
    expect(await cli(...calling)).toMatchObject({ code: 1 });
  });
});

test("a runtime for the Copilot SDK creates a session without untrusted code and reports it", async () => {
  using hostile = checkout();
  const before = hostile.outside();
  const served = await createAndCall(hostile, []);
  expect(hostile.ran()).toEqual([]);
  expect(withoutOwn(hostile.outside())).toEqual(withoutOwn(before));
  expect(served.stderr).toContain(`skillhost trust add ${hostile.folder}`);
  expect(served.tools).not.toContain("evil");
  const trusted = await createAndCall(hostile, ["--trust"]);
  expect(trusted.tools).toContain("evil");
  expect(hostile.ran()).toEqual(expect.arrayContaining(["module-evil", "extension", "plugin"]));
});

interface Served {
  readonly tools: readonly string[];
  readonly stderr: string;
}

/** Starts the runtime in the checkout, and creates a session that requests the extensions of its workspace. */
async function createAndCall(hostile: HostileCheckout, options: readonly string[]): Promise<Served> {
  vi.stubEnv("COPILOT_HOME", join(hostile.home, "copilot"));
  const [input, output] = [new PassThrough(), new PassThrough()];
  const pieces: string[] = [];
  const streams = { input, output: { write: (text: string) => void output.write(text), pendingBytes: 0 }, [Symbol.dispose]() {} };
  const none = { isTTY: false, write() {} };
  const io: CliIo = {
    stdout: none,
    stderr: { isTTY: false, write: (text) => void pieces.push(text) },
    stdin: { isTTY: false, isPiped: true, read: async () => "" },
    cwd: hostile.folder,
    env: { COPILOT_HOME: join(hostile.home, "copilot") },
    signal: new AbortController().signal,
    takeStreams: () => streams,
  };
  const ended = headless(["--headless", "--stdio", "--yolo", ...options], io);
  const connection = createMessageConnection(new StreamMessageReader(output), new StreamMessageWriter(input));
  connection.listen();
  await connection.sendRequest("connect", {});
  const given = { workingDirectory: hostile.folder, requestExtensions: true };
  const { sessionId } = await connection.sendRequest<{ sessionId: string }>("session.create", given);
  await connection.sendRequest("session.tools.initializeAndValidate", { sessionId });
  await connection.sendRequest("session.extensions.reload", { sessionId }).catch(() => {});
  const { tools } = await connection.sendRequest<{ tools: { name: string }[] }>("session.tools.getCurrentMetadata", { sessionId });
  await connection.sendRequest("runtime.shutdown", {});
  await ended;
  connection.dispose();
  return { tools: (tools ?? []).map(({ name }) => name), stderr: pieces.join("") };
}

function textOf({ stdout, stderr }: CliRun): string {
  return stdout + stderr;
}

/** Excludes the files of the user's own folder: keys, caches and the list of trusted folders. */
function withoutOwn(found: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(found).filter(([path]) => !path.startsWith("home/")));
}

async function trustedFolders({ folder }: HostileCheckout): Promise<readonly string[]> {
  const { stdout } = await runCli(["trust", "list"], { cwd: folder, isTrusted: false });
  return stdout.split("\n").map((line) => line.split("  ")[0]!);
}

async function standing({ folder }: HostileCheckout): Promise<string> {
  const { stdout } = await runCli(["doctor", "--json", "--timeout", "1000"], { cwd: folder, isTrusted: false });
  return JSON.parse(stdout).data.project.standing;
}
