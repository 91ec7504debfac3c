import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Server } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { Shells } from "../../plugins/workspace-tools/operations/shells.ts";
import { Lifetime } from "../../src/base/lifetime.ts";
import { silentLogger } from "../../src/base/logger.ts";
import { spawnProcess } from "../../src/io/spawn-process.ts";
import { ResourceWatches } from "../../src/mcp/connection/resource-watches.ts";
import { Subscription } from "../../src/mcp/connection/subscription.ts";
import { SessionExtensions } from "../../src/servers/copilot/extensions/session-extensions.ts";
import { Wire, type WireStreams } from "../../src/servers/copilot/framing/wire.ts";
import { LegacySessions, type ServedConnection } from "../../src/servers/mcp/legacy-sessions.ts";
import { initialize } from "../servers/mcp/serving-kit.ts";
import { closesWhileOpening } from "./closes-while-opening.ts";

const extensionSdk = fileURLToPath(new URL("../fixtures/extension-sdk", import.meta.url));

/** Something slow to open, and how many of it are open. */
function slowThing(): { open(): Promise<AsyncDisposable>; countOpen(): number } {
  let count = 0;
  const open = async (): Promise<AsyncDisposable> => {
    await new Promise(setImmediate);
    count++;
    return {
      [Symbol.asyncDispose]: async () => {
        await undefined;
        count--;
      },
    };
  };
  return { open, countOpen: () => count };
}

closesWhileOpening("a lifetime", () => {
  const { open, countOpen } = slowThing();
  const life = new Lifetime(() => new Error("closed"));
  const held: AsyncDisposable[] = [];
  const end = async (thing: AsyncDisposable): Promise<void> => thing[Symbol.asyncDispose]();
  return {
    open: async () => held.push(await life.open(open, end)),
    close: async () => {
      await life.end();
      await Promise.all(held.map(end));
    },
    countOpen,
  };
});

closesWhileOpening("the subscriptions to resources of one MCP connection", () => {
  const { open, countOpen } = slowThing();
  const watches = new ResourceWatches(open);
  const held: AsyncDisposable[] = [];
  return {
    open: async () => held.push(await watches.add("note://one", () => {})),
    close: async () => {
      await Promise.all(held.map((watch) => watch[Symbol.asyncDispose]()));
      await watches.close();
    },
    countOpen,
  };
});

closesWhileOpening("the stream of changes of one MCP connection", () => {
  const { open, countOpen } = slowThing();
  const listen = async (): Promise<object> => {
    const stream = await open();
    return { closed: new Promise(() => {}), close: () => stream[Symbol.asyncDispose]() };
  };
  const options = { serverName: "peer", log: silentLogger, onResumed() {} };
  const subscription = new Subscription({ listen, transport: {} } as never, {}, options);
  return { open: () => subscription.open(), close: () => subscription[Symbol.asyncDispose](), countOpen };
});

closesWhileOpening("the MCP sessions of clients over HTTP", () => {
  const { open, countOpen } = slowThing();
  const connect = async (): Promise<ServedConnection> => {
    const thing = await open();
    const server = new Server({ name: "test", version: "1.0.0" }, { capabilities: {} });
    return { server, end: async () => thing[Symbol.asyncDispose]() };
  };
  const sessions = new LegacySessions(connect, { maxSessions: 10, idleMs: 60_000 }, silentLogger);
  const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  return {
    open: () => sessions.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body: "{}" }), initialize),
    close: () => sessions[Symbol.asyncDispose](),
    countOpen,
  };
});

closesWhileOpening("the extensions of a session", async () => {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-openers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, ".github/extensions/idle/extension.mjs");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "setInterval(() => {}, 1_000);\n");
  const clients = new Set<Wire>();
  // What a session of the Copilot server is to its extensions.
  const session = { id: "s", session: { isOpen: false, events: { append() {} }, config: { workingDirectory: folder, sessionId: "s" } } };
  const accept = (streams: WireStreams): object => {
    const wire = new Wire(streams, () => null, silentLogger);
    clients.add(wire);
    void streams.input.once("close", () => clients.delete(wire));
    return { wire, admit() {} };
  };
  const server = { log: silentLogger, options: { environment: {} }, accept, mayRun: async () => true };
  const extensions = new SessionExtensions(server as never, session as never, extensionSdk);
  return {
    // One that never joins keeps its turn until it is ended.
    open: async () => {
      void extensions.reload();
      await new Promise(setImmediate);
      const [first] = extensions.list();
      // What was switched on while it waited for its turn, and after the end, is not started.
      if (first !== undefined) void Promise.all([extensions.disable(first.id), extensions.enable(first.id)]).catch(() => {});
      await new Promise(setImmediate);
    },
    close: () => extensions.close(),
    countOpen: () => clients.size,
  };
});

/** Shells that run until they are ended, and how many of them do. */
function countedShells(): { shells: Shells; open(): Promise<unknown>; countOpen(): number } {
  let running = 0;
  const startProcess: ConstructorParameters<typeof Shells>[0]["machine"]["startProcess"] = async () => {
    const started = await spawnProcess({ command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)"], cwd: process.cwd() });
    if (started.kind === "spawned") {
      running++;
      void started.process.ended.then(() => running--);
    }
    return started;
  };
  const shells = new Shells({ machine: { startProcess }, bash: "bash" });
  const request = { command: "", workingDirectory: process.cwd(), mode: "async", isDetached: false } as const;
  return { shells, open: () => shells.start("session", request), countOpen: () => running };
}

closesWhileOpening("the shells of the workspace tools", () => {
  const { shells, open, countOpen } = countedShells();
  return { open, countOpen, close: () => shells.close() };
});

closesWhileOpening("the shells of one session", () => {
  const { shells, open, countOpen } = countedShells();
  let hasEnded = false;
  // A session that is gone on with may start shells again.
  const close = async (): Promise<void> => {
    hasEnded = true;
    await shells.endSession("session");
  };
  return { open: () => (hasEnded ? undefined : open()), countOpen, close };
});
