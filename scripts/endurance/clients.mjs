import { execFile, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";

/** The clock of a process that loads this module jumps by up to a day, there or back, at each SIGUSR2. Timers are as before. */
const clockSource = `const { now } = Date;
const Real = Date;
let offset = 0;
let seed = 1;
process.on("SIGUSR2", () => {
  seed = (seed * 48271) % 2147483647;
  offset = (seed % 172_800_000) - 86_400_000;
});
globalThis.Date = class Date extends Real {
  constructor(...given) {
    if (given.length === 0) super(now() + offset);
    else super(...given);
  }
  static now() {
    return now() + offset;
  }
};
`;

/** Connections to programs of the package, each in a process of its own. All call a tool and settle with its text. */
export class Clients {
  #bin;
  #world;
  #clock;
  #open = new Map();
  /** Of the HTTP server, at all of its starts: `fetch` keeps a pool of connections for each address for ever. */
  #port = 0;

  constructor(bin, world) {
    this.#bin = bin;
    this.#world = world;
    this.#clock = join(world.base, "clock.mjs");
    writeFileSync(this.#clock, clockSource);
  }

  async call(kind, tool, x) {
    if (!this.#open.has(kind)) {
      const opened = await openers[kind](this.#place());
      this.#port = opened.port ?? this.#port;
      this.#open.set(kind, opened);
    }
    return this.#open.get(kind).call(tool, x);
  }

  /** Starts a program again at its next call. */
  async restart(kind) {
    const client = this.#open.get(kind);
    this.#open.delete(kind);
    await client?.close();
  }

  /** Moves the clock of a program. False: it does not run. */
  jump(kind) {
    const pid = this.#open.get(kind)?.pid;
    return pid !== undefined && process.kill(pid, "SIGUSR2");
  }

  async close() {
    for (const kind of [...this.#open.keys()]) await this.restart(kind);
  }

  #place() {
    return { bin: this.#bin, world: this.#world, clock: this.#clock, port: this.#port };
  }
}

const firstText = async (client, tool, x) => (await client.callTool({ name: tool, arguments: { x } })).content[0]?.text;
const environment = (world, more = {}) => ({ ...process.env, SKILLHOST_TRUST: world.base, ...more });

async function overStdio({ bin, world, clock }, command = [process.execPath]) {
  const client = new Client({ name: "endurance", version: "1" });
  const [program, ...args] = [...command, bin, "mcp", "--yes", "--skills", world.folder];
  const env = environment(world, { NODE_OPTIONS: `--import ${pathToFileURL(clock).href}` });
  const transport = new StdioClientTransport({ command: program, args, cwd: world.base, env, stderr: "ignore" });
  await client.connect(transport);
  return { pid: transport.pid, call: (tool, x) => firstText(client, tool, x), close: () => client.close() };
}

const openers = {
  "MCP client": overStdio,
  /** In a user namespace of its own, which may have only a few watches: it must find out by itself what changes. */
  "MCP client without watches": (place) => overStdio(place, fewWatches),
  async "MCP client over HTTP"({ bin, world, port }) {
    const args = [bin, "mcp", "--http", String(port), "--no-token", "--yes", "--skills", world.folder];
    const server = spawn(process.execPath, args, { cwd: world.base, env: environment(world), stdio: ["ignore", "pipe", "ignore"] });
    const address = await lineOf(server.stdout, /http:\/\/127\.0\.0\.1:\d+\/mcp/);
    server.stdout.resume();
    const client = new Client({ name: "endurance", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(address)));
    const close = async () => {
      await client.close();
      await ended(server);
    };
    return { pid: server.pid, port: Number(new URL(address).port), call: (tool, x) => firstText(client, tool, x), close };
  },
  async "Copilot client"({ bin, world }) {
    const args = [bin, "--headless", "--no-auto-update", "--stdio", "--yolo"];
    const env = environment(world, { COPILOT_HOME: join(world.base, "copilot") });
    const server = spawn(process.execPath, args, { cwd: world.base, env, stdio: ["pipe", "pipe", "ignore"] });
    const connection = createMessageConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));
    connection.listen();
    await connection.sendRequest("connect", {});
    const { sessionId } = await connection.sendRequest("session.create", { workingDirectory: world.base });
    await connection.sendRequest("session.tools.initializeAndValidate", { sessionId });
    const call = async (toolName, x) => {
      const result = await connection.sendRequest("session.tools.execute", { sessionId, toolName, args: { x } });
      return result.textResultForLlm;
    };
    const close = async () => {
      connection.dispose();
      await ended(server);
    };
    return { pid: server.pid, call, close };
  },
};

const fewWatches = ["unshare", "-Ur", "sh", "-c", 'echo 2 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh", process.execPath];

/** Whether this system lets a process have a limit of watches of its own. */
export async function canLimitWatches() {
  const [program, ...args] = fewWatches;
  return promisify(execFile)(program, [...args, "-e", ""]).then(
    () => true,
    () => false,
  );
}

function lineOf(stream, pattern) {
  return new Promise((resolve, reject) => {
    let text = "";
    stream.on("data", function read(piece) {
      text += piece;
      const [found] = pattern.exec(text) ?? [];
      if (found === undefined) return;
      stream.off("data", read);
      resolve(found);
    });
    stream.once("end", () => reject(new Error(`the program ended without its address: ${text.slice(0, 500)}`)));
  });
}

function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill();
  });
}
