import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import { approveAll } from "../../src/tools/tool.ts";

// Creates or resumes a session and calls tools until it is killed, or only keeps it open. Prints each stored call.
const [folder = "", sessionId = "", mode = "begin"] = process.argv.slice(2);
const host = await createHost({
  skillDirectories: [],
  watch: false,
  logger: silentLogger,
  workingDirectory: folder,
  sessionsDirectory: folder,
});
const options = {
  tools: [
    { name: "count", handler: ({ n }: { n?: number }) => `counted ${n} ${"x".repeat(((n ?? 0) * 7919) % 5_000)}` },
    { name: "hangs", handler: () => new Promise(() => {}) },
    { name: "remote" },
  ],
  onPermissionRequest: approveAll,
};
try {
  const session = await (mode === "resume"
    ? host.resumeSession(sessionId, options)
    : host.createSession({ ...options, sessionId, excludedTools: ["hidden"] }));
  void session.callTool("hangs");
  void session.callTool("remote");
  await session.flush();
  process.stdout.write("ready\n");
  // No test waits for thousands of calls; after them the process stays idle.
  for (let n = 0; n < 3_000 && mode !== "hold"; n++) {
    await session.callTool("count", { n }, { toolCallId: `${process.pid}-${n}` });
    if (n % 3 > 0) continue;
    await session.flush();
    process.stdout.write(`${process.pid}-${n}\n`);
  }
  setInterval(() => {}, 1_000);
} catch (error) {
  process.stdout.write(`${(error as { code?: string }).code}\n`);
  await host.close();
}
