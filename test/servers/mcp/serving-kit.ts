import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { type McpHttpOptions, type McpHttpServer, type Session, type SessionOptions, serveMcp } from "skillhost";
import { createTestHost, type TempSkill, type TestHost, tempSkill } from "skillhost/testing";
import type { LegacySessions } from "../../../src/servers/mcp/legacy-sessions.ts";
import { listen } from "../../mcp/http-doubles.ts";

export type Era = "legacy" | "modern";
export const eras: readonly Era[] = ["legacy", "modern"];

/** The front matter and body that make a folder a skill. */
export function skillDocument(name: string, description = "Helps tests."): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n\n# ${name}\n`;
}

/** A module with tools, prompts or resources; `body` is its default export. */
export function toolModule(body: string): string {
  return `import { definePrompt, defineResource, defineTool } from "skillhost";\nexport default ${body};\n`;
}

/** A host with one skill, served over HTTP on a port of its own. */
export interface ServedSkill extends AsyncDisposable {
  readonly skill: TempSkill;
  readonly test: TestHost;
  readonly face: McpHttpServer;
  /** A client of the SDK's second generation that speaks one era. */
  connect(era: Era, setUp?: (client: Client) => void, capabilities?: object): Promise<Client>;
}

export interface ServeOptions {
  readonly session?: SessionOptions;
  readonly http?: Partial<McpHttpOptions>;
  /** Serves this instead of the host. */
  readonly source?: (test: TestHost) => Promise<Session>;
}

export async function serveSkill(files: Readonly<Record<string, string | Uint8Array>>, options: ServeOptions = {}): Promise<ServedSkill> {
  const skill = tempSkill({ "SKILL.md": skillDocument("helper"), ...files }, { name: "helper" });
  const test = await createTestHost({ skillDirectories: [skill.root] });
  await test.host.idle();
  const source = (await options.source?.(test)) ?? test.host;
  const face = await serveMcp(source, { transport: "http", port: 0, session: options.session, ...options.http });
  if (face.token !== undefined) tokens.set(new URL(face.url).host, face.token);
  const clients: Client[] = [];
  return {
    skill,
    test,
    face,
    async connect(era, setUp = () => {}, capabilities = {}) {
      const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
      const client = new Client({ name: "test", version: "1.0.0" }, { capabilities, versionNegotiation: { mode } });
      setUp(client);
      await client.connect(new StreamableHTTPClientTransport(new URL(face.url), { requestInit: { headers: authorization(face.url) } }));
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => client.close()));
      await face[Symbol.asyncDispose]();
      await test.close();
      skill[Symbol.dispose]();
    },
  };
}

/** What each server that is up wants to be given, by its host and port. */
const tokens = new Map<string, string>();

/** The header that a server of `serveSkill` wants. */
export function authorization(url: string): Readonly<Record<string, string>> {
  const token = tokens.get(new URL(url).host);
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

/** The texts of a result, joined. */
export function textOf(result: Awaited<ReturnType<Client["callTool"] | OldClient["callTool"]>>): string {
  const { content } = result as { readonly content: readonly { readonly type: string; readonly text?: string }[] };
  return content.map(({ text = "" }) => text).join("\n");
}

/** A promise and what settles it. */
export function deferred<T = void>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Sends one message over HTTP as it is, with the token that the server wants unless `headers` has another, or "". */
export function post(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  signal: AbortSignal | null = null,
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    signal,
    headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...authorization(url), ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** Serves sessions on Node's HTTP server without a guard, and returns the URL. */
export async function serveSessions(sessions: LegacySessions): Promise<string> {
  const { url } = await listen((incoming, outgoing) => {
    const pieces: Buffer[] = [];
    incoming
      .on("data", (piece: Buffer) => pieces.push(piece))
      .on("end", () => {
        const text = Buffer.concat(pieces).toString("utf8");
        void sessions.handle({ incoming, outgoing, body: text === "" ? undefined : JSON.parse(text) });
      });
  });
  return url;
}

export const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1.0.0" } },
} as const;

/** A request of revision 2026-07-28, and the headers that it must have. */
export function modernRequest(
  method: string,
  params: Readonly<Record<string, unknown>>,
  capabilities: object = {},
): { readonly body: object; readonly headers: Readonly<Record<string, string>> } {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const name = params["name"] ?? params["uri"];
  const headers = {
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": method,
    ...(typeof name === "string" && { "Mcp-Name": name }),
  };
  return { body: { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }, headers };
}

/** An answer of JSON-RPC. */
export interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: tests look at it piece by piece.
  readonly result: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly error: any;
}

export async function answerOf(response: Response | Promise<Response>): Promise<Answer> {
  return (await (await response).json()) as Answer;
}
