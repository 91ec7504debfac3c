import { once } from "node:events";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createFileCredentials } from "../../../src/mcp/oauth/file-credentials.ts";
import { ServerOAuth } from "../../../src/mcp/oauth/server-oauth.ts";

// A process that waits for a word on its stdin, and then uses a server with the tokens that are stored in a folder.
const [, , serverUrl = "", directory = ""] = process.argv;
const oauth = new ServerOAuth({ serverName: "fake", serverUrl, store: createFileCredentials({ directory }) });
await oauth.provider.token();
process.stdout.write("ready\n");
await once(process.stdin, "data");
const client = new Client({ name: "test", version: "1.0.0" });
const settings = { authProvider: oauth.provider, fetch: oauth.wrapFetch(fetch) };
await client.connect(new StreamableHTTPClientTransport(new URL(serverUrl), settings));
const { content } = await client.callTool({ name: "read", arguments: {} });
process.stdout.write(JSON.stringify(content));
process.exit();
