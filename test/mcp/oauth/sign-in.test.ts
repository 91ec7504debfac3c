import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { visit } from "../../doubles/oauth-server.ts";
import { call, oauthKit } from "./oauth-kit.ts";

describe("signing in for the first time", () => {
  test("a refused request has a person sign in and then goes through", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    expect(oauth.state).toBe("unknown");
    expect(await call(oauth, kit.server.url)).toBe("did read");
    expect(kit.visits).toHaveLength(1);
    expect(oauth.state).toBe("signed-in");
  });

  test("the address that the person is sent to has PKCE by S256, the resource, a state and offline access", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const params = new URL(kit.visits[0]!).searchParams;
    expect(params.get("code_challenge_method")).toBe("S256");
    expect(params.get("code_challenge")).toMatch(/^[\w-]{43}$/);
    expect(params.get("resource")).toBe(kit.server.url);
    expect(params.get("state")).toMatch(/^[\w-]{43}$/);
    expect(params.get("scope")).toBe("read offline_access");
    expect(params.get("redirect_uri")).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  });

  test("a browser on this machine is answered by the listener, and the question is taken back", async () => {
    const kit = await oauthKit();
    let withdrawn: Promise<void> | undefined;
    const oauth = kit.open({
      authorize: async ({ url }, signal) => {
        withdrawn = new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
        const page = await fetch(await visit(url));
        expect(await page.text()).toContain("You can close this window");
        return new Promise(() => {});
      },
    });
    expect(await call(oauth, kit.server.url)).toBe("did read");
    await withdrawn;
  });

  test("requests that are refused at the same time share one sign-in", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    const texts = await Promise.all([1, 2, 3].map(() => call(oauth, kit.server.url)));
    expect(texts).toEqual(["did read", "did read", "did read"]);
    expect(kit.visits).toHaveLength(1);
    expect(kit.authorization.count("/register")).toBe(1);
  });

  test("while a person is waited for, listeners know it", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    const heard: boolean[] = [];
    oauth.onWaiting((isWaiting) => heard.push(isWaiting));
    await call(oauth, kit.server.url);
    expect(heard).toEqual([true, false]);
  });

  test.skipIf(process.platform === "win32")("credentials lie in a private folder, in a file that only the user can read", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    expect(kit.files()).toHaveLength(1);
    expect(statSync(kit.directory).mode & 0o777).toBe(0o700);
    expect(statSync(join(kit.directory, kit.files()[0]!)).mode & 0o777).toBe(0o600);
  });

  test("no token, code, verifier or secret reaches the log", async () => {
    const kit = await oauthKit();
    kit.authorization.metadata = { token_endpoint_auth_methods_supported: ["client_secret_basic"] };
    await call(kit.open(), kit.server.url);
    kit.authorization.endAccessTokens();
    kit.authorization.refusal = { status: 500, body: "refresh-1234567890abcdef is broken" };
    await expect(call(kit.open(), kit.server.url)).rejects.toThrow("Not signed in");
    const { grant, registration } = kit.stored() as { grant: Record<string, string>; registration: Record<string, string> };
    const text = kit.log.join("\n");
    for (const secret of [grant["accessToken"]!, grant["refreshToken"]!, registration["client_secret"]!, "refresh-1234567890abcdef"]) {
      expect(secret.length).toBeGreaterThan(10);
      expect(text).not.toContain(secret);
    }
  });
});

describe("who the client is", () => {
  test("it registers itself once, and not again for another sign-in", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    await kit.open().signIn();
    expect(kit.visits).toHaveLength(2);
    expect(kit.authorization.count("/register")).toBe(1);
    const [first, second] = kit.visits.map((url) => new URL(url).searchParams);
    expect(second!.get("client_id")).toBe(first!.get("client_id"));
    expect(second!.get("redirect_uri")).toBe(first!.get("redirect_uri"));
  });

  test("it registers as a public client where it can, and with a secret where it must", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const registration = kit.authorization.requests.find(({ path }) => path === "/register")!;
    expect(registration.params["token_endpoint_auth_method"]).toBe("none");
    for (const method of ["client_secret_basic", "client_secret_post"]) {
      const other = await oauthKit();
      other.authorization.metadata = { token_endpoint_auth_methods_supported: [method] };
      expect(await call(other.open(), other.server.url)).toBe("did read");
      const exchange = other.authorization.requests.find(({ path }) => path === "/token")!;
      expect("authorization" in exchange.headers).toBe(method === "client_secret_basic");
      expect("client_secret" in exchange.params).toBe(method === "client_secret_post");
    }
  });

  test("an authorization server that forgot it is registered with again, once", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    kit.authorization.forgetClients();
    await kit.open().signIn();
    expect(kit.authorization.count("/register")).toBe(2);
    expect(await call(kit.open(), kit.server.url)).toBe("did read");
  });

  test("a configured client id is used as it is, with its secret, which is not stored", async () => {
    const kit = await oauthKit();
    const callbackPort = await freePort();
    kit.authorization.addClient("mine", "my-own-secret", [`http://localhost:${callbackPort}/callback`]);
    const spec = { clientId: "mine", clientSecret: "my-own-secret", callbackPort };
    expect(await call(kit.open({ spec }), kit.server.url)).toBe("did read");
    expect(kit.authorization.count("/register")).toBe(0);
    expect(JSON.stringify(kit.stored())).not.toContain("my-own-secret");
  });

  test("where client id metadata documents are taken, the document's address is the id", async () => {
    const kit = await oauthKit();
    kit.authorization.metadata = { client_id_metadata_document_supported: true };
    const spec = { clientMetadataUrl: "https://example.com/client.json" };
    expect(await call(kit.open({ spec }), kit.server.url)).toBe("did read");
    expect(new URL(kit.visits[0]!).searchParams.get("client_id")).toBe("https://example.com/client.json");
    expect(kit.authorization.count("/register")).toBe(0);
  });

  test("a configured resource is what tokens are asked for", async () => {
    const kit = await oauthKit();
    kit.server.resource = "https://api.example/";
    const spec = { resource: "https://api.example" };
    const oauth = kit.open({ spec });
    expect(await call(oauth, kit.server.url)).toBe("did read");
    kit.authorization.endAccessTokens();
    expect(await call(oauth, kit.server.url)).toBe("did read");
    const requests = kit.authorization.requests.filter(({ path }) => path === "/authorize" || path === "/token");
    expect(requests.map(({ params }) => params["resource"])).toEqual([
      "https://api.example/",
      "https://api.example/",
      "https://api.example/",
    ]);
  });

  test("client_credentials: it signs in as itself, and no user is asked", async () => {
    const kit = await oauthKit();
    kit.authorization.addClient("robot", "its-secret", []);
    const spec = { clientId: "robot", clientSecret: "its-secret", grantType: "client_credentials", scopes: ["read"] } as const;
    const oauth = kit.open({ spec });
    expect(await call(oauth, kit.server.url)).toBe("did read");
    expect(await call(oauth, kit.server.url, "write")).toBe("did write");
    expect(kit.visits).toEqual([]);
    const wrong = kit.open({ spec: { ...spec, clientSecret: "another" } });
    await expect(call(wrong, kit.server.url)).rejects.toMatchObject({
      code: "MCP_UNAUTHORIZED",
      message: expect.stringContaining("Check oauth.clientId and oauth.clientSecret."),
    });
  });
});

describe("no user signs in", () => {
  test("without anybody to ask, the request fails at once, with what to do, and nothing is registered", async () => {
    const kit = await oauthKit();
    const oauth = kit.open({ authorize: undefined });
    await expect(call(oauth, kit.server.url)).rejects.toMatchObject({
      code: "MCP_UNAUTHORIZED",
      message: 'Not signed in to MCP server "fake": it requires sign-in. Run "skillhost login fake".',
    });
    expect(oauth.state).toBe("needs-auth");
    expect(kit.authorization.requests).toEqual([]);
  });

  test("who declined is not asked again by further requests, but by signIn", async () => {
    const kit = await oauthKit();
    kit.authorization.decline = "access_denied";
    const oauth = kit.open();
    await expect(call(oauth, kit.server.url)).rejects.toThrow('the authorization server answered "access_denied"');
    await expect(call(oauth, kit.server.url)).rejects.toThrow("access_denied");
    expect(kit.visits).toHaveLength(1);
    kit.authorization.decline = undefined;
    await oauth.signIn();
    expect(await call(oauth, kit.server.url)).toBe("did read");
  });

  test("a sign-in that takes too long ends, and so does its listener", async () => {
    const kit = await oauthKit();
    let redirect = "";
    const oauth = kit.open({
      signInTimeout: 1_500,
      authorize: async ({ redirectUrl }) => {
        redirect = redirectUrl;
        return new Promise(() => {});
      },
    });
    await expect(call(oauth, kit.server.url)).rejects.toThrow("no user signed in within 1.5 seconds");
    await expect(fetch(redirect)).rejects.toThrow("fetch failed");
  });

  test("disposing gives up a sign-in that is waited for", async () => {
    const kit = await oauthKit();
    const oauth = kit.open({
      authorize: async () => {
        oauth[Symbol.dispose]();
        return new Promise(() => {});
      },
    });
    await expect(call(oauth, kit.server.url)).rejects.toMatchObject({ code: "MCP_UNAUTHORIZED" });
  });
});

async function freePort(): Promise<number> {
  const { openLoopbackCallback } = await import("../../../src/io/net/loopback-callback.ts");
  await using callback = await openLoopbackCallback({ path: "/", thanks: "" });
  return Number(new URL(callback.url).port);
}
