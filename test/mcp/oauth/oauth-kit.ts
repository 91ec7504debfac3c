import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { onTestFinished } from "vitest";
import { createLogger } from "../../../src/base/logger.ts";
import type { ServerAuth } from "../../../src/mcp/oauth/credentials.ts";
import { createFileCredentials } from "../../../src/mcp/oauth/file-credentials.ts";
import { type OAuthOptions, ServerOAuth } from "../../../src/mcp/oauth/server-oauth.ts";
import type { Authorize } from "../../../src/mcp/oauth/sign-in.ts";
import { FakeAuthorizationServer, FakeProtectedServer, visit } from "../../doubles/oauth-server.ts";

/** Both servers and a folder for credentials, which end with the test. */
export interface OAuthKit {
  readonly authorization: FakeAuthorizationServer;
  readonly server: FakeProtectedServer;
  readonly directory: string;
  /** How often a user signed in. */
  readonly visits: string[];
  /** All that was logged. */
  readonly log: string[];
  /** As in a new process, with a user who signs in. */
  open(options?: Partial<OAuthOptions>): ServerOAuth;
  /** What lies in the folder. */
  files(): string[];
  stored(): Record<string, unknown>;
}

export async function oauthKit(): Promise<OAuthKit> {
  const authorization = await FakeAuthorizationServer.start();
  const server = await FakeProtectedServer.start(authorization);
  const directory = mkdtempSync(join(tmpdir(), "skillhost-oauth-"));
  const visits: string[] = [];
  const log: string[] = [];
  onTestFinished(async () => {
    rmSync(directory, { recursive: true, force: true });
    await Promise.all([authorization[Symbol.asyncDispose](), server[Symbol.asyncDispose]()]);
  });
  const authorize: Authorize = async ({ url }) => {
    visits.push(url);
    return { callbackUrl: await visit(url) };
  };
  const files = (): string[] => readdirSync(join(directory, "oauth"));
  return {
    authorization,
    server,
    directory: join(directory, "oauth"),
    visits,
    log,
    open(options = {}) {
      const logger = createLogger({ level: "debug", write: (line) => void log.push(line) });
      const store = createFileCredentials({ directory: join(directory, "oauth"), log: logger });
      const oauth = new ServerOAuth({ serverName: "fake", serverUrl: server.url, store, authorize, log: logger, ...options });
      onTestFinished(() => oauth[Symbol.dispose]());
      return oauth;
    },
    files,
    stored() {
      const [name] = files().filter((file) => file.endsWith(".json"));
      return JSON.parse(readFileSync(join(directory, "oauth", name!), "utf8"));
    },
  };
}

/** Connects to the server and calls a tool; the text of its result. */
export async function call(oauth: ServerAuth, url: string, tool = "read", times = 1): Promise<string> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    authProvider: oauth.provider,
    fetch: oauth.wrapFetch(fetch),
  });
  await client.connect(transport);
  try {
    const results = await Promise.all(Array.from({ length: times }, () => client.callTool({ name: tool, arguments: {} })));
    return (results[0]!.content as { text: string }[])[0]!.text;
  } finally {
    await client.close();
  }
}
