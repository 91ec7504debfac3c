import { createInterface } from "node:readline";
import { HostError } from "../../src/base/errors.ts";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Session } from "../../src/session/session.ts";
import { approveAll } from "../../src/tools/tool.ts";

// Obeys commands, one per line, and prints one line for each: its number and the outcome.
const [folder = ""] = process.argv.slice(2);
const host = await createHost({
  skillDirectories: [],
  plugins: [],
  watch: false,
  logger: silentLogger,
  workingDirectory: folder,
  sessionsDirectory: folder,
});
let release = (): void => {};
const options = {
  tools: [
    { name: "count", handler: ({ n }: { n?: number }) => `counted ${n}` },
    {
      name: "hangs",
      handler: () =>
        new Promise<string>((resolve) => {
          release = () => resolve("released");
        }),
    },
  ],
  onPermissionRequest: approveAll,
};
let session: Session | undefined;

const commands: Readonly<Record<string, (argument: string) => Promise<string>>> = {
  create: async () => {
    session = await host.createSession({ ...options, sessionId: "s" });
    return "created";
  },
  take: async (timeout) => {
    session = await host.resumeSession("s", { ...options, takeOver: true }, timeout === "" ? {} : { takeoverTimeout: Number(timeout) });
    session.on("session.warning", ({ data }) => process.stdout.write(`warned ${data.warningType}\n`));
    return "taken";
  },
  call: async (id) => {
    if (session === undefined) return "none";
    await session.callTool("count", { n: 1 }, { toolCallId: id });
    await session.flush();
    return "called";
  },
  hang: async () => {
    void session?.callTool("hangs", {}, { toolCallId: `hung-${process.pid}` });
    return "hanging";
  },
  release: async () => {
    release();
    return "released";
  },
  close: async () => {
    await host.close();
    return "closed";
  },
};

process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  const [number = "", name = "", argument = ""] = line.split(" ");
  const done = commands[name]!(argument).catch((error: unknown) =>
    error instanceof HostError ? `${error.code} ${error.message}` : String(error),
  );
  void done.then((result) => process.stdout.write(`${number} ${result}\n`));
}
