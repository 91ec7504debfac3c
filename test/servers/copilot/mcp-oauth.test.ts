import { afterEach, describe, expect, test } from "vitest";
import { FakeAuthorizationServer, FakeProtectedServer, visit } from "../../doubles/oauth-server.ts";
import { calling, type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

/** A server that accepts the tokens of this list from any issuer. */
async function vault(taken: readonly string[]): Promise<{ server: FakeProtectedServer; authorization: FakeAuthorizationServer }> {
  const authorization = await FakeAuthorizationServer.start();
  const server = await FakeProtectedServer.start(authorization);
  const own = authorization.check.bind(authorization);
  const given = { clientId: "", scope: "read", family: "", resource: server.url, endsAt: Number.POSITIVE_INFINITY };
  authorization.check = (token) => (taken.includes(token) ? given : own(token));
  return { server, authorization };
}

interface Opened {
  readonly client: TestClient;
  readonly sessionId: string;
  readonly server: FakeProtectedServer;
  close(): Promise<void>;
}

async function session(taken: readonly string[], isInterested = true, prepare?: (server: FakeProtectedServer) => void): Promise<Opened> {
  const { server, authorization } = await vault(taken);
  prepare?.(server);
  served = await Served.start();
  const client = await served.connect();
  client.serve();
  const sessionId = await client.create({ model: "m", mcpServers: { vault: { type: "http", url: server.url, tools: ["*"] } } });
  if (isInterested) await client.request("session.eventLog.registerInterest", { sessionId, eventType: "mcp.oauth_required" });
  const close = async (): Promise<void> => {
    await server[Symbol.asyncDispose]();
    await authorization[Symbol.asyncDispose]();
  };
  return { client, sessionId, server, close };
}

/** Answers every question for a token with the next of these. */
function give(client: TestClient, sessionId: string, ...answers: readonly object[]): Json[] {
  const left = [...answers];
  const asked: Json[] = [];
  client.connection.onNotification("session.event", ({ event }: Json) => {
    client.events.push({ sessionId, event });
    if (event.type !== "mcp.oauth_required") return;
    asked.push(event.data);
    const result = left.shift() ?? { kind: "cancelled" };
    void client.request("session.mcp.oauth.handlePendingRequest", { sessionId, requestId: event.data.requestId, result });
  });
  return asked;
}

const status = async (client: TestClient, sessionId: string): Promise<string> =>
  (await client.request("session.mcp.list", { sessionId })).servers[0].status;

describe("a remote server that wants a token", () => {
  test("gets that of the client that said it would give one", async () => {
    const { client, sessionId, server, close } = await session(["host-1"]);
    const asked = give(client, sessionId, { kind: "token", accessToken: "host-1", expiresIn: 3600 });
    expect(await status(client, sessionId)).toBe("connected");
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ serverName: "vault", serverUrl: server.url, reason: "initial", requestId: expect.any(String) });
    expect(asked[0].wwwAuthenticateParams.resourceMetadataUrl).toContain("oauth-protected-resource");
    served.says(calling("vault-read"), "Done.");
    const answering = client
      .event("permission.requested")
      .then(({ data: { requestId } }) =>
        client.request("session.permissions.handlePendingPermissionRequest", { sessionId, requestId, result: { kind: "approve-once" } }),
      );
    await client.request("session.send", { sessionId, prompt: "Read." });
    await answering;
    expect((await client.event("tool.execution_complete")).data["success"]).toBe(true);
    await close();
  });

  test("says why it refused, and what it publishes about itself, each time that it asks", async () => {
    const taken = ["host-1"];
    const { client, sessionId, server, close } = await session(taken, true, (vaultServer) => {
      vaultServer.tokenError = "invalid_token";
    });
    const asked = give(
      client,
      sessionId,
      { kind: "token", accessToken: "host-1" },
      { kind: "cancelled" },
      { kind: "token", accessToken: "host-2" },
    );
    expect(await status(client, sessionId)).toBe("connected");
    taken.splice(0, 1, "host-2");
    await client.request("session.mcp.restartServer", { sessionId, serverName: "vault" });
    expect(await status(client, sessionId)).toBe("connected");
    expect(asked.map(({ reason, wwwAuthenticateParams: { error } }) => [reason, error])).toEqual([
      ["initial", "invalid_token"],
      ["refresh", "invalid_token"],
      ["reauth", "invalid_token"],
    ]);
    for (const { resourceMetadata } of asked)
      expect(JSON.parse(resourceMetadata)).toMatchObject({ resource: server.url, scopes_supported: ["read"] });
    await close();
  });

  test.each([
    ["is not there", (server: FakeProtectedServer) => `${server.url}/nothing`],
    ["is not a document", (server: FakeProtectedServer) => server.url],
    ["lies where the server may not send us", () => "http://metadata.example/latest"],
  ])("asks without what the server publishes about itself if that %s", async (_title, place) => {
    const { client, sessionId, close } = await session(["host-1"], true, (server) => {
      server.resourceMetadataUrl = place(server);
    });
    const asked = give(client, sessionId, { kind: "token", accessToken: "host-1" });
    expect(await status(client, sessionId)).toBe("connected");
    expect(asked).toHaveLength(1);
    expect(asked[0]).not.toHaveProperty("resourceMetadata");
    await close();
  });

  test("asks for another when it does not take it any more", async () => {
    const taken = ["host-1"];
    const { client, sessionId, close } = await session(taken);
    const asked = give(client, sessionId, { kind: "token", accessToken: "host-1" }, { kind: "token", accessToken: "host-2" });
    expect(await status(client, sessionId)).toBe("connected");
    taken.splice(0, 1, "host-2");
    await client.request("session.mcp.restartServer", { sessionId, serverName: "vault" });
    expect(await status(client, sessionId)).toBe("connected");
    expect(asked.map(({ reason }) => reason)).toEqual(["initial", "refresh"]);
    await close();
  });

  test("asks once more, for another sign-in, when the client cannot renew it", async () => {
    const taken = ["host-1"];
    const { client, sessionId, close } = await session(taken);
    const answers = [{ kind: "token", accessToken: "host-1" }, { kind: "cancelled" }, { kind: "token", accessToken: "host-2" }];
    const asked = give(client, sessionId, ...answers);
    expect(await status(client, sessionId)).toBe("connected");
    taken.splice(0, 1, "host-2");
    await client.request("session.mcp.restartServer", { sessionId, serverName: "vault" });
    expect(await status(client, sessionId)).toBe("connected");
    expect(asked.map(({ reason }) => reason)).toEqual(["initial", "refresh", "reauth"]);
    await close();
  });

  test("stays without when the client gives none", async () => {
    const { client, sessionId, close } = await session([]);
    const asked = give(client, sessionId, { kind: "cancelled" });
    expect(await status(client, sessionId)).toBe("needs-auth");
    expect(asked).toHaveLength(1);
    expect((await client.event("mcp.oauth_completed")).data["outcome"]).toBe("cancelled");
    await close();
  });

  test("keeps the token from every other session", async () => {
    const { client, sessionId, server, close } = await session(["host-1"]);
    give(client, sessionId, { kind: "token", accessToken: "host-1" });
    expect(await status(client, sessionId)).toBe("connected");
    const other = await client.create({ model: "m", mcpServers: { vault: { type: "http", url: server.url, tools: ["*"] } } });
    expect(await status(client, other)).toBe("needs-auth");
    await close();
  });
});

describe("signing in by a browser", () => {
  test("the client gets the sign-in URL, and the server connects after the sign-in", async () => {
    const { client, sessionId, close } = await session([], false);
    expect(await status(client, sessionId)).toBe("needs-auth");
    const { authorizationUrl } = await client.request("session.mcp.oauth.login", { sessionId, serverName: "vault" });
    const callback = await visit(authorizationUrl);
    await fetch(callback);
    await client.event("session.mcp_server_status_changed", ({ data }) => data["status"] === "connected");
    expect(await client.request("session.mcp.oauth.login", { sessionId, serverName: "vault" })).toEqual({});
    await close();
  });

  test("a probe says whether it is required, and changes nothing", async () => {
    const { client, sessionId, close } = await session([], false);
    const asked = (): number => client.count("mcp.oauth_required");
    const probe = (serverName: string): Promise<Json> => client.request("session.mcp.oauth.probe", { sessionId, serverName });
    expect(await probe("vault")).toMatchObject({
      status: "needs-auth",
      reason: "initial",
      httpResponse: { statusCode: 401 },
      wwwAuthenticateParams: { resourceMetadataUrl: expect.stringContaining("oauth-protected-resource") },
    });
    expect(await status(client, sessionId)).toBe("needs-auth");
    const before = asked();
    await probe("vault");
    expect(asked()).toBe(before);
    const { authorizationUrl } = await client.request("session.mcp.oauth.login", { sessionId, serverName: "vault" });
    await fetch(await visit(authorizationUrl));
    await client.event("session.mcp_server_status_changed", ({ data }) => data["status"] === "connected");
    expect(await probe("vault")).toMatchObject({ status: "authenticated" });
    expect((await client.refusal("session.mcp.oauth.probe", { sessionId, serverName: "gone" })).message).toContain("is not configured");
    await close();
    expect(await probe("vault")).toEqual({ status: "failed", error: expect.any(String) });
  });

  test("is refused for servers that are not signed in to", async () => {
    const { client, sessionId, close } = await session([], false);
    expect((await client.refusal("session.mcp.oauth.login", { sessionId, serverName: "gone" })).message).toContain("is not configured");
    const none = await client.create({ model: "m" });
    expect((await client.refusal("session.mcp.oauth.login", { sessionId: none, serverName: "x" })).message).toContain(
      "MCP host is not available",
    );
    await close();
  });
});
