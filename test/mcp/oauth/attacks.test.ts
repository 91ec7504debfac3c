import { describe, expect, test } from "vitest";
import { createAuthFetch, mayContact } from "../../../src/mcp/oauth/auth-fetch.ts";
import { FakeAuthorizationServer, visit } from "../../doubles/oauth-server.ts";
import { call, type OAuthKit, oauthKit } from "./oauth-kit.ts";

async function refused(kit: OAuthKit, why: string): Promise<void> {
  await expect(call(kit.open(), kit.server.url)).rejects.toMatchObject({
    code: "MCP_UNAUTHORIZED",
    message: expect.stringContaining(why),
  });
  expect(kit.authorization.count("/token")).toBe(0);
}

describe("an answer that is not the one that was waited for", () => {
  test("an iss that is not the issuer's is refused before the code is used", async () => {
    const kit = await oauthKit();
    kit.authorization.iss = () => "https://evil.example";
    await refused(kit, `must be from the issuer ${kit.authorization.issuer}, but the response names https://evil.example`);
  });

  test("a missing iss is refused where the server announces one", async () => {
    const kit = await oauthKit();
    kit.authorization.iss = () => undefined;
    await refused(kit, "but the response names none");
  });

  test("an error is not believed when it comes from another issuer", async () => {
    const kit = await oauthKit();
    kit.authorization.iss = () => "https://evil.example";
    kit.authorization.decline = "access_denied";
    await expect(call(kit.open(), kit.server.url)).rejects.not.toThrow("access_denied");
  });

  const changes: readonly (readonly [what: string, change: (url: URL) => unknown, why: string])[] = [
    ["another state", ({ searchParams }) => searchParams.set("state", "x".repeat(43)), "its state differs"],
    ["two states", ({ searchParams }) => searchParams.append("state", "x"), "its state differs"],
    ["another host", (url) => Object.assign(url, { host: "evil.example" }), "not a URL that begins with"],
    ["another path", (url) => Object.assign(url, { pathname: "/other" }), "not a URL that begins with"],
    ["neither a code nor an error", ({ searchParams }) => searchParams.delete("code"), "neither a code nor an error"],
  ];
  test.for(changes)("an answer with %s is refused", async ([, change, why]) => {
    const kit = await oauthKit();
    const authorize = async ({ url }: { url: string }) => {
      const back = new URL(await visit(url));
      change(back);
      return { callbackUrl: back.href };
    };
    await expect(call(kit.open({ authorize }), kit.server.url)).rejects.toThrow(why);
    expect(kit.authorization.count("/token")).toBe(0);
  });

  test.for([[undefined], [{}], [{ callbackUrl: 7 }], [{ callbackUrl: "nonsense" }]])(
    "an answer of the wrong kind is refused: %j",
    async ([answer]) => {
      const kit = await oauthKit();
      const authorize = async () => answer as { callbackUrl: string };
      await expect(call(kit.open({ authorize }), kit.server.url)).rejects.toThrow("not a URL that begins with");
    },
  );

  test("a visit to the listener with another state does not end the wait", async () => {
    const kit = await oauthKit();
    const authorize = async ({ url, redirectUrl }: { url: string; redirectUrl: string }) => {
      const stray = await fetch(`${redirectUrl}?code=stolen&state=guess`);
      expect(stray.status).toBe(400);
      return { callbackUrl: await visit(url) };
    };
    expect(await call(kit.open({ authorize }), kit.server.url)).toBe("did read");
  });
});

describe("metadata that lie", () => {
  test("metadata for another resource are refused", async () => {
    const kit = await oauthKit();
    kit.server.resource = "https://bank.example/mcp";
    await refused(kit, "its metadata describes https://bank.example/mcp");
    expect(kit.authorization.count("/register")).toBe(0);
  });

  test("metadata of another issuer are refused", async () => {
    const kit = await oauthKit();
    kit.authorization.metadata = { issuer: "https://other.example" };
    await refused(kit, "https://other.example");
  });

  test("the user is not sent to an address that is not a web page", async () => {
    const kit = await oauthKit();
    kit.authorization.metadata = { authorization_endpoint: "http://192.168.1.1/authorize" };
    await refused(kit, "the sign-in page http://192.168.1.1 is not opened");
    expect(kit.visits).toEqual([]);
  });

  test("a token endpoint without https gets neither code nor secret", async () => {
    const kit = await oauthKit();
    kit.authorization.metadata = { token_endpoint: "http://tokens.example/token" };
    await refused(kit, "tokens.example");
  });

  test("without automatic registration the message names the alternative", async () => {
    const kit = await oauthKit();
    kit.authorization.metadata = { registration_endpoint: `${kit.authorization.issuer}/nowhere` };
    await refused(kit, "register a client there and configure oauth.clientId");
  });

  test("texts of a stranger come without control characters and in one line", async () => {
    const kit = await oauthKit();
    kit.authorization.decline = `bad\u001b[2J\n${"x".repeat(1000)}`;
    const error: Error = await call(kit.open(), kit.server.url).then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    expect(error.message).not.toMatch(/[\0-\x1f]/);
    expect(error.message.length).toBeLessThan(500);
  });
});

describe("where requests may go", () => {
  const remote = new URL("https://mcp.example/mcp");
  test.for([
    ["https://auth.example/token", true],
    ["https://mcp.example/.well-known/x", true],
    ["http://auth.example/token", false],
    ["http://127.0.0.1:8080/", false],
    ["https://localhost/", false],
    ["https://a.localhost/", false],
    ["https://[::1]/", false],
    ["https://[::ffff:127.0.0.1]/", false],
    ["https://0.0.0.0/", false],
    ["https://10.1.2.3/", false],
    ["https://192.168.0.1/", false],
    ["https://169.254.169.254/latest", false],
    ["https://[fd00::1]/", false],
    ["https://[fe80::1]/", false],
    ["https://8.8.8.8/", true],
    ["file:///etc/passwd", false],
    ["javascript:alert(1)", false],
  ] as const)("a server in the world may name %s: %s", ([url, isAllowed]) => {
    expect(mayContact(new URL(url), remote)).toBe(isAllowed);
  });

  test("a server on this machine may name this machine, and one in a private network that network", () => {
    expect(mayContact(new URL("http://127.0.0.1:9/x"), new URL("http://localhost:8/mcp"))).toBe(true);
    expect(mayContact(new URL("https://10.0.0.2/x"), new URL("https://10.0.0.1/mcp"))).toBe(true);
    expect(mayContact(new URL("http://10.0.0.2/x"), new URL("http://10.0.0.1/mcp"))).toBe(false);
    expect(mayContact(new URL("http://127.0.0.1/x"), new URL("http://10.0.0.1/mcp"))).toBe(false);
  });

  test("the headers that are configured for the server go to no other origin", async () => {
    await using other = await FakeAuthorizationServer.start();
    const kit = await oauthKit();
    const serverUrl = new URL(kit.server.url);
    const fetch = createAuthFetch({ serverUrl, headers: { "x-key": "secret" }, signal: new AbortController().signal });
    await fetch(`${other.issuer}/x`);
    await fetch(kit.server.url);
    expect(other.requests[0]!.headers["x-key"]).toBeUndefined();
    expect(kit.server.requests[0]!.headers["x-key"]).toBe("secret");
  });
});
