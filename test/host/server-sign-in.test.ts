import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { FakeAuthorizationServer, FakeProtectedServer, visit } from "../doubles/oauth-server.ts";

interface Setting {
  readonly authorization: FakeAuthorizationServer;
  readonly server: FakeProtectedServer;
  /** A host with the state of a new process. */
  open(): Promise<Host>;
  /** One entry for each sign-in. */
  readonly visits: string[];
  /** Options of a session whose user accepts every sign-in. */
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

test("the first call asks a session's user to sign in, and a call that requires more scopes asks again", async () => {
  const { open, attended, visits } = await setting();
  const session = await (await open()).createSession(attended);
  expect((await session.callTool("notes/read")).textResultForLlm).toBe("did read");
  expect(visits).toHaveLength(1);
  expect((await session.callTool("notes/write")).textResultForLlm).toBe("did write");
  expect(visits).toHaveLength(2);
});

test("the next process needs no new sign-in", async () => {
  const { open, attended, visits } = await setting();
  const first = await open();
  await (await first.createSession(attended)).callTool("notes/read");
  await first.close();
  const session = await (await open()).createSession({ persist: false, onPermissionRequest: approveAll });
  expect((await session.callTool("notes/read")).textResultForLlm).toBe("did read");
  expect(visits).toHaveLength(1);
});

test("without a user, a server reports that it waits for a sign-in and receives no requests", async () => {
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

test("a host signs in and out on its own account", async () => {
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

test("a call fails when the session's user declines, and its result does not contain the address of the authorization server", async () => {
  const { open, authorization, attended } = await setting();
  authorization.decline = "access_denied";
  const session = await (await open()).createSession(attended);
  const result = await session.callTool("notes/read");
  expect(result.resultType).not.toBe("success");
  expect(result.textResultForLlm).not.toContain(authorization.issuer);
});

test("signing in to an unknown server, or out of it, is an error", async () => {
  const { open } = await setting();
  const host = await open();
  const authorize = () => expect.unreachable();
  await expect(host.signInToServer("nowhere", { authorize })).rejects.toMatchObject({ code: "MCP_SERVER_UNKNOWN" });
  await expect(host.signOutOfServer("nowhere")).rejects.toMatchObject({ code: "MCP_SERVER_UNKNOWN" });
});
