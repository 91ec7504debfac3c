import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { HostOptions } from "../../src/host/host-options.ts";
import type { SessionEventType } from "../../src/session/history/event-types.ts";
import type { RecordedEvent } from "../../src/session/history/events.ts";
import type { Session } from "../../src/session/session.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { patience } from "../slowness.ts";

const script = fileURLToPath(new URL("../doubles/mcp-servers/hosted-server.mjs", import.meta.url));

/** The configuration of a real server in its own process; its tool returns its name. */
export function serverNamed(name: string, more: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return { command: process.execPath, args: [script, name], ...more };
}

/** A server that never answers. */
export function silentServer(): Readonly<Record<string, unknown>> {
  return { command: process.execPath, args: [script, "silent", "silent"] };
}

/** A host that stores all its files in a folder of the test and is closed after it. */
export async function hostIn(folder: string, options: HostOptions = {}): Promise<Host> {
  const { mcp, ...rest } = options;
  const host = await createHost({
    skillDirectories: [],
    plugins: [],
    watch: false,
    logger: silentLogger,
    workingDirectory: folder,
    sessionsDirectory: join(folder, ".kept/sessions"),
    approvalsDirectory: join(folder, ".kept/approvals"),
    mcp: { cacheDirectory: join(folder, ".kept/lists"), credentialsDirectory: join(folder, ".kept/oauth"), ...mcp },
    ...rest,
  });
  onTestFinished(() => host.close());
  return host;
}

export async function openSession(host: Host, options: SessionOptions = {}): Promise<Session> {
  return host.createSession({ onPermissionRequest: approveAll, ...options });
}

/** A session of a new host, after an attempt to connect its servers. */
export async function sessionWith(options: SessionOptions = {}, hostOptions: HostOptions = {}): Promise<Session> {
  const session = await openSession(await hostIn(emptyFolder(), hostOptions), options);
  await session.ready();
  return session;
}

/** The result of a tool, parsed if it is JSON. */
export async function say(session: Session, tool: string, args: object = {}): Promise<unknown> {
  const { textResultForLlm: text } = await session.callTool(tool, args);
  try {
    return JSON.parse(text);
  } catch {
    // The result is plain text.
    return text;
  }
}

export async function pidOf(session: Session, server: string): Promise<number> {
  return ((await say(session, `${server}/who`)) as { readonly pid: number }).pid;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // The process has ended.
    return false;
  }
}

/** Polls until a condition holds, since the operating system sends no event for it. */
export async function until(isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + patience(15_000);
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error("What was waited for did not come about.");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function nextEvent(
  session: Session,
  type: SessionEventType,
  fits: (event: RecordedEvent) => boolean = () => true,
): Promise<RecordedEvent> {
  return new Promise((resolve) => {
    const end = session.on(type, (event) => {
      if (!fits(event)) return;
      end();
      resolve(event);
    });
  });
}

export function writeFiles(folder: string, files: Readonly<Record<string, string | object>>): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  }
}
