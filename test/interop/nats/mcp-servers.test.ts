import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished, test } from "vitest";
import { buildPackage } from "../../built-package.ts";
import { put, tempFolder } from "../../skills/kit.ts";
import { skillFolder, startServer, startWorkerProcess } from "./fleet-kit.ts";
import { findNatsServer, type NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

const token = "a-token-that-all-servers-have";

const tools = `import { defineTool } from "skillhost";
export const who = defineTool("who", { description: "Names the process.", handler: () => String(process.pid) });
export const order = defineTool("order", {
  description: "Asks what to order.",
  handler: async (_args, _invocation, { ask }) => {
    const requestedSchema = { type: "object", properties: { dish: { type: "string" } }, required: ["dish"] };
    const { content } = await ask("elicitation", { message: "Which dish?", requestedSchema });
    return \`\${content?.dish} from \${process.pid}\`;
  },
});
export const compose = defineTool("compose", {
  description: "Has the client's model write.",
  handler: async (_args, _invocation, { ask }) => {
    const messages = [{ role: "user", content: { type: "text", text: "Write." } }];
    const { content } = await ask("sampling", { messages, maxTokens: 10 });
    return \`\${content.text} in \${process.pid}\`;
  },
});
export const wait = defineTool("wait", {
  description: "Waits until it is cancelled, or for ever.",
  handler: (_args, { signal }, { progress }) => {
    progress({ progress: 1 });
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve("cancelled")));
  },
});
`;

interface McpProcess {
  readonly pid: number;
  readonly url: string;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<unknown>;
}

/** `skillhost mcp --http`, as a program of its own, with the plugin. */
async function startMcp(
  { address }: Pick<NatsServer, "address">,
  files: Readonly<Record<string, string>> = { "tools/all.ts": tools },
): Promise<McpProcess> {
  const root = tempFolder();
  const skills = Object.keys(files).length === 0 ? join(root, "none") : skillFolder(files);
  put(
    join(root, "skillhost.json"),
    JSON.stringify({ plugins: [{ use: "skillhost/plugins/nats", config: { servers: address, mcp: true } }] }),
  );
  put(join(skills, ".keep"), "");
  const args = [buildPackage().bin, "mcp", "--http", "0", "--skills", skills, "--yes"];
  const env = { ...process.env, SKILLHOST_TRUST: "1", SKILLHOST_TOKEN: token };
  const child: ChildProcess = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"], env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const ended = new Promise((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`The server ended:\n${output}`);
    return /at http:\S+/.test(output);
  }, "the server to listen");
  const url = /at (http:\S+)/.exec(output)?.[1] as string;
  return { pid: child.pid as number, url, kill: (signal) => void child.kill(signal), ended };
}

interface Balancer {
  readonly url: URL;
  /** Which server got each request, by its place, with the method of HTTP and of the protocol. */
  readonly seen: { readonly at: number; readonly what: string }[];
  /** Where the next requests go. Undefined: to one after another. */
  to: number | undefined;
}

/** Passes requests to one server after another, as a proxy that knows nothing of sessions. */
async function startBalancer(servers: readonly McpProcess[]): Promise<Balancer> {
  const seen: { readonly at: number; readonly what: string }[] = [];
  let next = 0;
  const balancer: { to: number | undefined } = { to: undefined };
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      const body = Buffer.concat(pieces);
      const at = balancer.to ?? next++ % servers.length;
      const { method } = (body.length > 0 ? JSON.parse(body.toString("utf8")) : {}) as { readonly method?: string };
      seen.push({ at, what: `${incoming.method} ${method ?? ""}`.trim() });
      const target = new URL((servers[at] as McpProcess).url);
      const headers = { ...incoming.headers, host: target.host };
      const passed = request(target, { method: incoming.method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode as number, answer.headers);
        outgoing.flushHeaders();
        answer.pipe(outgoing);
        answer.once("close", () => answer.complete || outgoing.destroy());
      });
      passed.once("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
      outgoing.once("close", () => passed.destroy());
      passed.end(body);
    });
  };
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  return Object.assign(balancer, { url, seen });
}

type Era = "legacy" | "modern";

interface ConnectedClient {
  readonly client: Client;
  readonly changes: () => number;
  call(name: string): Promise<string>;
}

async function connect({ url }: Balancer, era: Era): Promise<ConnectedClient> {
  const versionNegotiation = { mode: era === "modern" ? { pin: "2026-07-28" } : "legacy" } as const;
  let count = 0;
  const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void count++ } };
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { capabilities: { elicitation: { form: {} }, sampling: {} }, versionNegotiation, listChanged },
  );
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { dish: "soup" } }));
  client.setRequestHandler("sampling/createMessage", () => ({ role: "assistant", model: "m", content: { type: "text", text: "words" } }));
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
  onTestFinished(() => client.close());
  const call = async (name: string): Promise<string> => {
    const { content } = (await client.callTool({ name, arguments: {} })) as { readonly content: readonly { readonly text: string }[] };
    return content.map(({ text }) => text).join("");
  };
  return { client, changes: () => count, call };
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server (MCP servers)", () => {
  test.each(["legacy", "modern"] as const)("clients of the %s era reach three servers behind a proxy as one", async (era) => {
    const server = await startServer();
    const servers = [await startMcp(server), await startMcp(server), await startMcp(server)];
    const balancer = await startBalancer(servers);
    const { client, call } = await connect(balancer, era);
    const pids = servers.map(({ pid }) => String(pid));
    const answers = new Set<string>();
    for (let one = 0; one < 6; one++) answers.add(await call("who"));
    // An earlier client has a session, which one server has; later ones have none.
    expect([...answers].every((pid) => pids.includes(pid))).toBe(true);
    expect(answers.size).toBe(era === "legacy" ? 1 : 3);
    expect(new Set(balancer.seen.filter(({ what }) => what === "POST tools/call").map(({ at }) => at)).size).toBe(3);
    // The answers of the client arrive at other servers than the calls that ask.
    for (let one = 0; one < 4; one++) {
      expect(await call("order")).toMatch(/^soup from \d+$/);
      expect(await call("compose")).toMatch(/^words in \d+$/);
    }
    const { tools: listed } = await client.listTools();
    expect(listed.map(({ name }) => name).sort()).toEqual(["compose", "order", "wait", "who"]);
  });

  test("a cancellation reaches the call at another server, and a session ends everywhere", async () => {
    const server = await startServer();
    const servers = [await startMcp(server), await startMcp(server)];
    const balancer = await startBalancer(servers);
    balancer.to = 0;
    const { client } = await connect(balancer, "legacy");
    balancer.to = 1;
    const running = new AbortController();
    const begun = new Promise<void>((resolve) => {
      const options = { signal: running.signal, onprogress: () => resolve() };
      client.callTool({ name: "wait", arguments: {} }, options).catch(() => {});
    });
    await begun;
    balancer.to = 1;
    running.abort();
    await until(() => balancer.seen.some(({ at, what }) => at === 1 && what === "POST notifications/cancelled"), "the cancellation");
    const transport = client.transport as StreamableHTTPClientTransport;
    const { sessionId } = transport;
    await transport.terminateSession();
    const headers = {
      Authorization: `Bearer ${token}`,
      "mcp-session-id": sessionId as string,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    for (const { url } of servers)
      await until(async () => (await fetch(url, { method: "POST", headers, body })).status === 404, "the end of the session");
  });

  test.each(["legacy", "modern"] as const)("clients of the %s era hear of a change wherever they are connected", async (era) => {
    const server = await startServer();
    // The tools are those of a worker, so all servers change.
    const root = skillFolder({
      "tools/one.ts": `import { defineTool } from "skillhost";\nexport default defineTool("one", { description: "One.", handler: () => "one" });\n`,
    });
    await startWorkerProcess(server, root);
    const servers = [await startMcp(server, {}), await startMcp(server, {})];
    const balancer = await startBalancer(servers);
    const connected = [await connect(balancer, era), await connect(balancer, era)];
    for (const { client } of connected) await until(async () => (await client.listTools()).tools.length === 1, "the tool of the worker");
    const before = connected.map(({ changes }) => changes());
    put(
      join(root, "far", "tools", "two.ts"),
      `import { defineTool } from "skillhost";\nexport default defineTool("two", { description: "Two.", handler: () => "two" });\n`,
    );
    for (const [index, { client, changes }] of connected.entries()) {
      await until(() => changes() > (before[index] as number), "the notification");
      await until(async () => (await client.listTools()).tools.length === 2, "the new tool");
    }
  });

  test.each(["SIGKILL", "SIGTERM"] as const)("a session is continued by another server when its own has ended by %s", async (signal) => {
    const server = await startServer();
    const servers = [await startMcp(server), await startMcp(server)];
    const balancer = await startBalancer(servers);
    balancer.to = 0;
    const { client, call, changes } = await connect(balancer, "legacy");
    await client.setLoggingLevel("error");
    const { sessionId } = client.transport as StreamableHTTPClientTransport;
    expect(await call("who")).toBe(String(servers[0]?.pid));
    balancer.to = 1;
    // A call that was running, passed on by the second server.
    let outcome: Promise<unknown> | undefined;
    await new Promise<void>((resolve) => {
      outcome = client.callTool({ name: "wait", arguments: {} }, { onprogress: () => resolve() }).catch(String);
    });
    servers[0]?.kill(signal);
    await servers[0]?.ended;
    expect(await outcome).toContain("outcome is unknown");
    expect(await call("who")).toBe(String(servers[1]?.pid));
    expect(await call("order")).toBe(`soup from ${servers[1]?.pid}`);
    expect((client.transport as StreamableHTTPClientTransport).sessionId).toBe(sessionId);
    // Its stream was at the first server; the client opens another, and hears of what it may have missed.
    await until(() => changes() > 0, "the notification");
  });

  test("a server that stands still loses its sessions to others, and passes their requests on when it runs again", async () => {
    const server = await startServer();
    const servers = [await startMcp(server), await startMcp(server)];
    const balancer = await startBalancer(servers);
    balancer.to = 0;
    const { call } = await connect(balancer, "legacy");
    expect(await call("who")).toBe(String(servers[0]?.pid));
    balancer.to = 1;
    servers[0]?.kill("SIGSTOP");
    expect(await call("who").catch(String)).toContain("outcome is unknown");
    expect(await call("who")).toBe(String(servers[1]?.pid));
    servers[0]?.kill("SIGCONT");
    balancer.to = 0;
    await until(async () => (await call("who").catch(String)) === String(servers[1]?.pid), "the first server to pass requests on");
  });

  test("without the servers of NATS each server serves the sessions that it has, and says so to others", async () => {
    const server = await startServer();
    const servers = [await startMcp(server), await startMcp(server)];
    const balancer = await startBalancer(servers);
    balancer.to = 0;
    const { call } = await connect(balancer, "legacy");
    const pid = await call("who");
    await server.kill();
    expect(await call("who")).toBe(pid);
    balancer.to = 1;
    await until(async () => /out of reach/.test(await call("who").catch(String)), "the refusal");
    expect(await (await connect(balancer, "legacy")).call("who")).toBe(String(servers[1]?.pid));
    await server.start();
    // By its server, or by this one if the record of the other has run out before the servers of NATS were back.
    const answering = [pid, String(servers[1]?.pid)];
    await until(async () => answering.includes(await call("who").catch(String)), "the session through the other server", 90);
  });
});
