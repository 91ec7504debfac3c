import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Server } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { PythonWorker } from "../../plugins/python-tools/python-worker.ts";
import { Shells } from "../../plugins/workspace-tools/operations/shells.ts";
import { Lifetime } from "../../src/base/lifetime.ts";
import { silentLogger } from "../../src/base/logger.ts";
import { spawnProcess } from "../../src/io/process/child-process.ts";
import { watchTree } from "../../src/io/watch/watch-tree.ts";
import { ClientResourceSubscriptions, Subscription } from "../../src/mcp/connection/change-feed.ts";
import { LastingSubscriptions } from "../../src/mcp/supervisor/lasting-subscriptions.ts";
import type { ServerConnector } from "../../src/mcp/supervisor/server-connector.ts";
import { Wire, type WireStreams } from "../../src/servers/copilot/connection/wire.ts";
import { SessionExtensions } from "../../src/servers/copilot/extensions/session-extensions.ts";
import { LegacySessions, type ServedConnection } from "../../src/servers/mcp/legacy-sessions.ts";
import { ResourceWatch } from "../../src/session/prompts-resources/session-prompts-resources.ts";
import { FakeServers, localSpec, makeKit } from "../mcp/supervisor-kit.ts";
import { initialize } from "../servers/mcp/serving-kit.ts";
import { closesWhileOpening } from "./closes-while-opening.ts";

const extensionSdk = fileURLToPath(new URL("../fixtures/extension-sdk", import.meta.url));

/** A resource that opens slowly, with a count of the open ones. */
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

closesWhileOpening("the set of resource subscriptions of one MCP connection", () => {
  const { open, countOpen } = slowThing();
  const watches = new ClientResourceSubscriptions(open);
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

closesWhileOpening("the change stream of one MCP connection", () => {
  const { open, countOpen } = slowThing();
  const listen = async (): Promise<object> => {
    const stream = await open();
    return { closed: new Promise(() => {}), close: () => stream[Symbol.asyncDispose]() };
  };
  const options = { serverName: "peer", log: silentLogger, onResumed() {} };
  const subscription = new Subscription({ listen, transport: {} } as never, {}, options);
  return { open: () => subscription.open(), close: () => subscription[Symbol.asyncDispose](), countOpen };
});

closesWhileOpening("the set of resource subscriptions of one server across its connections", () => {
  const { open, countOpen } = slowThing();
  const watches = new LastingSubscriptions();
  const connections = [1, 2].map(() => ({ watchResource: open }) as never);
  const held: Promise<AsyncDisposable>[] = [];
  let isOver = false;
  return {
    open: async () => {
      if (isOver) return;
      held.push(watches.add("note://one", () => {}, connections[0] as never));
      watches.moveTo(connections[1] as never);
      await Promise.all(held);
    },
    close: async () => {
      isOver = true;
      await Promise.all(held.map(async (watch) => (await watch)[Symbol.asyncDispose]()));
    },
    countOpen,
  };
});

closesWhileOpening("a session's subscription to a URI", () => {
  const { open, countOpen } = slowThing();
  const resource = (): never => ({ definition: { uri: "note://one" }, watch: open }) as never;
  const [one, other] = [resource(), resource()];
  let source = one;
  const options = { uri: "note://one", find: () => source, listener() {}, onError() {} };
  const watch = new ResourceWatch(options);
  return {
    open: async () => {
      source = one;
      const started = watch.start();
      for (source of [other, one]) watch.check();
      await started;
    },
    close: () => watch[Symbol.asyncDispose](),
    countOpen,
  };
});

closesWhileOpening("the set of MCP servers of a host", () => {
  const servers = new FakeServers({ tools: () => [] });
  const connect: ServerConnector = async (spec, request) => {
    await new Promise(setImmediate);
    request.signal.throwIfAborted();
    return servers.connect(spec, request);
  };
  const { supervisor } = makeKit(servers, { connect });
  return {
    open: () => supervisor.acquire([localSpec("one")]).ready(new AbortController().signal, { fresh: true }),
    close: () => supervisor[Symbol.asyncDispose](),
    countOpen: () => servers.connections.filter(({ isDisposed }) => !isDisposed).length,
  };
});

closesWhileOpening("the Python process of a skill", () => {
  let running = 0;
  // A program that speaks the worker's protocol and reports no tools.
  const python = `
    const say = (message) => console.log(JSON.stringify(message));
    say({ ready: { version: "3.12", executable: "python3" } });
    const lines = require("node:readline").createInterface({ input: process.stdin });
    lines.on("line", (line) => say({ id: JSON.parse(line).id, value: { tools: [], files: [], sources: {} } }));
    setInterval(() => {}, 1000);`;
  const startProcess = async (): Promise<object> => {
    const started = await spawnProcess({ command: process.execPath, args: ["-e", python], cwd: process.cwd() });
    if (started.kind === "spawned") {
      running++;
      void started.process.ended.then(() => running--);
    }
    return started;
  };
  const options = { startProcess: startProcess as never, log: silentLogger, environment: {}, interpreters: new Map(), killAfter: 0 };
  const worker = new PythonWorker(process.cwd(), options);
  worker.retain();
  return { open: () => worker.load("tool.py"), close: () => worker.release(), countOpen: () => running };
});

closesWhileOpening("the set of MCP sessions over HTTP", () => {
  const { open, countOpen } = slowThing();
  const connect = async (): Promise<ServedConnection> => {
    const thing = await open();
    const server = new Server({ name: "test", version: "1.0.0" }, { capabilities: {} });
    return { server, end: async () => thing[Symbol.asyncDispose]() };
  };
  const sessions = new LegacySessions(connect, { maxSessions: 10, idleMs: 60_000 }, silentLogger);
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return {
    open: () => {
      const incoming = Object.assign(new IncomingMessage(new Socket()), { method: "POST", headers });
      return sessions.handle({ incoming, outgoing: new ServerResponse(incoming), body: initialize });
    },
    close: () => sessions[Symbol.asyncDispose](),
    countOpen,
  };
});

closesWhileOpening("the set of extensions of a session", async () => {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-openers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, ".github/extensions/idle/extension.mjs");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "setInterval(() => {}, 1_000);\n");
  const clients = new Set<Wire>();
  // The part of a Copilot server session that its extensions use.
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
    // An extension that never joins blocks the next ones until it is ended.
    open: async () => {
      void extensions.reload();
      await new Promise(setImmediate);
      const [first] = extensions.list();
      // Extensions that are enabled while they wait, or after the end, are not started.
      if (first !== undefined) void Promise.all([extensions.disable(first.id), extensions.enable(first.id)]).catch(() => {});
      await new Promise(setImmediate);
    },
    close: () => extensions.close(),
    countOpen: () => clients.size,
  };
});

for (const backend of ["directory", "chokidar"] as const) {
  closesWhileOpening(`a folder watcher (${backend})`, () => {
    const root = mkdtempSync(join(tmpdir(), "skillhost-openers-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    for (const name of ["a", "b/c"]) mkdirSync(join(root, name), { recursive: true });
    const countOpen = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "FSEventWrap").length;
    const before = countOpen();
    const watcher = watchTree({ roots: [], onChange() {}, onProblem() {}, backend });
    return {
      open: () => {
        watcher.add(root);
        return watcher.ready;
      },
      close: () => watcher[Symbol.asyncDispose](),
      countOpen: () => countOpen() - before,
    };
  });
}

/** Shells that run until they are ended, with a count of the running ones. */
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

closesWhileOpening("the set of shells of the workspace tools", () => {
  const { shells, open, countOpen } = countedShells();
  return { open, countOpen, close: () => shells.close() };
});

closesWhileOpening("the set of shells of one session", () => {
  const { shells, open, countOpen } = countedShells();
  let hasEnded = false;
  // A resumed session may start shells again.
  const close = async (): Promise<void> => {
    hasEnded = true;
    await shells.endSession("session");
  };
  return { open: () => (hasEnded ? undefined : open()), countOpen, close };
});
