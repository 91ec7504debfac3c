import { readdirSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { FakeAuthorizationServer, FakeProtectedServer, visit } from "../doubles/oauth-server.ts";
import { type CliRun, type CliSetup, startCli, type Workplace, workplace } from "./run-cli.ts";

interface Setting {
  readonly place: Workplace;
  readonly server: FakeProtectedServer;
  readonly authorization: FakeAuthorizationServer;
  /** Runs the command and opens the URL that it prints as a user would. `came` receives the final URL of the browser. */
  run(argv: readonly string[], came?: (url: string) => unknown, setup?: CliSetup): Promise<CliRun>;
}

async function setting(): Promise<Setting> {
  const authorization = await FakeAuthorizationServer.start();
  const server = await FakeProtectedServer.start(authorization);
  const mcpServers = { notes: { type: "http", url: server.url }, local: { command: "node" } };
  const home = process.env["SKILLHOST_HOME"];
  const place = workplace({ "skillhost.json": JSON.stringify({ mcpServers }) });
  process.env["SKILLHOST_HOME"] = place.at("home");
  onTestFinished(async () => {
    process.env["SKILLHOST_HOME"] = home;
    place[Symbol.dispose]();
    await Promise.all([authorization[Symbol.asyncDispose](), server[Symbol.asyncDispose]()]);
  });
  const run: Setting["run"] = async (argv, came = (url) => fetch(url), setup = {}) => {
    const running = startCli(argv, { cwd: place.path, ...setup });
    const opened = openPrinted(running, came);
    const done = await running.done;
    await opened;
    return done;
  };
  return { place, server, authorization, run };
}

async function openPrinted(running: ReturnType<typeof startCli>, came: (url: string) => unknown): Promise<void> {
  let isDone = false;
  void running.done.then(() => {
    isDone = true;
  });
  while (!isDone) {
    const url = /^http:\S+$/m.exec(running.stderr)?.[0];
    if (url !== undefined) return void (await came(await visit(url)));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("login", () => {
  test("login prints the sign-in URL, waits for the browser, and lists the server's tools", async () => {
    const { run, place } = await setting();
    const { code, stdout, stderr } = await run(["login", "notes"]);
    expect(stdout).toBe("Signed in to notes, which has 2 tools.\n");
    expect(stderr).toMatch(/^To sign in to notes, open this address in a browser:\nhttp:\/\/127\.0\.0\.1:\d+\/authorize\?/);
    expect(code).toBe(0);
    expect(readdirSync(place.at("home/oauth"))).toHaveLength(1);
  });

  test("login does not ask while the last sign-in is valid, and signs in again with --again", async () => {
    const { run, authorization } = await setting();
    await run(["login", "notes"]);
    const { code, stdout, stderr } = await run(["login", "notes"]);
    expect([code, stdout]).toEqual([0, "No sign-in was needed for notes, which has 2 tools.\n"]);
    expect(stderr).toContain("--again");
    await run(["login", "notes", "--again"]);
    expect(authorization.count("/authorize")).toBe(2);
  });

  test("login reads the address from a user whose browser is on another machine", async () => {
    const { run } = await setting();
    let pasted: (url: string) => void = () => {};
    const address = new Promise<string>((resolve) => {
      pasted = resolve;
    });
    const { code, stdout } = await run(["login", "notes"], (url) => pasted(url), { isTTY: true, answer: () => address });
    expect([code, stdout]).toEqual([0, "Signed in to notes, which has 2 tools.\n"]);
  });

  test("login --json prints one envelope, and the URL to stderr", async () => {
    const { run } = await setting();
    const { code, stdout, stderr } = await run(["login", "notes", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: true,
      command: "login",
      data: { signedIn: true, server: { name: "notes", status: "connected" } },
    });
    expect(stderr).toContain("open this address");
    expect(code).toBe(0);
  });

  test("login fails with a message when the user declines", async () => {
    const { run, authorization } = await setting();
    authorization.decline = "access_denied";
    const { code, stderr } = await run(["login", "notes"]);
    expect(code).toBe(1);
    expect(stderr).toContain('the authorization server answered "access_denied"');
  });

  test("login reports an unknown server, and one without a sign-in", async () => {
    const { run } = await setting();
    const unknown = await run(["login", "nowhere"]);
    expect(unknown.code).toBe(1);
    expect(unknown.stderr).toContain('MCP server "nowhere" does not exist');
    const local = await run(["login", "local"]);
    expect(local.code).toBe(1);
    expect(local.stderr).toContain('"local" does not use OAuth sign-in');
  });
});

describe("logout", () => {
  test("logout revokes the tokens and deletes them", async () => {
    const { run, authorization, place } = await setting();
    await run(["login", "notes"]);
    const { code, stdout } = await run(["logout", "notes"]);
    expect([code, stdout]).toEqual([0, "Signed out of notes.\n"]);
    expect(authorization.count("/revoke")).toBe(1);
    expect(readdirSync(place.at("home/oauth"))).toEqual([]);
  });
});
