import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { CredentialStore, Credentials, Grant } from "../../../src/mcp/oauth/credentials.ts";
import { createFileCredentials, createMemoryCredentials } from "../../../src/mcp/oauth/file-credentials.ts";

const server = { name: "notes", url: "https://mcp.example/mcp" };
const never = new AbortController().signal;

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), "skillhost-credentials-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function credentials(issuer: string, obtainedAt = 1): Credentials {
  const client = { issuer, client_id: `client of ${issuer}`, redirect_uris: ["http://127.0.0.1:1/callback"] };
  const grant: Grant = {
    client,
    accessToken: "access",
    refreshToken: "refresh",
    scope: "a b",
    expiresAt: 5,
    obtainedAt,
    resourceMetadataUrl: undefined,
  };
  return { issuer, registration: client, grant };
}

function save(store: CredentialStore, kept: Credentials, of = server): Promise<void> {
  return store.exclusively(of, kept.issuer, never, (entry) => entry.save(kept));
}

const stores: readonly (readonly [string, () => CredentialStore])[] = [
  ["in files", () => createFileCredentials({ directory: temporary() })],
  ["in memory", () => createMemoryCredentials()],
];

describe.for(stores)("credentials %s", ([, open]) => {
  test("are given back as they were kept", async () => {
    const store = open();
    expect(await store.list(server)).toEqual([]);
    await save(store, credentials("https://a.example"));
    expect(await store.list(server)).toEqual([credentials("https://a.example")]);
  });

  test("are kept by server and by issuer, the latest grant first", async () => {
    const store = open();
    await save(store, credentials("https://a.example", 1));
    await save(store, credentials("https://b.example", 3));
    await save(store, credentials("https://c.example", 2));
    await save(store, credentials("https://a.example", 9), { ...server, name: "other" });
    await save(store, credentials("https://a.example", 9), { ...server, url: "https://mcp.example/other" });
    const issuers = (await store.list(server)).map(({ issuer }) => issuer);
    expect(issuers).toEqual(["https://b.example", "https://c.example", "https://a.example"]);
  });

  test("are forgotten by themselves alone", async () => {
    const store = open();
    await save(store, credentials("https://a.example"));
    await save(store, credentials("https://b.example"));
    await store.exclusively(server, "https://a.example", never, (entry) => entry.save(undefined));
    expect((await store.list(server)).map(({ issuer }) => issuer)).toEqual(["https://b.example"]);
  });

  test("are changed by one after the other, each of whom sees what the last one left", async () => {
    const store = open();
    const issuer = "https://a.example";
    await save(store, credentials(issuer, 0));
    const add = (): Promise<void> =>
      store.exclusively(server, issuer, never, async ({ current, save: keep }) => {
        await new Promise((resolve) => setImmediate(resolve));
        await keep({ ...current!, grant: { ...current!.grant!, obtainedAt: current!.grant!.obtainedAt + 1 } });
      });
    await Promise.all([add(), add(), add(), add()]);
    expect((await store.list(server))[0]!.grant!.obtainedAt).toBe(4);
  });

  test("are not held up by a change that failed", async () => {
    const store = open();
    const fails = store.exclusively(server, "https://a.example", never, () => Promise.reject(new Error("no")));
    await expect(fails).rejects.toThrow("no");
    await save(store, credentials("https://a.example"));
    expect(await store.list(server)).toHaveLength(1);
  });

  test("are not waited for once the signal fires", async () => {
    const store = open();
    const stop = new AbortController();
    const order: string[] = [];
    const take = (who: string, signal: AbortSignal): Promise<void> =>
      store.exclusively(server, "https://a.example", signal, async () => void order.push(who));
    let third: Promise<void> | undefined;
    await store.exclusively(server, "https://a.example", never, async () => {
      const second = take("second", stop.signal);
      third = take("third", never);
      stop.abort(new Error("enough"));
      await expect(second).rejects.toThrow("enough");
      order.push("first");
    });
    await third;
    expect(order).toEqual(["first", "third"]);
  });
});

test("an unusable folder is reported, without the credentials in the message", async () => {
  const file = join(temporary(), "file");
  writeFileSync(file, "");
  const store = createFileCredentials({ directory: file });
  const saving = save(store, credentials("https://a.example"));
  await expect(saving).rejects.toMatchObject({ code: "OAUTH_STORE", message: expect.stringContaining(file) });
  await expect(saving).rejects.not.toThrow("refresh");
});
