// A status service for this machine. Usage: node status-server.mjs [port] (default: 8787; 0: any free port)
import { statfs } from "node:fs/promises";
import { createServer } from "node:http";
import { availableParallelism, freemem, loadavg, totalmem, uptime } from "node:os";

const megabyte = 1024 * 1024;

const services = {
  uptime: () => ({ state: "ok", seconds: Math.round(uptime()) }),
  load() {
    const [oneMinute, fiveMinutes, fifteenMinutes] = loadavg().map((figure) => Math.round(figure * 100) / 100);
    const processors = availableParallelism();
    return { state: oneMinute > processors ? "busy" : "ok", processors, oneMinute, fiveMinutes, fifteenMinutes };
  },
  memory() {
    const [free, total] = [freemem(), totalmem()].map((bytes) => Math.round(bytes / megabyte));
    return { state: free / total < 0.1 ? "busy" : "ok", freeMegabytes: free, totalMegabytes: total };
  },
  async disk() {
    const { bavail, blocks, bsize } = await statfs(".");
    const [free, total] = [bavail, blocks].map((count) => Math.round((count * bsize) / megabyte));
    return { state: free / total < 0.05 ? "busy" : "ok", freeMegabytes: free, totalMegabytes: total };
  },
};

async function answer(request) {
  if (request.method !== "GET") return [405, { error: "Only GET is supported." }];
  const name = /^\/status\/([a-z]+)$/.exec(new URL(request.url ?? "/", "http://localhost").pathname)?.[1];
  if (name === undefined || !Object.hasOwn(services, name))
    return [404, { error: `Not found. Use /status/<name> with one of ${Object.keys(services).join(", ")}.` }];
  return [200, { service: name, ...(await services[name]()) }];
}

const server = createServer(async (request, response) => {
  const [status, body] = await answer(request).catch(() => [500, { error: "The status could not be read." }]);
  response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(body)}\n`);
});

// Bound to loopback, so that other machines cannot read the status.
server.listen(Number(process.argv[2] ?? 8787), "127.0.0.1", () => {
  process.stdout.write(`Status service on http://127.0.0.1:${server.address().port}\n`);
});
