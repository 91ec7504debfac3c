import { describe, expect, test } from "vitest";
import { FakeAuthorizationServer, FakeProtectedServer, visit } from "../doubles/oauth-server.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { hostIn, nextEvent, openSession, say } from "./servers-kit.ts";

describe("a server that requires a sign-in", () => {
  test("a server reports that it waits for a sign-in, and after one it is available to every session of the host", async () => {
    await using authorization = await FakeAuthorizationServer.start();
    await using protectedServer = await FakeProtectedServer.start(authorization);
    const host = await hostIn(emptyFolder(), { mcpServers: { vault: { type: "http", url: protectedServer.url } } });
    const alone = await openSession(host);
    await alone.ready();
    expect(alone.mcp.list()).toMatchObject([{ name: "vault", transport: "http", status: "needs-auth", error: expect.any(String) }]);

    const asked: unknown[] = [];
    const attended = await openSession(host, {
      onMcpAuthorization: async (data, { sessionId }) => {
        asked.push([data.serverName, data.serverUrl, sessionId]);
        return { callbackUrl: await visit(data.url) };
      },
    });
    const required = nextEvent(attended, "mcp.oauth_required");
    const connected = nextEvent(alone, "session.mcp_server_status_changed", ({ data }) => data["status"] === "connected");
    attended.mcp.start("vault");
    expect((await required).data).toMatchObject({ serverName: "vault", serverUrl: protectedServer.url, reason: "initial" });
    await connected;
    expect(asked).toEqual([["vault", protectedServer.url, attended.id]]);
    expect(await say(alone, "vault/read")).toBe("did read");
    expect(await say(attended, "vault/read")).toBe("did read");
  });
});
