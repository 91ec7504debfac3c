import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import { approveAll } from "../../src/session/permissions/permissions.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { FakeAuthorizationServer, FakeProtectedServer, visit } from "../doubles/oauth-server.ts";

interface Setting {
  readonly authorization: FakeAuthorizationServer;
  readonly server: FakeProtectedServer;
  /** As a new process has it. */
  open(): Promise<Host>;
  /** How often somebody signed in. */
  readonly visits: string[];
  /** A session whose user signs in to everything. */
  readonly attended: SessionOptions;
}

async function setting(): Promise<Setting> {
  const authorization = await FakeAuthorizationServer.start();
  const server = await FakeProtectedServer.start(authorization);
  const home = mkdtempSync(join(tmpdir(), "skillhost-sign-in-"));
  onTestFinished(async () => {
    rmSync(home, { recursive: true, force: true });
    await Promise.all([authorization[Symbol.asyncDispose](), server[Symbol.asyncDispose]()]);
  });
  const open = async (): Promise<Host> => {
    const host = await createHost({
      skillDirectories: [],
      watch: false,
      workingDirectory: home,
      sessionsDirectory: join(home, "sessions"),
      approvalsDirectory: join(home, "approvals"),
      logger: { error() {}, warning() {}, info() {}, debug() {}, enabled: () => false },
      mcp: { cacheDirectory: join(home, "cache"), credentialsDirectory: join(home, "oauth") },
      mcpServers: { notes: { type: "http", url: server.url } },
    });
    onTestFinished(() => host.close());
    return host;
  };
  const visits: string[] = [];
  const attended: SessionOptions = {
    persist: false,
    onPermissionRequest: approveAll,
    onMcpAuthorization: async ({ url }) => {
      visits.push(url);
      return { callbackUrl: await visit(url) };
    },
  };
  return { authorization, server, open, visits, attended };
}

test("whoever uses a session signs in to the servers that it has, and to more when a call wants more", async () => {
  const { open, attended, visits } = await setting();
  const session = await (await open()).createSession(attended);
  expect((await session.callTool("notes/read")).textResultForLlm).toBe("did read");
  expect(visits).toHaveLength(1);
  expect((await session.callTool("notes/write")).textResultForLlm).toBe("did write");
  expect(visits).toHaveLength(2);
});

test("the next process has no need of anybody", async () => {
  const { open, attended, visits } = await setting();
  const first = await open();
  await (await first.createSession(attended)).callTool("notes/read");
  await first.close();
  const session = await (await open()).createSession({ persist: false, onPermissionRequest: approveAll });
  expect((await session.callTool("notes/read")).textResultForLlm).toBe("did read");
  expect(visits).toHaveLength(1);
});

test("with nobody there a server waits for a sign-in, says so, and is asked for nothing", async () => {
  const { open, authorization } = await setting();
  const host = await open();
  const [info] = await host.connectServers();
  expect(info).toMatchObject({
    name: "notes",
    status: "needs-auth",
    error: 'Not signed in to MCP server "notes": it requires sign-in. Run "skillhost login notes".',
  });
  expect(authorization.requests).toEqual([]);
});

test("a host signs in on its own account, and out again", async () => {
  const { open, server } = await setting();
  const host = await open();
  await host.connectServers();
  const info = await host.signInToServer("notes", { authorize: async ({ url }) => ({ callbackUrl: await visit(url) }) });
  expect(info.status).toBe("connected");
  expect(info.tools.map(({ nativeName }) => nativeName)).toEqual(["read", "write"]);
  await host.signOutOfServer("notes");
  const before = server.requests.length;
  expect((await host.connectServers())[0]!.status).not.toBe("connected");
  expect(server.requests.slice(before).some(({ headers }) => headers.authorization !== undefined)).toBe(false);
});

test("a session whose user declines is told why its tool cannot be used, without anything of the host", async () => {
  const { open, authorization, attended } = await setting();
  authorization.decline = "access_denied";
  const session = await (await open()).createSession(attended);
  const result = await session.callTool("notes/read");
  expect(result.resultType).not.toBe("success");
  expect(result.textResultForLlm).not.toContain(authorization.issuer);
});

test("an unknown server is named with those that there are", async () => {
  const { open } = await setting();
  const host = await open();
  const authorize = () => expect.unreachable();
  await expect(host.signInToServer("nowhere", { authorize })).rejects.toMatchObject({ code: "MCP_SERVER_UNKNOWN" });
  await expect(host.signOutOfServer("nowhere")).rejects.toMatchObject({ code: "MCP_SERVER_UNKNOWN" });
});
