import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HostOptions, SessionOptions } from "skillhost";
import { startToolWorker, type ToolWorker, type ToolWorkerOptions } from "skillhost/plugins/nats";
import { onTestFinished } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import type { Session } from "../../../src/session/session.ts";
import { buildPackage } from "../../built-package.ts";
import { type Files, putAll, skillMd, tempFolder } from "../../skills/kit.ts";
import { NatsServer, until } from "./nats-server.ts";

/** A server for one test. */
export async function startServer(): Promise<NatsServer> {
  const server = await NatsServer.start();
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** A folder of skills with one skill, `far`, of these files. */
export function skillFolder(files: Files): string {
  const root = tempFolder();
  putAll(join(root, "far"), { "SKILL.md": skillMd("far"), ...files });
  return root;
}

export interface StartedWorker {
  readonly worker: ToolWorker;
  readonly host: Host;
  readonly root: string;
}

/** A worker in this process. */
export async function startWorker(
  { address }: NatsServer,
  files: Files,
  options: Partial<ToolWorkerOptions & HostOptions> = {},
): Promise<StartedWorker> {
  const root = skillFolder(files);
  const { plugins, ...ofWorker } = options;
  const host = await createHost({ skillDirectories: [root], workingDirectory: root, watch: false, ...(plugins && { plugins }) });
  onTestFinished(() => host.close());
  const worker = await startToolWorker(host, { servers: address, ...ofWorker });
  onTestFinished(() => worker.drain(0));
  return { worker, host, root };
}

export interface CallingHost {
  readonly host: Host;
  readonly session: Session;
  /** The texts of a session's tools are there. */
  has(...tools: readonly string[]): Promise<void>;
}

/** A host without tools of its own, and a session that allows everything unless its options say otherwise. */
export async function callingHost({ address }: NatsServer, config: object = {}, options: SessionOptions = {}): Promise<CallingHost> {
  const host = await createHost({
    plugins: [{ use: "skillhost/plugins/nats", config: { servers: address, ...config } }],
    skillDirectories: [],
    workingDirectory: tempFolder(),
    watch: false,
  });
  onTestFinished(() => host.close());
  const session = await host.createSession({ persist: false, onPermissionRequest: () => ({ kind: "approve-once" }), ...options });
  await session.ready();
  const has = (...tools: readonly string[]): Promise<void> =>
    until(() => tools.every((name) => session.catalog.executables.has(name)), `the tools ${tools.join()}`);
  return { host, session, has };
}

export interface WorkerProcess {
  readonly id: string;
  kill(signal: NodeJS.Signals): void;
  /** Stops it without closing its connections. Settles when every thread has stopped. */
  pause(): Promise<Disposable>;
  readonly ended: Promise<number | null>;
}

/** The command, as a program of its own. */
export async function startWorkerProcess({ address }: NatsServer, root: string, ...more: readonly string[]): Promise<WorkerProcess> {
  const args = [buildPackage().bin, "worker", "--nats", address, "--skills", root, "--json", ...more];
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, SKILLHOST_TRUST: "1" },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`The worker ended:\n${stdout}${stderr}`);
    return stdout.includes("\n");
  }, "the worker to serve");
  const { data } = JSON.parse(stdout.split("\n")[0] as string) as { readonly data: { readonly id: string } };
  const pause = async (): Promise<Disposable> => {
    child.kill("SIGSTOP");
    const threads = `/proc/${child.pid}/task`;
    const isStopped = (): boolean =>
      readdirSync(threads).every((thread) => /\) [Tt] /.test(readFileSync(join(threads, thread, "stat"), "utf8")));
    await until(isStopped, "the worker to stop");
    return { [Symbol.dispose]: () => void child.kill("SIGCONT") };
  };
  return { id: data.id, kill: (signal) => void child.kill(signal), pause, ended };
}
