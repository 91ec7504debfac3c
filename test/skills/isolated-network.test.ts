import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcp } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { patience } from "../slowness.ts";
import { hasSystemSandbox, libraryUrl, openIsolated } from "./isolation-kit.ts";
import { skillMd, tempFolder } from "./kit.ts";

const tools = `import { defineTool } from "skillhost";
import http from "node:http";
import net from "node:net";
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
export const refused = defineTool("refused", { ...options, handler: ({ port }: any) => once(net.connect({ port, host: "localhost" }), "connect").then(() => "connected", (error) => error.code) });
`;

async function openHost(hosts: readonly string[]) {
  const root = tempFolder({
    "s/SKILL.md": skillMd("s"),
    "s/skill.json": JSON.stringify({ name: "s", version: "1.0.0", description: "Connects.", permissions: { hosts } }),
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
  expect(stdout).toBe("4 1\n");
  expect(readdirSync(temporary)).toEqual([]);
});
