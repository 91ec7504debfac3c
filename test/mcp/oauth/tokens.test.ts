import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { FakeAuthorizationServer } from "../../doubles/oauth-server.ts";
import { call, oauthKit } from "./oauth-kit.ts";

describe("stored tokens", () => {
  test("another process uses them without asking anybody anything", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const before = kit.authorization.requests.length;
    expect(await call(kit.open({ authorize: undefined }), kit.server.url)).toBe("did read");
    expect(kit.authorization.requests).toHaveLength(before);
  });

  test("another name, another address or another client id has no use of them", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const others = [{ serverName: "other" }, { serverUrl: `${kit.server.url}?x` }, { spec: { clientId: "other" } }];
    for (const options of others) {
      expect(await kit.open({ ...options, authorize: undefined }).provider.token()).toBeUndefined();
    }
  });

  test("what another process signed in for is found at the next refusal", async () => {
    const kit = await oauthKit();
    const waiting = kit.open({ authorize: undefined });
    await expect(call(waiting, kit.server.url)).rejects.toThrow("skillhost login fake");
    await kit.open().signIn();
    expect(await call(waiting, kit.server.url)).toBe("did read");
  });

  test.for([
    ["no JSON", () => "{ half"],
    ["an array", () => "[]"],
    ["another version", (text: string) => text.replace('"version": 1', '"version": 2')],
    ["another server's", (text: string) => text.replace('"name": "fake"', '"name": "evil"')],
    ["another issuer's", (text: string) => text.replace(/"issuer": "[^"]+"/, '"issuer": "https://evil.example"')],
    ["a token with a line break", (text: string) => text.replace(/"accessToken": "/, '"accessToken": "x\\r\\ny: ')],
    ["tokens under __proto__", (text: string) => text.replace('"grant"', '"__proto__"')],
    ["numbers for texts", (text: string) => text.replace(/"accessToken": "[^"]+"/, '"accessToken": 7')],
    ["too large", () => " ".repeat(2 * 1024 * 1024)],
  ] as const)("a file that holds %s counts as none, and the next sign-in replaces it", async ([, change]) => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const file = join(kit.directory, kit.files()[0]!);
    writeFileSync(file, change(readFileSync(file, "utf8")));
    expect(await kit.open().provider.token()).toBeUndefined();
    expect(await call(kit.open(), kit.server.url)).toBe("did read");
    expect(await call(kit.open({ authorize: undefined }), kit.server.url)).toBe("did read");
    expect(kit.visits).toHaveLength(2);
  });

  test.skipIf(process.platform === "win32")("a file and a folder that others can read are closed when they are written to", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const file = join(kit.directory, kit.files()[0]!);
    chmodSync(file, 0o644);
    chmodSync(kit.directory, 0o755);
    await kit.open().signIn();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(kit.directory).mode & 0o777).toBe(0o700);
  });

  test("signing out takes them back and forgets them", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    const token = await oauth.provider.token();
    await oauth.signOut();
    expect(kit.authorization.count("/revoke")).toBe(1);
    expect(kit.authorization.check(token!)).toBeUndefined();
    expect(kit.files()).toEqual([]);
    expect(await oauth.provider.token()).toBeUndefined();
  });
});

describe("renewing", () => {
  test("a refused token is renewed without a person, and the new one is stored", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    kit.authorization.endAccessTokens();
    expect(await call(oauth, kit.server.url)).toBe("did read");
    kit.authorization.endAccessTokens();
    expect(await call(kit.open({ authorize: undefined }), kit.server.url)).toBe("did read");
    expect(kit.visits).toHaveLength(1);
    expect(kit.authorization.count("/register")).toBe(1);
  });

  test("many requests that are refused at once renew once", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    kit.authorization.endAccessTokens();
    await Promise.all([call(oauth, kit.server.url, "read", 5), call(oauth, kit.server.url, "read", 5)]);
    expect(kit.authorization.count("/token")).toBe(2);
  });

  test("a token that is about to end is renewed before it is sent", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    const first = await oauth.provider.token();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3590 * 1000 });
    try {
      expect(await oauth.provider.token()).not.toBe(first);
      expect(kit.authorization.count("/token")).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });

  test("a token that cannot be renewed yet is sent as long as it lasts", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    const first = await oauth.provider.token();
    kit.authorization.refusal = { status: 503, body: "" };
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3590 * 1000 });
    try {
      expect(await oauth.provider.token()).toBe(first);
      expect(await oauth.provider.token()).toBe(first);
      expect(kit.authorization.count("/token")).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });

  test("a refresh token that is refused is dropped, and a person must sign in", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    kit.authorization.endAccessTokens();
    kit.authorization.refusal = { status: 400, body: '{"error":"invalid_grant","error_description":"revoked"}' };
    const oauth = kit.open({ authorize: undefined });
    await expect(call(oauth, kit.server.url)).rejects.toThrow(
      'the tokens cannot be renewed: the authorization server answered "invalid_grant" (revoked). Run "skillhost login fake".',
    );
    expect(oauth.state).toBe("needs-auth");
    expect(kit.stored()["grant"]).toBeUndefined();
    expect(kit.stored()["registration"]).toBeDefined();
    kit.authorization.refusal = undefined;
    expect(await call(kit.open(), kit.server.url)).toBe("did read");
    expect(kit.authorization.count("/register")).toBe(1);
  });

  test("tokens survive failures of the authorization server", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    kit.authorization.endAccessTokens();
    kit.authorization.refusal = { status: 500, body: "<html>oops" };
    await expect(call(kit.open(), kit.server.url)).rejects.toThrow("The stored tokens stay valid for the next try. Try again later.");
    expect(kit.visits).toHaveLength(1);
    kit.authorization.refusal = undefined;
    expect(await call(kit.open({ authorize: undefined }), kit.server.url)).toBe("did read");
  });

  test("a server that refuses every token leads to one sign-in, not to one after another", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    kit.server.refusesAll = true;
    for (const _ of [1, 2, 3, 4]) await expect(call(oauth, kit.server.url)).rejects.toThrow();
    expect(kit.visits).toHaveLength(2);
    await expect(call(oauth, kit.server.url)).rejects.toThrow("it rejects tokens that its own authorization server has just issued");
  });

  test("one that was signed out of elsewhere is not renewed", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    await kit.open().signOut();
    await expect(call(kit.open({ authorize: undefined }), kit.server.url)).rejects.toThrow("it requires sign-in");
    expect(await call(oauth, kit.server.url)).toBe("did read");
    expect(kit.visits).toHaveLength(2);
  });
});

describe("more scope", () => {
  test("a request that wants more has the person agree to that, and is made again", async () => {
    const kit = await oauthKit();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    expect(await call(oauth, kit.server.url, "write")).toBe("did write");
    expect(new URL(kit.visits[1]!).searchParams.get("scope")?.split(" ").toSorted()).toEqual(["offline_access", "read", "write"]);
    expect(await call(oauth, kit.server.url)).toBe("did read");
    expect(kit.visits).toHaveLength(2);
  });

  test("who does not get it is not asked over and over", async () => {
    const kit = await oauthKit();
    kit.authorization.grants = (scope) => scope.replace("write", "").trim();
    const oauth = kit.open();
    await expect(call(oauth, kit.server.url, "write")).rejects.toMatchObject({ code: "MCP_UNAUTHORIZED" });
    await expect(call(oauth, kit.server.url, "write")).rejects.toThrow('it repeatedly asks for the scope "write"');
    expect(kit.visits).toHaveLength(2);
    expect(await call(oauth, kit.server.url)).toBe("did read");
  });

  test("without anybody to ask, the request fails and says what was wanted", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const oauth = kit.open({ authorize: undefined });
    await expect(call(oauth, kit.server.url, "write")).rejects.toThrow('it asks for the scope "write". Run "skillhost login fake".');
    expect(await call(oauth, kit.server.url)).toBe("did read");
  });

  test("a cancelled request does not wait for the person", async () => {
    const kit = await oauthKit();
    await call(kit.open(), kit.server.url);
    const cancel = new AbortController();
    const oauth = kit.open({
      authorize: () => {
        cancel.abort(new Error("cancelled"));
        return new Promise(() => {});
      },
    });
    const token = await oauth.provider.token();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "write" } });
    const init = { method: "POST", body, headers: { authorization: `Bearer ${token}` }, signal: cancel.signal };
    await expect(oauth.wrapFetch(fetch)(kit.server.url, init)).rejects.toThrow("cancelled");
  });
});

describe("a server that changes its authorization server", () => {
  test("registers and signs in there, and what the old one issued never goes to the new", async () => {
    const kit = await oauthKit();
    await using second = await FakeAuthorizationServer.start();
    const oauth = kit.open();
    await call(oauth, kit.server.url);
    const old = kit.stored() as { registration: { client_id: string }; grant: { refreshToken: string } };
    kit.server.authorization = second;
    expect(await call(oauth, kit.server.url)).toBe("did read");
    expect(second.count("/register")).toBe(1);
    expect(JSON.stringify(second.requests)).not.toContain(old.registration.client_id);
    expect(JSON.stringify(second.requests)).not.toContain(old.grant.refreshToken);
    expect(kit.files()).toHaveLength(2);
    expect(await call(kit.open({ authorize: undefined }), kit.server.url)).toBe("did read");
  });

  test("does not get a configured secret by that", async () => {
    const kit = await oauthKit();
    await using second = await FakeAuthorizationServer.start();
    const spec = { clientId: "robot", clientSecret: "its-secret", callbackPort: 0 };
    const trusting = kit.open({ spec: { ...spec, issuer: kit.authorization.issuer } });
    kit.server.authorization = second;
    await expect(call(trusting, kit.server.url)).rejects.toThrow(`oauth.issuer allows only ${kit.authorization.issuer}`);
    expect(JSON.stringify(second.requests)).not.toContain("its-secret");
    expect(kit.visits).toEqual([]);
  });

  test("does not get it where no issuer is configured either, once it was used", async () => {
    const kit = await oauthKit();
    await using second = await FakeAuthorizationServer.start();
    const { openLoopbackCallback } = await import("../../../src/io/net/loopback-callback.ts");
    const callback = await openLoopbackCallback({ path: "/callback", thanks: "", hostname: "localhost" });
    await callback[Symbol.asyncDispose]();
    kit.authorization.addClient("mine", "its-secret", [callback.url]);
    const oauth = kit.open({ spec: { clientId: "mine", clientSecret: "its-secret", callbackPort: Number(new URL(callback.url).port) } });
    await call(oauth, kit.server.url);
    kit.server.authorization = second;
    await expect(call(oauth, kit.server.url)).rejects.toThrow("If the change is right, set oauth.issuer.");
    expect(JSON.stringify(second.requests)).not.toContain("its-secret");
  });
});
