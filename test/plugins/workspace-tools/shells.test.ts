import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { runningText } from "../../../plugins/workspace-tools/copilot/copilot-texts.ts";
import { OutputBuffer } from "../../../plugins/workspace-tools/operations/shell.ts";
import { findBash, shellEnvironment } from "../../../plugins/workspace-tools/operations/shell-environment.ts";
import { tempFolder } from "../../skills/kit.ts";
import { patience } from "../../slowness.ts";
import { openWorkspace } from "./workspace-kit.ts";

const run = (command: string, more: object = {}): object => ({ command, description: "For a test", ...more });

/** Settles when a process has ended: there is no event for a process that is not our child. */
async function gone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: patience(10_000), interval: 20 });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie process is not running.
    return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

async function pidIn(file: string): Promise<number> {
  await vi.waitFor(() => expect(existsSync(file) && readFileSync(file, "utf8").endsWith("\n")).toBe(true), {
    timeout: patience(10_000),
    interval: 20,
  });
  return Number(readFileSync(file, "utf8"));
}

describe.skipIf(findBash() === undefined)("bash", () => {
  // The first two are recorded conversations of the Copilot SDK.
  test.each<[command: string, expected: string]>([
    ["echo hello && echo world", "hello\nworld\n<exited with exit code 0>"],
    ["echo error_msg >&2; echo ok", "error_msg\nok\n<exited with exit code 0>"],
    ["printf no-line-break", "no-line-break\n<exited with exit code 0>"],
    ["true", "<exited with exit code 0>"],
    ["exit 7", "<exited with exit code 7>"],
    ["echo a; echo; ", "a\n\n<exited with exit code 0>"],
    ["for i in 1 2 3; do echo out$i; echo err$i >&2; done", "out1\nerr1\nout2\nerr2\nout3\nerr3\n<exited with exit code 0>"],
    ["cat", "<exited with exit code 0>"],
    ["cat <<'END'\nü $HOME\nEND", "ü $HOME\n<exited with exit code 0>"],
    ["kill -9 $$", "<exited with exit code 137>"],
  ])("%j", async (command, expected) => {
    const { text } = await openWorkspace();
    expect(await text("bash", run(command))).toBe(expected);
  });

  test("a command that does not parse fails with the message of bash", async () => {
    const { text } = await openWorkspace();
    expect(await text("bash", run("echo )"))).toMatch(/syntax error near unexpected token `\)'[\s\S]*\n<exited with exit code 2>$/);
  });

  test("runs each command in the working directory in its own shell", async () => {
    const { folder, text } = await openWorkspace({ "sub/x": "" });
    await text("bash", run("cd sub; export KEPT=1"));
    expect(await text("bash", run('pwd; echo "[$KEPT]"'))).toBe(`${folder}\n[]\n<exited with exit code 0>`);
  });

  test("keeps a command running that takes longer than the wait, and reads its output later", async () => {
    const { folder, text } = await openWorkspace();
    const waiting = `echo first; until [ -e go ]; do sleep 0.02; done; echo last; exit 3`;
    const begun = await text("bash", run(waiting, { initial_wait: 0.5 }));
    expect(begun).toMatch(/^(first\n)?<command with shellId: 0 is still running after 0\.5 seconds\. .*>$/);
    await text("create", { path: join(folder, "go"), file_text: "" });
    const ended = await text("read_bash", { shellId: "0", delay: 20 });
    expect(`${begun}\n${ended}`.replace(/<.*still running.*>\n/, "")).toBe("first\nlast\n<command with id: 0 exited with exit code 3>");
    expect(await text("read_bash", { shellId: "0", delay: 1 })).toBe('There is no shell with the shellId "0". <no active shell sessions>');
  });

  test("starts a command and returns, gives it input, and lists it", async () => {
    const { text } = await openWorkspace();
    const echo = 'while read -r line; do echo "got $line"; [ "$line" = end ] && exit; done';
    expect(await text("bash", run(echo, { mode: "async", shellId: "echo" }))).toBe("<command started in background with shellId: echo>");
    expect(await text("bash", run("echo", { shellId: "echo" }))).toMatch(/^A command is still running in the shell "echo"/);
    expect(await text("list_bash")).toMatch(
      /^Active shell sessions:\n {2}shellId: echo, pid: \d+, mode: async, status: running, elapsed: \ds, commands: 1, unread output: no\n {4}current command: while read/,
    );
    const first = await text("write_bash", { shellId: "echo", input: "one{enter}two", delay: 0 });
    expect(first).toMatch(/<command with shellId: echo is still running after 0 seconds\./);
    const last = await text("write_bash", { shellId: "echo", input: "end\n", delay: 20 });
    const all = `${first}\n${last}`.replace(/<.*still running.*>\n/, "");
    expect(all).toBe("got one\ngot two\ngot end\n<command with id: echo exited with exit code 0>");
    expect(await text("list_bash")).toBe("<no active shell sessions>");
  });

  test("stops a command and its child processes", async () => {
    const { folder, text } = await openWorkspace();
    await text("bash", run("sleep 1000 & echo $! > child; sleep 1000 | sleep 1000", { mode: "async" }));
    const child = await pidIn(join(folder, "child"));
    expect(await text("stop_bash", { shellId: "0" })).toBe("<command with id: 0 stopped>");
    await gone(child);
    expect(await text("list_bash")).toBe("<no active shell sessions>");
  });

  test("stops a command that ignores signals", async () => {
    const { folder, text } = await openWorkspace();
    await text("bash", run("trap '' TERM; echo $$ > own; while :; do sleep 0.05; done", { mode: "async" }));
    const pid = await pidIn(join(folder, "own"));
    await text("stop_bash", { shellId: "0" });
    await gone(pid);
  });

  test("background processes of a command end with it", async () => {
    const { folder, text } = await openWorkspace();
    expect(await text("bash", run("sleep 1000 & echo $! > child; echo done"))).toBe("done\n<exited with exit code 0>");
    await gone(await pidIn(join(folder, "child")));
  });

  test("a cancelled call ends its command", async () => {
    const { folder, session } = await openWorkspace();
    const controller = new AbortController();
    const call = session.callTool("bash", run("echo $$ > own; sleep 1000"), { signal: controller.signal });
    const pid = await pidIn(join(folder, "own"));
    controller.abort();
    expect((await call).resultType).toBe("failure");
    await gone(pid);
  });

  test("all commands of a session end with it, except detached ones, which end with the host", async () => {
    const { folder, host, session, text } = await openWorkspace();
    await text("bash", run("echo $$ > own; sleep 1000", { mode: "async" }));
    expect(await text("bash", run("echo $$ > lasting; sleep 1000", { mode: "async", detach: true }))).toBe(
      "<command started in detached background with shellId: 1>",
    );
    const [own, lasting] = [await pidIn(join(folder, "own")), await pidIn(join(folder, "lasting"))];
    await session.disconnect();
    await gone(own);
    expect(isAlive(lasting)).toBe(true);
    await host.close();
    expect(isAlive(lasting)).toBe(false);
  });

  test("a session that ends while a call waits for a command ends the command", async () => {
    const { folder, session } = await openWorkspace();
    const call = session.callTool("bash", run("echo $$ > own; sleep 1000"));
    const pid = await pidIn(join(folder, "own"));
    await session.disconnect();
    expect((await call).resultType).toBe("failure");
    await gone(pid);
  });

  test("each session has its own shells", async () => {
    const { host, text } = await openWorkspace();
    await text("bash", run("sleep 1000", { mode: "async", shellId: "mine" }));
    const other = await host.createSession({ persist: false });
    expect((await other.callTool("list_bash")).textResultForLlm).toBe("<no active shell sessions>");
    expect((await other.callTool("stop_bash", { shellId: "mine" })).resultType).toBe("failure");
    expect(await text("list_bash")).toMatch(/shellId: mine/);
  });

  test("returns the beginning and the end of an output that is too long", async () => {
    const { text } = await openWorkspace({}, { largeOutput: { enabled: false } });
    const output = await text("bash", run("seq 1 400000"));
    expect(output).toMatch(/^1\n2\n3\n/);
    expect(output).toMatch(/\n399999\n400000\n<exited with exit code 0>$/);
    expect(output).toMatch(/\n\[\d+ characters of output omitted\.\]\n/);
    expect(output.length).toBeLessThan(1_100_000);
  });

  test("does not split characters, in whatever chunks they arrive", async () => {
    const { text } = await openWorkspace();
    expect(await text("bash", run("printf '\\xc3'; sleep 0.1; printf '\\xbc'"))).toBe("ü\n<exited with exit code 0>");
  });

  test("refuses a command that is too long for an argument, and too many commands", async () => {
    const { text } = await openWorkspace();
    expect(await text("bash", run(`echo ${"x".repeat(130_000)}`))).toMatch(/^The command is too long\./);
    await Promise.all(Array.from({ length: 32 }, () => text("bash", run("sleep 1000", { mode: "async" }))));
    expect(await text("bash", run("true"))).toMatch(/^Too many commands are running\./);
  });

  test("reports a missing working directory", async () => {
    const { call } = await openWorkspace({}, { workingDirectory: join(tempFolder(), "gone") });
    expect(await call("bash", run("true"))).toMatchObject({
      resultType: "failure",
      textResultForLlm: expect.stringMatching(/could not be started/),
    });
  });

  test("none of the planted secrets is in the environment of commands, unless the configuration names it", async () => {
    const planted = Object.entries(secrets).map(([name, value]) => [`PLANTED_${name}`, value] as const);
    for (const [name, value] of [...planted, ...Object.entries(secrets), ["PLANTED_PLACE", "here"] as const]) vi.stubEnv(name, value);
    vi.stubEnv("GOPROXY", "https://proxy.example");
    const { text } = await openWorkspace({}, {}, undefined, { environment: ["PLANTED_PLACE", "PLANTED_DB_URL"] });
    const printed = (await text("bash", run("env"))).split("\n").filter((line) => !/^(?:PATH|HOME|PWD|_)=/.test(line));
    vi.unstubAllEnvs();
    expect(printed.filter((line) => line.startsWith("PLANTED")).sort()).toEqual([`PLANTED_DB_URL=${secrets.DB_URL}`, "PLANTED_PLACE=here"]);
    const names = printed.map((line) => line.split("=", 1)[0]!);
    expect(names.filter((name) => Object.hasOwn(secrets, name))).toEqual([]);
    expect(printed).toContain("GOPROXY=https://proxy.example");
  });
});

test("a running command is described as by the Copilot runtime", () => {
  expect(runningText("2", 30, true)).toBe(
    "<command with shellId: 2 is still running after 30 seconds. The command is still running. Check the output above - if it looks like the command is waiting for input, use write_bash to provide it. Otherwise, use read_bash to continue waiting for output, or stop_bash to stop it.>",
  );
  expect(runningText("2", 30, false)).toBe(
    "<command with shellId: 2 is still running after 30 seconds. The command is still running but hasn't produced output yet. It may be waiting for input or still processing. Use read_bash to continue waiting, write_bash if you think it needs input, or stop_bash to stop it.>",
  );
});

const secrets = {
  PGPASSWORD: "hunter2",
  MYSQL_PWD: "hunter2",
  DATABASE_URL: "postgres://me:hunter2@db.example/main",
  DB_URL: "mysql://root:root@localhost/app",
  CONNECTION_STRING: "Server=db;User=sa;Password=hunter2",
  STRIPE_LIVE: "sk_live_0123456789abcdefghijklmn",
  SSH_PRIVATEKEY: "-----BEGIN OPENSSH PRIVATE KEY-----",
  CI_JOB_JWT: "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
  ANTHROPIC_AUTHTOKEN: "abc",
  SLACK_WEBHOOK: "https://hooks.slack.com/services/T0/B0/x",
  OPENAI_API_KEY: "x",
  GITHUB_TOKEN: "x",
  AWS_SECRET_ACCESS_KEY: "x",
  DB_PASSWORD: "x",
  HARMLESS_LOOKING: "x",
};

test.each(
  Object.entries({
    ...secrets,
    // Variables of tool chains that are credentials by name or value.
    npm_config__auth: "x",
    "npm_config_//registry.example/:_authToken": "x",
    NPM_CONFIG_OTP: "123456",
    NODE_AUTH_TOKEN: "x",
    UV_PUBLISH_PASSWORD: "x",
    CARGO_REGISTRY_TOKEN: "x",
    PIP_INDEX_URL: "https://me:hunter2@pypi.example/simple",
    UV_INDEX_PRIVATE: "https://token@pypi.example/simple",
    GOPROXY: "https://me:hunter2@proxy.example",
    HTTPS_PROXY: "http://me:hunter2@proxy.example:8080",
    NODE_ENV: "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
    XDG_NOTE: "AKIAABCDEFGHIJKLMNOP",
    PIP_NOTE: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    // Variables that make programs load code or connect to this one.
    NODE_OPTIONS: "--require x",
    npm_config_node_options: "--require x",
    NODE_CHANNEL_FD: "3",
    LD_PRELOAD: "x",
    BASH_ENV: "x",
    BASH_FUNC_x: "x",
    LANG: "() { :; }",
  }),
)("commands do not get %s=%s", (name, value) => {
  expect({ ...shellEnvironment({ [name]: value }) }).toEqual(own);
});

const own = { PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0", TERM: "dumb" };

test("commands receive the variables of programs, tool chains and the configuration", () => {
  const kept = {
    PATH: "/bin",
    HOME: "/h",
    LC_ALL: "C",
    JAVA_HOME: "/j",
    SSH_AUTH_SOCK: "/s",
    NODE_ENV: "test",
    npm_config_registry: "https://registry.example",
    npm_config_cache: "/c",
    GOPATH: "/go",
    CARGO_HOME: "/cargo",
    VIRTUAL_ENV: "/venv",
    GIT_AUTHOR_NAME: "Me",
    HTTPS_PROXY: "http://proxy.example:8080",
    SSL_CERT_FILE: "/ca.pem",
  };
  expect({ ...shellEnvironment({ ...kept, OTHER: "x" }) }).toEqual({ ...kept, ...own });
  expect({ ...shellEnvironment({ PGPASSWORD: "x", OTHER: "y" }, ["PGPASSWORD", "ABSENT"]) }).toEqual({ PGPASSWORD: "x", ...own });
});

test("without bash its tools are not offered", () => {
  expect(findBash("")).toBe(process.platform === "win32" ? undefined : findBash("/bin:/usr/bin"));
  expect(findBash(tempFolder({ "bash/x": "" }))).not.toContain("skillhost-skills");
});

test("an output buffer keeps both ends, and is empty after it was read", () => {
  const buffer = new OutputBuffer(10);
  expect([buffer.isEmpty, buffer.take()]).toEqual([true, ""]);
  for (const char of "abcdefghijklmnopqrstuvwxyz") buffer.add(char);
  expect(buffer.isEmpty).toBe(false);
  expect(buffer.take()).toBe("abcde\n[16 characters of output omitted.]\nvwxyz");
  buffer.add("next");
  expect(buffer.take()).toBe("next");
});
