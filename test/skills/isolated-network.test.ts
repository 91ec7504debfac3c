import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createSecureServer } from "node:http2";
import { type AddressInfo, createServer as createTcp } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { patience } from "../slowness.ts";
import { certificate, der, extension, makeKeyPair, sequence } from "../trust/provenance/der.ts";
import { hasSystemSandbox, libraryUrl, openIsolated } from "./isolation-kit.ts";
import { put, skillMd, tempFolder } from "./kit.ts";

const tools = `import { defineTool } from "skillhost";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import tls, { connect as connectSecurely } from "node:tls";
import { once } from "node:events";
import { text } from "node:stream/consumers";

const options = { skipPermission: true, parameters: { type: "object", properties: { url: { type: "string" }, port: { type: "number" } } } } as const;
const failure = (error: any) => "failed: " + (error?.cause?.message ?? error?.message);
export const fetches = defineTool("fetches", { ...options, handler: async ({ url }: any) => fetch(url).then((r) => r.text(), failure) });
export const posts = defineTool("posts", {
  ...options,
  handler: async ({ url }: any) => {
    const request = http.request(url, { method: "POST" });
    request.end("x".repeat(1_000_000));
    const [answer] = await once(request, "response");
    return text(answer);
  },
});
export const ends = defineTool("ends", {
  ...options,
  handler: async ({ port }: any) => {
    const socket = net.connect(port, "localhost");
    socket.end("question");
    return text(socket);
  },
});
const failing = (work: (args: any) => Promise<string>) => (args: any) => work(args).catch(failure);
export const gets = defineTool("gets", { ...options, handler: failing(async ({ url }) => {
  const [answer] = await once(https.get(url), "response");
  return text(answer);
}) });
export const sessions = defineTool("sessions", { ...options, handler: failing(async ({ url }) => {
  const session = http2.connect(url);
  const failed = once(session, "error").then(([error]) => { throw error; });
  const stream = session.request({ ":path": "/" });
  const answer = await Promise.race([text(stream), failed]);
  session.close();
  return answer;
}) });
export const secures = defineTool("secures", { ...options, handler: failing(async ({ port }) => {
  const names = [];
  for (const connect of [tls.connect, connectSecurely]) {
    const socket = connect({ port, host: "localhost", ALPNProtocols: ["http/1.1"] });
    await once(socket, "secureConnect");
    names.push(socket.authorized + " " + socket.getPeerCertificate().subject.CN + " " + socket.alpnProtocol);
    socket.destroy();
  }
  return names.join(", ");
}) });
export const refused = defineTool("refused", { ...options, handler: ({ port }: any) => once(net.connect({ port, host: "localhost" }), "connect").then(() => "connected", (error) => error.code) });
`;

async function openHost(hosts: readonly string[], more: object = {}) {
  const root = tempFolder({
    "s/SKILL.md": skillMd("s"),
    "s/skill.json": JSON.stringify({ name: "s", version: "1.0.0", description: "Connects.", permissions: { hosts, ...more } }),
    "s/tools/all.ts": tools,
  });
  const { host, text } = await openIsolated(root, { isolation: "process" });
  expect(host.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  return { call: text };
}

async function listening(server: Server | ReturnType<typeof createTcp>): Promise<number> {
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function startHttp(): Promise<number> {
  return listening(
    createServer((request, answer) => {
      const { port } = request.socket.address() as AddressInfo;
      if (request.url === "/away") answer.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end();
      else {
        let size = 0;
        request.on("data", (chunk: Buffer) => {
          size += chunk.length;
        });
        request.on("end", () => answer.end(`${request.method} of ${size} bytes to ${request.headers.host}`));
      }
    }),
  );
}

test.skipIf(!hasSystemSandbox)(
  "isolated code reaches the declared hosts by every client of Node.js, and no others",
  { timeout: patience(60_000) },
  async () => {
    const port = await startHttp();
    const { call } = await openHost(["localhost", "*.example.com"]);
    expect(await call("fetches", { url: `http://localhost:${port}/` })).toBe(`GET of 0 bytes to localhost:${port}`);
    expect(await call("posts", { url: `http://localhost:${port}/` })).toBe(`POST of 1000000 bytes to localhost:${port}`);
    const denied = 'failed: The skill does not declare the host "127.0.0.1", so its code cannot connect to it.';
    expect(await call("fetches", { url: `http://127.0.0.1:${port}/` })).toContain(denied);
    expect(await call("fetches", { url: `http://localhost:${port}/away` })).toContain(denied);
    expect(await call("fetches", { url: "https://example.com/" })).toContain('does not declare the host "example.com"');
    const half = await listening(
      createTcp({ allowHalfOpen: true }, (socket) => {
        let asked = "";
        socket.on("data", (chunk) => {
          asked += chunk;
        });
        socket.on("end", () => socket.end(`answer to ${asked}`));
      }),
    );
    expect(await call("ends", { port: half })).toBe("answer to question");
  },
);

/** A server of HTTP/2 and HTTPS for localhost, and the file of the certificate that those who trust it need. */
async function startSecure(): Promise<{ readonly port: number; readonly certificate: string }> {
  const key = makeKeyPair();
  const extensions = [
    extension("2.5.29.19", sequence(der(0x01, Buffer.from([255])))),
    extension("2.5.29.17", sequence(der(0x82, Buffer.from("localhost")))),
  ];
  const span = { from: new Date(Date.now() - 3_600_000), to: new Date(Date.now() + 3_600_000) };
  const bytes = certificate({ subject: "here", key, issuer: { name: "here", key }, ...span, extensions });
  const cert = `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64").replace(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`;
  const file = join(tempFolder(), "here.pem");
  put(file, cert);
  const options = { key: key.privateKey.export({ type: "pkcs8", format: "pem" }), cert, allowHTTP1: true };
  const server = createSecureServer(options, (request, answer) =>
    answer.end(`HTTP/${request.httpVersion} for ${request.headers[":authority"] ?? request.headers.host}`),
  );
  const sockets = new Set<{ destroy(): void }>();
  server.on("secureConnection", (socket) => void sockets.add(socket));
  // A client that does not trust the certificate ends the connection.
  server.on("tlsClientError", () => {});
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, certificate: file };
}

test.skipIf(!hasSystemSandbox)(
  "isolated code verifies the certificates of declared hosts by itself, and trusts those that it declares to read",
  { timeout: patience(60_000) },
  async () => {
    const { port, certificate: file } = await startSecure();
    const url = `https://localhost:${port}/`;
    vi.stubEnv("NODE_EXTRA_CA_CERTS", file);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { call } = await openHost(["localhost"], { env: ["NODE_EXTRA_CA_CERTS"], read: [file] });
    expect(await call("fetches", { url })).toBe(`HTTP/1.1 for localhost:${port}`);
    expect(await call("gets", { url })).toBe(`HTTP/1.1 for localhost:${port}`);
    expect(await call("sessions", { url })).toBe(`HTTP/2.0 for localhost:${port}`);
    expect(await call("secures", { port })).toBe("true here http/1.1, true here http/1.1");
    const other = `https://127.0.0.1:${port}/`;
    for (const tool of ["fetches", "gets", "sessions"]) expect(await call(tool, { url: other })).toContain("does not declare the host");
    const { call: untrusting } = await openHost(["localhost"]);
    for (const tool of ["fetches", "gets", "sessions", "secures"])
      expect(await untrusting(tool, { url, port }), tool).toMatch(/^failed: .*(?:self-signed|unable to verify)/);
  },
);

test.skipIf(!hasSystemSandbox)(
  "a host that does not answer is reported as it would be without isolation",
  { timeout: patience(60_000) },
  async () => {
    const closed = createTcp();
    const port = await listening(closed);
    await new Promise((done) => closed.close(done));
    const { call } = await openHost(["localhost"]);
    expect(await call("refused", { port })).toBe("ECONNREFUSED");
  },
);

test.skipIf(!hasSystemSandbox)("a program that ends without closing its host leaves no folders", { timeout: patience(60_000) }, () => {
  const root = tempFolder({
    "skills/s/SKILL.md": skillMd("s"),
    "skills/s/skill.json": JSON.stringify({
      name: "s",
      version: "1.0.0",
      description: "Connects.",
      permissions: { hosts: ["localhost"] },
    }),
    "skills/s/tools/all.ts": tools,
  });
  const temporary = tempFolder();
  const program = `import { createHost } from ${JSON.stringify(libraryUrl)};
      import { readdirSync } from "node:fs";
      const host = await createHost({ skillDirectories: [${JSON.stringify(join(root, "skills"))}], watch: false, isolation: "process", sessionsDirectory: ${JSON.stringify(join(root, "sessions"))} });
      console.log(host.tools.length, readdirSync(${JSON.stringify(temporary)}).filter((name) => name.startsWith("skillhost-net-")).length);
      process.exit();`;
  const env = { ...process.env, TMPDIR: temporary };
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", env });
  expect(stdout).toBe("7 1\n");
  expect(readdirSync(temporary)).toEqual([]);
});
